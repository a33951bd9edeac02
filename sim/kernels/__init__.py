"""The fast engine's compiled parts: the same recursions as the actors', over times alone, without events."""
