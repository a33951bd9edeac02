"""What a store promises: frozen states and pure functions, standard library only."""
