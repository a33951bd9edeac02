"""Specify the copies of a log: a master, its replicas, and what may become of them."""
