"""Members of a Raft group in processes of their own, whose leader is killed."""
