"""Result of a walk over a log file: columns with a row per valid record, and other items.

Columns are 64-bit integers, whatever the width of the field in the file, so that they form one table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tornpage.properties.decode.record import Blank, Record
from tornpage.properties.decode.walk import Item

__all__ = ["Column", "LogBatch", "OtherItem", "Texts"]


class Column(IntEnum):
    """The columns, each named for its field; `docs/tables.md` gives meaning and unit.

    TOPIC is a number in the walk's list of topics. CHECKSUM is -1 without a trailer. The last three need the properties
    and are 0 unless they are requested: TAGS_CODE (Java hash of the tag), DELAY_LEVEL (0 without one) and KEY_COUNT
    (the number of keys that the record is indexed by, 0 for a rolled back transaction).
    """

    OFFSET = 0
    SIZE = 1
    BODY_CRC = 2
    QUEUE_ID = 3
    FLAG = 4
    QUEUE_OFFSET = 5
    SYS_FLAG = 6
    BORN_TIMESTAMP = 7
    STORE_TIMESTAMP = 8
    RECONSUME_TIMES = 9
    PREPARED_TRANSACTION_OFFSET = 10
    BODY_SIZE = 11
    TOPIC = 12
    PROPERTIES_SIZE = 13
    CHECKSUM = 14
    TAGS_CODE = 15
    DELAY_LEVEL = 16
    KEY_COUNT = 17


@dataclass(frozen=True, slots=True)
class OtherItem:
    """An item that is not a record, before row `row` of its batch.

    After the last record `row` is the number of rows.
    """

    row: int
    item: Item

    @property
    def size_bytes(self) -> int:
        """Bytes that the item covers: for a blank the stored length, for a `Bad` 0."""
        return getattr(self.item, "size_bytes", 0)


Texts: TypeAlias = Mapping[str, tuple[NDArray[np.int64], NDArray[np.uint8]]]
"""Byte strings per row: their begins (one more than rows, the last is the end), and the bytes in a row."""


@dataclass(frozen=True, slots=True)
class LogBatch:
    """Rows of one file, in order; `table` has the shape (columns, rows).

    `topics` are all topics that the walk has seen so far, as stored. `key_hashes` are the index hashes of the records'
    keys, in the order of rows and of dispatch (the unique key first). `texts` are the requested byte strings (`body`,
    `properties`, `raw`, `born_host`, `store_host`). `records` has the whole records that the kernel left to the plain
    decoder, if properties were requested: those of several queues (multi dispatch) and those with text that is not
    UTF-8. `end` is the physical offset after the last item of the batch.
    """

    table: NDArray[np.int64]
    topics: Sequence[bytes]
    others: tuple[OtherItem, ...]
    end: int
    key_hashes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    texts: Texts = field(default_factory=dict)
    records: Mapping[int, Record] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return the number of records."""
        return int(self.table.shape[1])

    def __getitem__(self, column: Column) -> NDArray[np.int64]:
        """Return one column."""
        values: NDArray[np.int64] = self.table[column]
        return values

    @property
    def is_last(self) -> bool:
        """Whether a blank ended the file in this batch."""
        return bool(self.others) and isinstance(self.others[-1].item, Blank)
