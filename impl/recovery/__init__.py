"""Opening a store directory: from whatever it holds to a log, queues and an index that keep the promises."""
