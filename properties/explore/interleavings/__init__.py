"""Interleavings of what a store's threads do, on a recorded disk: drawn, run step by step, judged (contract 16, 17)."""
