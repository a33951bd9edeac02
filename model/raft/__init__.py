"""Specify a log that a majority of members keeps: the members, their messages, and the promises of the group."""
