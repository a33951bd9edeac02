"""What a store counts of its puts and of its reads."""
