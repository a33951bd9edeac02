"""Stores as tables, audits, campaigns and sweeps on Spark.

Importing this package needs neither Java nor Spark.
"""
