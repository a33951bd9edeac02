"""Explore crash states of recorded runs."""
