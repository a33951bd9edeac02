"""Results as documents and as text: one module for each kind of result. Nothing here runs anything."""
