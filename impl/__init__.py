"""The mmap message store. Importing the package loads nothing (docs/adr/0002)."""
