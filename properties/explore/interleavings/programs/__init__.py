"""Small concurrent programs of single parts of the store."""
