"""What a run leaves on disk: a run directory, and a row of a history."""
