"""Cases of several processes: clusters and consumer groups."""
