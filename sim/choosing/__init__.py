"""Choose a flush policy for a budget of latency and loss."""
