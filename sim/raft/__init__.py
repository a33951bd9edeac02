"""A Raft group as actors: members, disks and links, elections and the cost of a quorum."""
