"""Consumers of a group as actors: lag, repeated messages and idle threads."""
