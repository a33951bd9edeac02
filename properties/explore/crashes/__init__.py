"""Crash campaigns from recorded histories."""
