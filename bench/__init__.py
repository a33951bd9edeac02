"""Measurements of every room: the store, its recovery, the crash lab, and the disk and memory under them."""
