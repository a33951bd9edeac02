"""Delayed delivery: messages of the schedule topic are put again when they are due."""
