"""Crash campaigns in Spark tasks, and what they come to."""
