"""Search the states of Raft groups: all of a small bound, and drawn runs on recorded disks."""
