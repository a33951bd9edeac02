"""The configuration of a store, its defaults, its checks and its policies."""
