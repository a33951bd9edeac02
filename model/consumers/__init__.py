"""Specify a consumer group: members, progress, retries, and hand-overs."""
