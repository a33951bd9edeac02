"""Messages and their bytes: records, batches, properties, delay levels, dispatch."""
