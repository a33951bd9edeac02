"""A timing model of the store: what a flush or preallocation policy costs its producers, and what a crash would lose.

A run is a function of (scenario, seed). Time is integer nanoseconds; messages are rows of arrays, never processes.
The policies are the store's own (`impl.config.policy`); the times come from a `sim.device.device.DeviceTimes`.
"""
