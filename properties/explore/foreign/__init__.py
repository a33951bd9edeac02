"""Crash campaigns on foreign stores."""
