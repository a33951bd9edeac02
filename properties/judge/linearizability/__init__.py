"""Histories of concurrent calls, and whether one order of them explains every answer (contract 17)."""
