"""A store that runs as a process of its own, and the protocol of its clients."""
