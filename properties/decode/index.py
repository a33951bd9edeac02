"""Decode one index file from its bytes, and name every contradiction in it.

    0            8          16             24           32       36
    | begin time | end time | begin offset | end offset | slots  | next   |           header, 40 bytes
    40                                     40+4s
    | newest entry of slot 0 | … of slot 1 |  entry 0 (never used) | entry 1 | …                         20 bytes each
    |                                      | hash (4) | physical offset (8) | seconds (4) | previous (4) |

`slots` is the number of slots in use. `next` is the number of the next entry: 0 in a file without entries, else one
more than the number of entries. An entry is in the slot with the number of its hash modulo the number of slots. Each
slot names its newest entry, each entry names the previous one of its slot, and 0 ends the chain. `seconds` count from
the begin time; those of entry 1 in a file after a full one count from the end time of that file. The file states
neither its number of slots nor its room for entries, so a reader has to know both.

Guarantees: no bytes make it raise. A chain ends after at most as many entries as the file has, whatever its links are.

Source: RocketMQ's `IndexFile`, `IndexHeader`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from tornpage.properties.decode.consumequeue import java_hash

__all__ = [
    "ENTRY_BYTES",
    "HEADER_BYTES",
    "SLOT_BYTES",
    "IndexEntry",
    "IndexHeader",
    "IndexProblem",
    "IndexView",
    "decode_index",
    "index_file_bytes",
    "index_hash",
]

HEADER_BYTES: Final = 40
SLOT_BYTES: Final = 4
ENTRY_BYTES: Final = 20

_HEADER = struct.Struct(">qqqqii")
_ENTRY = struct.Struct(">iqii")
_HASH_MAX = 2**31 - 1

assert _HEADER.size == HEADER_BYTES
assert _ENTRY.size == ENTRY_BYTES

IndexProblem = Literal[
    "begin_is_not_the_first_entry",
    "bytes_behind_the_entries",
    "end_is_not_the_last_entry",
    "entry_zero_is_used",
    "file_size",
    "hash_is_negative",
    "next_entry_out_of_range",
    "offsets_go_back",
    "previous_is_not_the_entry_before",
    "seconds_are_negative",
    "slot_is_not_the_newest_entry",
    "slots_count_entries",
    "slots_in_use",
]
"""What can be wrong. Each name is that of the field that contradicts the entries.

