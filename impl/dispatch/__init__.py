"""Dispatch of log records to consume queues and the index, in log order."""
