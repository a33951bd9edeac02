"""Explore exhaustively: every short workload, every crash image within a bound.

See docs/exhaust.md.
"""
