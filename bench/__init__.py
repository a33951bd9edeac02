"""Measurements of every room, and of the disk and memory under them."""
