"""Explore clusters of a master and its replicas."""
