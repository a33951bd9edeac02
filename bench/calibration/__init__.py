"""Slices that measure a disk, and the calibration made of them."""
