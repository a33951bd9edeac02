"""The index: which offsets a key may be at."""
