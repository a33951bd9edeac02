"""Dispatch: what the log has goes into consume queues and index, in log order."""
