"""Crash images: chosen fact by fact, certified, checked by a second reader, shown."""
