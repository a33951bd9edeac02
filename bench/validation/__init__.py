"""Validation: predictions of the simulator compared with measurements of the real store."""
