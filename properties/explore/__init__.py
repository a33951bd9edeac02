"""Explore for broken guarantees, with one package per way of exploring."""
