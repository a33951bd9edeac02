"""Campaigns: replay of a case, shrinking, and what every exploration shares."""
