"""Run campaigns: the parts that every explorer shares, case replay and shrinking."""
