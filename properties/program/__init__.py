"""Cases: settings, operations as values, tokens, random programs, I/O fault rules."""
