"""Outcomes of the commands on consumers."""
