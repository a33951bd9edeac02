"""Consumer groups and broker tables: offsets, topics, groups, filters, state files."""
