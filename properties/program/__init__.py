"""What a case is made of: settings, operations as values, tokens, replay, and what makes a case smaller."""
