"""Explain a counterexample: page map, hexdump, history of a page."""
