"""Foreign stores: their protocol, their processes, what is recorded of them, and their judge."""
