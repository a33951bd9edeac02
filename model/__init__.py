"""Specify what a store promises: frozen states and pure functions.

Only the standard library is imported.
"""
