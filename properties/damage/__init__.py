"""Damage of a store by design: each field of each file, and each file as a whole."""
