"""Run parts of the store alone, each on a small disk, and compare them with references.

A reference is a list or a table that follows the numbered rules in the docstring of its module. It shares no code with
the part.
"""
