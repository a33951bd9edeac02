"""Explore interleavings of a store's threads on a recorded disk (contract 16, 17)."""
