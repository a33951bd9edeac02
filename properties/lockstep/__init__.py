"""Run a store and its model in lockstep on a recorded disk, with crash faults."""
