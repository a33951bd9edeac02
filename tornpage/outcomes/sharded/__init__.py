"""Run what is done in shards: campaigns, in Spark tasks or in this process."""
