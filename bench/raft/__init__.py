"""Members of `impl/raft` in virtual time, beside the simulator."""
