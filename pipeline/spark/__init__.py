"""Sessions, jobs and workers of Spark. Importing this loads neither Java nor Spark."""
