"""Describe tables: types, units and meanings of their columns."""
