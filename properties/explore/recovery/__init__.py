"""Crash recovery itself at each of its file operations, for stores of many layouts (contract 6)."""
