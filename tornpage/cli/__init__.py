"""The command line: `main` finds the command; one module per command has a click command named `command`."""
