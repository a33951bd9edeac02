"""Simulated time, events that happen again and again, and the observer of waits."""
