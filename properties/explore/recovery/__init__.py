"""Crash recovery at each of its file operations, for many store layouts (contract 6)."""
