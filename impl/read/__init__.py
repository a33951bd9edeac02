"""Reads of the store: pulls, queries, buffers, filters and long polling."""
