"""The crash lab: it compares a store with the model by runs, explorers and judges."""
