"""Audits: compare log, queues and index of a store, in this process or on Spark."""
