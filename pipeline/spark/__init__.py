"""Sessions, jobs and workers of Spark.

Importing this package loads neither Java nor Spark.
"""
