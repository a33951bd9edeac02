"""The Java store of RocketMQ: install its jars, run it in a process, and read its answers."""
