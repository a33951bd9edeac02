"""Messages and their bytes: records, batches, properties, delay levels, and what dispatch makes of a record."""
