"""Compare store and model with Hypothesis machines, including crash faults."""