`slots_count_entries` is right up to RocketMQ 4.6.1, which counts each entry as a slot in use. It may do so from some
entry on, in a file begun by a later release.
"""


class IndexHeader(NamedTuple):
    """The header as stored. Times are milliseconds, offsets are physical."""

    begin_timestamp: int
    end_timestamp: int
    begin_offset: int
    end_offset: int
    slots_in_use: int
    next_entry: int


class IndexEntry(NamedTuple):
    """One entry as stored; `number` is its place, `previous` the next one of its chain."""

    number: int
    key_hash: int
    offset: int
    seconds: int
    previous: int


@dataclass(frozen=True, slots=True)
class IndexView:
    """The content of one index file.

    Entry n is `entries[n - 1]`; `problems` is empty in a valid file.
    """

    header: IndexHeader
    slots: tuple[int, ...]
    entries: tuple[IndexEntry, ...]
    problems: tuple[tuple[IndexProblem, str], ...]

    def chain(self, key_hash: int) -> Iterator[IndexEntry]:
        """Yield the entries with a hash, newest first, as a reader finds them by the links."""
        if not self.slots:
            return
        number = self.slots[key_hash % len(self.slots)]
        for _ in self.entries:
            if not 0 < number <= len(self.entries):
                return
            entry = self.entries[number - 1]
            if entry.key_hash == key_hash:
                yield entry
            number = entry.previous


def index_hash(topic: str, key: str) -> int:
    """Return the hash under which a key of a topic is indexed; it is never negative.

    Source: RocketMQ's `IndexFile.indexKeyHashMethod`.
    """
    value = abs(java_hash(f"{topic}#{key}"))
    return value if value <= _HASH_MAX else 0


def index_file_bytes(*, slots: int, entries: int) -> int:
    """Return the size of an index file; `entries` counts the unused entry 0."""
    return HEADER_BYTES + SLOT_BYTES * slots + ENTRY_BYTES * entries


def decode_index(data: bytes, *, slots: int, entries: int) -> IndexView:
    """Decode a file with this many slots and room for `entries` - 1 entries.

    Cost: linear in its size.
    """
    problems: list[tuple[IndexProblem, str]] = []
    wanted_bytes = index_file_bytes(slots=slots, entries=entries)
    if len(data) != wanted_bytes:
        problems.append(("file_size", f"{len(data)} bytes, not {wanted_bytes}"))
        data = data[:wanted_bytes].ljust(wanted_bytes, b"\0")
    header = IndexHeader(*_HEADER.unpack_from(data))
    count = header.next_entry - 1 if header.next_entry else 0
    if not 0 <= count < entries:
        problems.append(("next_entry_out_of_range", f"{header.next_entry}, with room up to {entries}"))
        count = max(0, min(count, entries - 1))
    heads = struct.unpack_from(f">{slots}i", data, HEADER_BYTES)
    start = HEADER_BYTES + SLOT_BYTES * slots
    first, end = start + ENTRY_BYTES, start + ENTRY_BYTES * (count + 1)
    if data[start:first].strip(b"\0"):
        problems.append(("entry_zero_is_used", data[start:first].hex()))
    found = tuple(IndexEntry(number, *fields) for number, fields in enumerate(_ENTRY.iter_unpack(data[first:end]), 1))
    if data[end:].strip(b"\0"):
        problems.append(("bytes_behind_the_entries", f"after entry {count}"))
    problems += _chain_problems(found, heads)
    problems += _header_problems(header, found, heads)
    return IndexView(header, heads, found, tuple(problems))


def _chain_problems(entries: tuple[IndexEntry, ...], heads: tuple[int, ...]) -> Iterator[tuple[IndexProblem, str]]:
    """Compare every link with the entries themselves."""
    newest: dict[int, int] = {}
    last_offset = -1
    for number, key_hash, offset, seconds, previous in entries:
        slot = key_hash % len(heads)
        if key_hash < 0:
            yield "hash_is_negative", f"entry {number}: {key_hash}"
        if seconds < 0:
            yield "seconds_are_negative", f"entry {number}: {seconds}"
        if offset < last_offset:
            yield "offsets_go_back", f"entry {number}: {offset} after {last_offset}"
        if previous != newest.get(slot, 0):
            yield "previous_is_not_the_entry_before", f"entry {number}: {previous}, not {newest.get(slot, 0)}"
        newest[slot] = number
        last_offset = offset
    for slot, head in enumerate(heads):
        if head != newest.get(slot, 0):
            yield "slot_is_not_the_newest_entry", f"slot {slot}: {head}, not {newest.get(slot, 0)}"


def _header_problems(
    header: IndexHeader, entries: tuple[IndexEntry, ...], heads: tuple[int, ...]
) -> Iterator[tuple[IndexProblem, str]]:
    """Compare the header with entries and slots."""
    in_use = sum(map(bool, heads))
    if header.slots_in_use != in_use:
        counts_entries = in_use < header.slots_in_use <= len(entries)
        yield "slots_count_entries" if counts_entries else "slots_in_use", f"{header.slots_in_use}, not {in_use}"
    if entries and header.begin_offset != entries[0].offset:
        yield "begin_is_not_the_first_entry", f"{header.begin_offset}, not {entries[0].offset}"
    if entries and header.end_offset != entries[-1].offset:
        yield "end_is_not_the_last_entry", f"{header.end_offset}, not {entries[-1].offset}"
