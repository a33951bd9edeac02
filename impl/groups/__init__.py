"""What a store remembers of consumer groups and of what a broker is told: offsets, topics, groups, filters."""
