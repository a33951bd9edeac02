"""Harm copies of a closed store, and judge what they still owe."""
