"""The comparison: machines, crash lab, judges and planted bugs that hold a store against the model."""
