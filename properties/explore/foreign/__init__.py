"""Stores of other people under test: what they have to offer, how they are driven, killed, and judged."""
