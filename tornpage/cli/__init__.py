"""The command line: `main` finds a command, and each command has its own module.

Each module has a click command named `command`.
"""
