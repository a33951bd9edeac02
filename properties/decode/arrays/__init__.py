"""Decode log, queue and index files into columns: NumPy arrays filled by compiled walks.

Importing it loads NumPy and Numba, which `properties.decode` itself never does. It shares no code with the store.
"""

from __future__ import annotations

from tornpage.properties.decode.arrays.columns import Column, LogBatch, OtherItem
from tornpage.properties.decode.arrays.entries import EntryColumn, entry_arrays
from tornpage.properties.decode.arrays.texts import TEXTS
from tornpage.properties.decode.arrays.topics import Topics
from tornpage.properties.decode.arrays.units import QueueBatch, UnitColumn, unit_arrays
from tornpage.properties.decode.arrays.walker import BATCH_ROWS, PIECE_BYTES, is_compiled, walk_arrays

__all__ = [
    "BATCH_ROWS",
    "PIECE_BYTES",
    "TEXTS",
    "Column",
    "EntryColumn",
    "LogBatch",
    "OtherItem",
    "QueueBatch",
    "Topics",
    "UnitColumn",
    "entry_arrays",
    "is_compiled",
    "unit_arrays",
    "walk_arrays",
]
