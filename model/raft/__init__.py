"""Specify a log that a majority of the members of a group keeps (Raft)."""
