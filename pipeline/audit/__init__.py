"""Audits: log, queues and index of a store compared, in this process or on Spark."""
