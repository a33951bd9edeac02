"""Measure a real pair over TCP on loopback, and compare it with its simulation."""
