"""Simulated time, repeated events, and the observer of waits."""
