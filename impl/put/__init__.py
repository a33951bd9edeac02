"""Puts: admission, append, answer, statistics."""
