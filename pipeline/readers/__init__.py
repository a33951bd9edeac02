"""Readers of RocketMQ stores for Spark.

Importing this package loads neither Spark nor Arrow. Its module `sources` does.
"""
