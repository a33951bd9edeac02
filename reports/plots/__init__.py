"""Figures of pages, drawn from results."""
