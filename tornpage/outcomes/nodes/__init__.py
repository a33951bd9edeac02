"""What commands about groups of nodes run."""
