"""Replication of a log from a master to its replicas."""
