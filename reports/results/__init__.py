"""Results as frozen values: what a run directory holds, checked field by field."""
