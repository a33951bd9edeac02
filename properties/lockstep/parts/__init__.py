"""Run parts of the store alone, each on a small disk, against plain statements."""
