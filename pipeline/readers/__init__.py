"""Readers of RocketMQ stores for Spark. Importing this loads neither Spark nor Arrow; its module `sources` does."""
