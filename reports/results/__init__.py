"""Results as frozen values: the content of a run directory, checked field by field."""
