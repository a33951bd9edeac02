"""Retention: expired log files, then queues and index.

Deletion of topics and queues on request.
"""
