"""Stores as tables, audits, campaigns and sweeps on Spark. Importing this needs neither Java nor Spark."""
