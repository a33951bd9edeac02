"""What a run comes to: its trace, and every number that is computed from it."""
