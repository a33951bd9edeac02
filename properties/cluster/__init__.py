"""Crash a master and its replicas: recorded disks, a recorded network, one clock."""
