"""Grids of the simulator in Spark tasks, and the best points of their results."""
