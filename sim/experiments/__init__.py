"""The named experiments of the simulator; `sim.experiments.registry` lists them."""
