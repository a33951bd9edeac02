"""Explore damages of stores, field by field."""
