"""Measure our store beside RocketMQ in one run, by turns.

`shapes` has the work of each row, `ours` carries it out with our store, `running` alternates both and keeps rounds.
"""
