"""Explore consumer groups over a broker that crashes."""
