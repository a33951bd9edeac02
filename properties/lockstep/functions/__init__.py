"""Compare functions and small parts of the store with the model, at their limits."""
