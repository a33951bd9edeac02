"""Delayed delivery: messages wait in the schedule topic and are put again once they are due."""
