"""The index: the physical offsets at which a key may be."""
