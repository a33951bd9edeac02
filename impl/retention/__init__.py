"""Retention: expired log files go, then queues and index follow; topics and queues go on request."""
