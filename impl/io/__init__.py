"""Files and disk: every touch of a disk, mappings of files, and the small files of a store directory."""
