"""Specify a consumer group: its members, the progress of its queues, retries, and hand-overs."""
