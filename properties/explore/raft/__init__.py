"""Explore Raft groups: all schedules of a small bound, and drawn runs on disks."""
