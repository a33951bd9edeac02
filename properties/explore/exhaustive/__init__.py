"""Bounded exhaustive exploration: every short workload, every crash image within a bound (docs/exhaust.md)."""
