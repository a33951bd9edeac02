"""The configuration of a store, its defaults and checks, and the policies that decide from values."""
