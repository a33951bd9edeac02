"""Slices that measure a disk, and the calibration built from them."""
