"""Measure how soon each strategy kills each planted bug: budgets, seeds and censoring."""
