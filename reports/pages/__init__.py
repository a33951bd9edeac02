"""The HTML pages: run, counterexample, simulation, store, trends."""
