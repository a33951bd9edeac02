"""Opening a store directory: recovery of the log, then of consume queues and index."""
