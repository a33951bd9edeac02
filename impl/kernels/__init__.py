"""Compiled twins of hot functions. Importing one loads Numba; the plain functions they mirror are their oracle."""
