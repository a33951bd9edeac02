"""The statistics of puts and reads of a store."""
