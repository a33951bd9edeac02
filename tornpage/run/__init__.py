"""Write run directories, and rows of a history of runs."""
