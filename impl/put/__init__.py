"""The way of a put through the store: entry, append, answer, count."""
