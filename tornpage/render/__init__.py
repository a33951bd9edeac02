"""Render results as documents and as text, one module for each kind of result."""
