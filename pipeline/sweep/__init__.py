"""Grids of the simulator in Spark tasks, and their points that are worth having."""
