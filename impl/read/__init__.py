"""The way of a read through the store: pulls, queries, buffers, filters and long polling."""
