"""Consume queues: units of 20 bytes, their files, and the extension."""
