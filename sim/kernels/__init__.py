"""The compiled parts of the fast engine: recursions over times, without events."""
