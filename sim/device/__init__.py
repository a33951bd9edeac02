"""Devices: the times of disk, page cache and processor, from presets and calibrations."""
