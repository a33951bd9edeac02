"""Run groups of Raft members, and compare them with the model."""
