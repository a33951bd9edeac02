"""Compare functions of the store that need no disk with the model, at their limits."""
