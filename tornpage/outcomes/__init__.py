"""What each command does: call the engine it is about, and return an outcome and its text."""
