"""The recorded disk: a journal of a store's writes, the crash states it allows, faults."""
