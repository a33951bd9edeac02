"""Decode index files into columns: the entries of one file, in the order of creation."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.index import ENTRY_BYTES, HEADER_BYTES, SLOT_BYTES
from tornpage.properties.decode.index_files import IndexFile

__all__ = ["BATCH_ENTRIES", "EntryColumn", "entry_arrays"]

BATCH_ENTRIES = 65_536
_ENTRY = np.dtype([("hash", ">i4"), ("offset", ">i8"), ("seconds", ">i4"), ("previous", ">i4")])
assert _ENTRY.itemsize == ENTRY_BYTES


class EntryColumn(IntEnum):
    """The columns, as stored. NUMBER counts from 1."""

    NUMBER = 0
    KEY_HASH = 1
    OFFSET = 2
    SECONDS = 3
    PREVIOUS = 4


def entry_arrays(
    file: IndexFile, *, slots: int, count: int, first: int = 1, batch_entries: int = BATCH_ENTRIES
) -> Iterator[NDArray[np.int64]]:
    """Yield tables of shape (columns, entries) with entries `first` to `count` of a file.

    There are fewer entries if the file ends earlier. Raises OSError if it cannot be opened or read.
    """
    number = first
    with FileSource(file.path, size_bytes_max=2**63 - 1, piece_bytes=batch_entries * ENTRY_BYTES) as source:
        while number <= count:
            wanted = min(batch_entries, count + 1 - number)
            position = HEADER_BYTES + SLOT_BYTES * slots + ENTRY_BYTES * number
            piece = source.read(position, ENTRY_BYTES * wanted)
            found = len(piece) // ENTRY_BYTES
            if not found:
                return
            entries = np.frombuffer(piece, _ENTRY, found)
            table = np.empty((len(EntryColumn), found), np.int64)
            table[EntryColumn.NUMBER] = np.arange(number, number + found)
            table[EntryColumn.KEY_HASH] = entries["hash"]
            table[EntryColumn.OFFSET] = entries["offset"]
            table[EntryColumn.SECONDS] = entries["seconds"]
            table[EntryColumn.PREVIOUS] = entries["previous"]
            yield table
            number += found
