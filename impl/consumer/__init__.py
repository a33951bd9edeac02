"""Consumers: pull, push, rebalance, and the broker's part of them, over a store in the same process."""
