"""The commands that run a node and talk to one."""
