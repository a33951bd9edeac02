"""The in-process recorder: what a store did to its files, page by page and in order."""
