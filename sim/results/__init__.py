"""The results of a run: its trace, and every number that is computed from it."""
