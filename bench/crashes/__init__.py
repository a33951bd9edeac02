"""The real store under power losses and process kills, beside the simulator."""
