"""The commit log: its directories and files in order, records under the put lock, and the services that flush it."""
