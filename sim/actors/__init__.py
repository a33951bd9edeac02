"""The actors of a run, one generator each: producers, flushers, committer, allocator."""
