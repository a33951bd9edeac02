"""Crash a broker and its consumers: a recorded disk, a recorded network, one clock."""
