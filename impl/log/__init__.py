"""The commit log: its directories and files, appends under the put lock, flush services."""
