"""Faults that are aimed: which call of the file seam is to fail, and how."""
