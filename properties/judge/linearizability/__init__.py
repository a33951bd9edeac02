"""Check whether one order of concurrent calls explains all their answers (contract 17)."""
