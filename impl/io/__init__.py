"""Files and disk: every disk access, file mappings, the small files of a store directory."""
