"""Choose a flush policy for a budget, on a preset or on a measured disk."""
