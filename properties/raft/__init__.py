"""Run groups of Raft members on recorded disks or in memory, and compare them with the model."""
