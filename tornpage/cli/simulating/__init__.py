"""The commands that simulate."""
