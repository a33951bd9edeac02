"""Simulate the timing of the store: the cost of its policies, and the losses in a crash.

A run is a function of (scenario, seed). Time is integer nanoseconds. Messages are rows of arrays, never processes. The
policies are the store's own (`impl.config.policy`). The times come from a `sim.device.device.DeviceTimes`.
"""
