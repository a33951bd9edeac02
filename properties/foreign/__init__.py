"""Test foreign stores: protocol, processes, recording of their disks, judge."""
