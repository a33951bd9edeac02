"""Consumers of a store: pull, push, rebalance, and the broker's part of them."""
