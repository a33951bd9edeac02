"""Hypothesis machines: the store and the model answer alike, disasters included."""
