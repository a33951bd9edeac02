"""Crash campaigns in Spark tasks, and their sums."""
