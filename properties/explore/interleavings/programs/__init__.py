"""Small concurrent programs of single parts of the store, each explored by its number of preemptions."""
