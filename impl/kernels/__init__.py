"""Compiled twins of hot functions.

Importing one loads Numba; the plain functions are their oracle.
"""
