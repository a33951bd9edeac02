"""Rows of store files, and the columns of every table."""
