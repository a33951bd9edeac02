"""Ways to look for broken guarantees, each a package of its own."""
