"""Read one index file as rows, with every inconsistency of header, slots and entries.

Slots and entries are read in pieces. One number per slot is kept. `properties.decode.index.decode_index` finds the same
in small files, one entry at a time. Tests compare the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tornpage.pipeline.rows.columns import ENTRIES
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.index import ENTRY_BYTES, HEADER_BYTES, SLOT_BYTES, IndexHeader
from tornpage.properties.decode.index_files import IndexFile, IndexReader

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ENTRY", "IndexPartition", "IndexRow", "newest_before", "plan_index", "read_index"]

PROBLEMS_MAX = 100
"""The number of listed places of one file; the last one says that there are more."""

ENTRY = np.dtype([("hash", ">i4"), ("offset", ">i8"), ("seconds", ">i4"), ("previous", ">i4")])
_PIECE_ENTRIES = 1 << 18
_BEGIN_AT, _END_AT, _USED_AT, _NEXT_AT = 16, 24, 32, 36

assert ENTRY.itemsize == ENTRY_BYTES


@dataclass(frozen=True, slots=True)
class IndexPartition:
    """One index file: its number, its header, and its number of slots (None: unknown)."""

    store: int
    number: int
    file: IndexFile
    header: IndexHeader
    slots: int | None

    @property
    def entry_count(self) -> int:
        """The number of entries in the header, as far as there is room for them."""
        stated = max(0, self.header.next_entry - 1)
        return stated if self.slots is None else min(stated, self.entries_max - 1)

    @property
    def entries_max(self) -> int:
        """The room for entries, including the unused entry 0; the slots must be known."""
        assert self.slots is not None
        return max(1, (self.file.size_bytes - HEADER_BYTES - SLOT_BYTES * self.slots) // ENTRY_BYTES)

    def position_of(self, number: int) -> int:
        """Return the position of an entry; the slots must be known."""
        assert self.slots is not None
        return HEADER_BYTES + SLOT_BYTES * self.slots + ENTRY_BYTES * number


class IndexRow(NamedTuple):
    """One finding in an index file.

    It is a `problem` at a position, or the `end` of the file with the reason for an early end.
    """

    store: int
    file: str
    kind: str
    position: int | None = None
    text: str | None = None
    changed: bool = False
    error: str | None = None


def plan_index(store: int, files: Sequence[IndexFile], slots: int | None) -> list[IndexPartition | OSError]:
    """Read headers, and find the number of slots of each file.

    A file that cannot be read is an error in its place. All files of a store have the same number of slots. If the
    bytes of one do not show it, those of the others do. `slots` is the number in the broker's settings.
    """
    headers: list[IndexHeader | OSError] = []
    settled: list[int | None] = []
    for file in files:
        try:
            with IndexReader(file) as reader:
                reader.settle(slots)
                headers.append(reader.header)
                settled.append(reader.slots)
        except OSError as error:
            headers.append(error)
            settled.append(None)
    known = [each for each in settled if each is not None]
    usual = max(sorted(set(known)), key=known.count, default=None)
    return [
        header
        if isinstance(header, OSError)
        else IndexPartition(
            store,
            number,
            file,
            header,
            own if own is not None or slots is not None else _fitting(file, usual),
        )
        for number, (file, header, own) in enumerate(zip(files, headers, settled, strict=True))
    ]


def _fitting(file: IndexFile, slots: int | None) -> int | None:
    """Return the number of slots of other files if this one has room for them."""
    left = -1 if slots is None else file.size_bytes - HEADER_BYTES - SLOT_BYTES * slots
    return slots if left > 0 and left % ENTRY_BYTES == 0 else None


def read_index(part: IndexPartition) -> Iterator[NDArray[Any] | IndexRow]:
    """Yield the entries of one file in pieces, then inconsistencies, then the end."""
    label = part.file.label
    problems: list[tuple[int, str]] = []
    changed, failure = False, None
    try:
        with FileSource(part.file.path, size_bytes_max=part.file.size_bytes) as source:
            for entries in _checked(part, source, problems):
                rows = np.zeros(len(entries), ENTRIES)
                for name in ("offset", "hash", "seconds"):
                    rows[name] = entries[name]
                rows["file"], rows["number"] = part.number, entries["number"]
                yield rows
            changed = source.has_changed()
    except OSError as error:
        failure = error.strerror or type(error).__name__
    problems.sort()
    for position, text in problems[:PROBLEMS_MAX]:
        yield IndexRow(part.store, label, "problem", position, text)
    if len(problems) > PROBLEMS_MAX:
        yield IndexRow(part.store, label, "problem", None, "there are more places than are listed")
    yield IndexRow(part.store, label, "end", changed=changed, error=failure)


def _checked(part: IndexPartition, source: FileSource, problems: list[tuple[int, str]]) -> Iterator[NDArray[Any]]:
    """Yield the entries, with a column `number`, and compare every link with the entries."""
    assert part.slots is not None
    header, count = part.header, part.entry_count
    if not 0 <= max(0, header.next_entry - 1) < part.entries_max or header.next_entry < 0:
        problems.append((_NEXT_AT, f"next entry {header.next_entry}, with room up to {part.entries_max}"))
    if source.read(part.position_of(0), ENTRY_BYTES).strip(b"\0"):
        problems.append((part.position_of(0), "the unused entry 0 is not zero"))
    newest = np.zeros(part.slots, "i4")
    first = last = None
    last_offset = -1
    for start, end in pairwise([*range(1, count + 1, _PIECE_ENTRIES), count + 1]):
        stored = source.read(part.position_of(start), ENTRY_BYTES * (end - start)).ljust(
            ENTRY_BYTES * (end - start), b"\0"
        )
        entries = np.frombuffer(stored, ENTRY).astype(np.dtype([*[(n, "i8") for n in ENTRY.names or ()]]))
        numbers = np.arange(start, end)
        before = newest_before(entries["hash"] % part.slots, numbers, newest)
        _compare(part, entries, numbers, before, last_offset, problems)
        last_offset = int(entries["offset"][-1])
        first, last = int(entries["offset"][0]) if first is None else first, last_offset
        rows = np.zeros(len(entries), [("offset", "i8"), ("hash", "i4"), ("seconds", "i8"), ("number", "i8")])
        for name in ("offset", "hash", "seconds"):
            rows[name] = entries[name]
        rows["number"] = numbers
        yield rows
    behind = source.next_nonzero(part.position_of(count + 1))
    if behind < min(source.end, part.position_of(part.entries_max)):
        problems.append((behind, f"bytes behind entry {count}, the last one"))
    if count:
        _compare_header(header, first, last, problems)
    _compare_slots(part, source, newest, problems)


def newest_before(slots: NDArray[Any], numbers: NDArray[Any], newest: NDArray[Any]) -> NDArray[Any]:
    """Return the entry before each one in its slot; update `newest`, the last of each slot."""
    order = np.argsort(slots, kind="stable")
    in_order = slots[order]
    before = np.empty(len(slots), "i8")
    begins = np.ones(len(slots), bool)
    begins[1:] = in_order[1:] != in_order[:-1]
    previous = np.empty(len(slots), "i8")
    previous[1:] = numbers[order][:-1]
    previous[begins] = newest[in_order[begins]]
    before[order] = previous
    ends = np.ones(len(slots), bool)
    ends[:-1] = begins[1:]
    newest[in_order[ends]] = numbers[order][ends]
    return before


def _compare(
    part: IndexPartition,
    entries: NDArray[Any],
    numbers: NDArray[Any],
    before: NDArray[Any],
    last_offset: int,
    problems: list[tuple[int, str]],
) -> None:
    earlier = np.concatenate([[last_offset], entries["offset"][:-1]])
    checks = (
        (entries["hash"] < 0, "the hash is negative"),
        (entries["seconds"] < 0, "the seconds are negative"),
        (entries["offset"] < earlier, "its offset lies before that of the entry before"),
        (entries["previous"] != before, "it does not name the entry before it in its slot"),
    )
    for wrong, text in checks:
        for at in np.flatnonzero(wrong)[: PROBLEMS_MAX + 1].tolist():
            problems.append((part.position_of(int(numbers[at])), f"entry {numbers[at]}: {text}"))


def _compare_header(header: IndexHeader, first: int | None, last: int | None, problems: list[tuple[int, str]]) -> None:
    if header.begin_offset != first:
        problems.append((_BEGIN_AT, f"begin offset {header.begin_offset}, the first entry has {first}"))
    if header.end_offset != last:
        problems.append((_END_AT, f"end offset {header.end_offset}, the last entry has {last}"))


def _compare_slots(
    part: IndexPartition, source: FileSource, newest: NDArray[Any], problems: list[tuple[int, str]]
) -> None:
    in_use = 0
    assert part.slots is not None
    for start in range(0, part.slots, _PIECE_ENTRIES):
        size = SLOT_BYTES * min(_PIECE_ENTRIES, part.slots - start)
        stored = np.frombuffer(source.read(HEADER_BYTES + SLOT_BYTES * start, size).ljust(size, b"\0"), ">i4")
        in_use += int(np.count_nonzero(stored))
        wanted = newest[start : start + len(stored)]
        for at in np.flatnonzero(stored != wanted)[: PROBLEMS_MAX + 1].tolist():
            text = f"slot {start + at} names entry {stored[at]}, its newest is {wanted[at]}"
            problems.append((HEADER_BYTES + SLOT_BYTES * (start + at), text))
    # up to 4.6.1 RocketMQ counts each entry as a slot in use, perhaps from some entry on
    if not in_use <= part.header.slots_in_use <= max(in_use, part.entry_count):
        problems.append((_USED_AT, f"{part.header.slots_in_use} slots in use, {in_use} are"))
