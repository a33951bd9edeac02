"""The real mmap store, one small class per responsibility. Importing the package loads nothing (docs/adr/0002)."""
