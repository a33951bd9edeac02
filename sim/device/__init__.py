"""Devices: what each thing takes that a store asks of disk, page cache and processor; presets and calibrations."""
