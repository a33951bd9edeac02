"""Hold the expected content of the log, queues, index and progress files of a store.

`Ledger` has the bytes of each record at the return of its put. Each record is decoded once by the judges' own decoder
and compared with the model's record, so later comparisons need no decoding. `DerivedLedger` has what each record adds
to queues and index, by the model, so the expected queues and index of a log of any length are a look-up.
`ProgressLedger` has every version of a progress file and the events between which it was saved. A crash during a save
may leave the old version or the new one; a crash after its answer leaves the new one. Offsets are physical.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial

from tornpage.model.dispatch import Queue, places
from tornpage.model.index import keys_of
from tornpage.model.message import stored_properties
from tornpage.model.operations import TableName
from tornpage.model.queues import Unit, tags_code
from tornpage.model.state import CommitLog, Layout, Record
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode.config_files import load_config, parse_consumer_offsets, parse_delay_offsets
from tornpage.properties.decode.index import index_hash
from tornpage.properties.decode.record import TRAILER_BYTES, Bad, decode_record
from tornpage.properties.decode.record import Record as Decoded
from tornpage.properties.program.log_places import ROOT

__all__ = [
    "BROKER_TABLES",
    "CONSUMER_OFFSETS",
    "DELAY_OFFSETS",
    "LIGHT_CONSUMER_OFFSETS",
    "READERS",
    "DerivedLedger",
    "EntryPut",
    "Key",
    "Ledger",
    "LegalVersions",
    "Peek",
    "ProgressLedger",
    "QueueMemory",
    "SavedVersion",
    "compare_record",
    "entry_fields",
    "torn_in",
    "version_text",
    "versions_in",
]

Peek = Callable[[str, int, int], bytes]
"""Reads (file name, position, size) of a log file as the process sees it."""

BLANK_HEAD_BYTES = 8


class Ledger:
    """Expected content per log file, and the end offset of each record."""

    def __init__(self, *, file_bytes: int) -> None:
        self.file_bytes = file_bytes
        self.ends: list[int] = []
        self._content: dict[int, bytearray] = {}

    def copy(self) -> "Ledger":
        """Return an independent copy."""
        other = Ledger(file_bytes=self.file_bytes)
        other.ends = list(self.ends)
        other._content = {base: bytearray(content) for base, content in self._content.items()}
        return other

    @classmethod
    def of(cls, log: CommitLog, *, file_bytes: int, peek: Peek) -> "Ledger":
        """Return the ledger of a log whose files `peek` reads.

        Raises GuaranteeBroken (1) if they differ from the model.
        """
        ledger, end = cls(file_bytes=file_bytes), 0
        for record in log.records:
            ledger.note(record, end_before=end, peek=peek)
            end = record.end_offset
        if log.end_offset > end:
            ledger.note_blank(end, peek)
        return ledger

    def _file(self, base: int) -> bytearray:
        return self._content.setdefault(base, bytearray(self.file_bytes))

    def note(self, record: Record, *, end_before: int, peek: Peek) -> None:
        """Note a record just put: decode it, compare it with the model, and keep its bytes."""
        base = record.offset // self.file_bytes * self.file_bytes
        if record.offset == base and end_before < base:
            self.note_blank(end_before, peek)
        found = peek(f"{base:020d}", record.offset - base, record.size_bytes)
        compare_record(found, record, base=base, file_bytes=self.file_bytes)
        self._file(base)[record.offset - base : record.end_offset - base] = found
        self.ends.append(record.end_offset)

    def note_blank(self, offset: int, peek: Peek) -> None:
        """Note a blank just written, which declares the rest of its file empty."""
        base = offset // self.file_bytes * self.file_bytes
        position = offset - base
        expected = (self.file_bytes - position).to_bytes(4, "big") + 0xCBD43194.to_bytes(4, "big")
        found = peek(f"{base:020d}", position, BLANK_HEAD_BYTES)
        if found != expected:
            raise GuaranteeBroken(1, f"the file has no blank at {offset}", expected.hex(), found.hex())
        self._file(base)[position : position + BLANK_HEAD_BYTES] = expected

    def count_at(self, end_offset: int) -> int:
        """Return how many records end at or before an offset."""
        return bisect_right(self.ends, end_offset)

    def truncate(self, end_offset: int) -> None:
        """Forget everything past an offset, because a recovery cut it."""
        del self.ends[self.count_at(end_offset) :]
        for base in [base for base in self._content if base >= end_offset]:
            del self._content[base]
        for base, content in self._content.items():
            if base + self.file_bytes > end_offset:
                content[end_offset - base :] = bytes(base + self.file_bytes - end_offset)

    def stored(self, record: Record) -> bytes:
        """Return the bytes of a noted record, as the log holds them."""
        base = record.offset // self.file_bytes * self.file_bytes
        return bytes(self._content[base][record.offset - base : record.end_offset - base])

    def expected(self, base: int, end_offset: int) -> bytes:
        """Return the expected content of the log file at `base`, for a log that ends at an offset."""
        content = self._content.get(base)
        kept = max(0, min(self.file_bytes, end_offset - base))
        if content is None:
            return bytes(self.file_bytes)
        return bytes(content) if kept == self.file_bytes else bytes(content[:kept]).ljust(self.file_bytes, b"\0")


def compare_record(found: bytes, record: Record, *, base: int, file_bytes: int) -> None:
    """Decode one record and compare every field with the model's. Raises GuaranteeBroken (1)."""
    position = record.offset - base
    item = decode_record(found, offset=record.offset, room_bytes=file_bytes - position)
    if not isinstance(item, Decoded):
        reason = item.reason if isinstance(item, Bad) else "a blank"
        raise GuaranteeBroken(1, f"the put at {record.offset} wrote no valid record", "a valid record", str(reason))
    message, trailer = record.message, item.checksum is not None
    pairs = {
        "size": (record.size_bytes, item.size_bytes),
        "topic": (message.topic.encode(), item.topic),
        "body": (message.body, item.body),
        "queue id": (message.queue_id, item.queue_id),
        "queue offset": (record.queue_offset, item.queue_offset),
        "flag": (message.flag, item.flag),
        "transaction bits": (message.sys_flag & ~0x30, item.sys_flag & ~0x30),
        "born timestamp": (message.born_timestamp, item.born_timestamp),
        "born host": (message.born_host, item.born_host),
        "store timestamp": (record.store_timestamp, item.store_timestamp),
        "store host": (message.store_host, item.store_host),
        "reconsume times": (message.reconsume_times, item.reconsume_times),
        "prepared offset": (message.prepared_transaction_offset, item.prepared_transaction_offset),
        "properties": (
            stored_properties(message, trailer=trailer),
            item.properties[:-TRAILER_BYTES] if trailer else item.properties,
        ),
    }
    for name, (expected, stored) in pairs.items():
        if expected != stored:
            raise GuaranteeBroken(1, f"{name} of the record at {record.offset} is wrong", repr(expected), repr(stored))


Key = tuple[str, str]
"""Topic and key."""

EntryPut = tuple[int, int, int]
"""Fields of one index entry: hash of the key, physical offset, and store timestamp (ms) of the record."""

_UNIT = struct.Struct(">qiq")

_hash_of = lru_cache(maxsize=4096)(index_hash)


@dataclass(slots=True)
class QueueMemory:
    """One queue: the unit at index n is `units[n]`; it exists if the log reaches `ends[n]`.

    `stored` are all units as in a queue file without an extension.
    """

    units: list[Unit] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    stored: bytearray = field(default_factory=bytearray)

    def count_at(self, end_offset: int) -> int:
        """Return how many units this queue has if the log ends at an offset."""
        return bisect_right(self.ends, end_offset)

    def first_at(self, min_offset: int) -> int:
        """Return the index of the first unit whose record is at or after an offset."""
        return bisect_left(self.units, min_offset, key=_begin_of) if min_offset else 0

    def append(self, unit: Unit) -> None:
        """Note the next unit."""
        assert not self.units or unit.queue_offset == self.units[-1].queue_offset + 1, "the model left a gap in a queue"
        self.units.append(unit)
        self.ends.append(unit.record.end_offset)
        self.stored += _UNIT.pack(unit.record.offset, unit.record.size_bytes, unit.tags_code)


class DerivedLedger:
    """Expected queues and index of every prefix of the records noted so far.

    Records of a topic in `deleted` count in its queues only from the given offset on.
    """

    def __init__(self, layout: Layout, records: Iterable[Record] = (), deleted: Iterable[tuple[str, int]] = ()) -> None:
        self._layout = layout
        self._deleted = dict(deleted)
        self._records: list[Record] = []
        self.queues: dict[Queue, QueueMemory] = {}
        self.keys: dict[Key, list[Record]] = {}
        self.entries: list[EntryPut] = []
        self._entry_ends: list[int] = []
        for record in records:
            self.note(record)

    def note(self, record: Record) -> None:
        """Note the next record of the log."""
        self._records.append(record)
        code = tags_code(record, self._layout)
        for queue, number in places(record, self._layout):
            if record.offset < self._deleted.get(queue[0], 0):
                continue
            memory = self.queues.setdefault(queue, QueueMemory())
            if not memory.units or memory.units[-1].queue_offset < number:  # a queue named twice gets one unit
                memory.append(Unit(number, record, code))
        if self._layout.index:
            self._note_keys(record)

    def _note_keys(self, record: Record) -> None:
        topic = record.message.topic
        for key in keys_of(record, drops_joined=self._layout.drops_joined):
            self.entries.append((_hash_of(topic, key), record.offset, record.store_timestamp))
            self._entry_ends.append(record.end_offset)
            records = self.keys.setdefault((topic, key), [])
            if not records or records[-1] is not record:
                records.append(record)

    def up_to(self, end_offset: int, deleted: Iterable[tuple[str, int]] = ()) -> "DerivedLedger":
        """Return an independent ledger of the records that end at or before an offset."""
        records = (record for record in self._records if record.end_offset <= end_offset)
        return DerivedLedger(self._layout, records, deleted)

    def with_deleted(self, deleted: Iterable[tuple[str, int]], end_offset: int) -> "DerivedLedger":
        """Return a ledger of the same records with these topics deleted.

        The log ends at `end_offset`.
        """
        clamped = {topic: min(offset, end_offset) for topic, offset in deleted}
        if clamped == {topic: min(offset, end_offset) for topic, offset in self._deleted.items()}:
            return self
        return DerivedLedger(self._layout, self._records, clamped.items())

    def queues_at(self, end_offset: int) -> Iterator[tuple[Queue, QueueMemory, int]]:
        """Yield each queue that has units if the log ends at an offset, and their number."""
        for queue, memory in self.queues.items():
            count = memory.count_at(end_offset)
            if count:
                yield queue, memory, count

    def end_of(self, queue: Queue, end_offset: int) -> int:
        """Return the number after the last unit of a queue if the log ends at an offset."""
        memory = self.queues.get(queue)
        count = memory.count_at(end_offset) if memory is not None else 0
        return memory.units[count - 1].queue_offset + 1 if memory is not None and count else 0

    def entries_at(self, end_offset: int) -> list[EntryPut]:
        """Return the index entries of a log that ends at an offset, in put order."""
        return self.entries[: bisect_right(self._entry_ends, end_offset)]

    def keys_at(self, end_offset: int) -> list[Key]:
        """Return the keys of a log that ends at an offset, in the order of their first records.

        Keys of later records are left out: a replay of an earlier crash does not know them.
        """
        return [key for key, records in self.keys.items() if records[0].end_offset <= end_offset]

    def records_with(self, key: Key, end_offset: int, min_offset: int = 0) -> list[Record]:
        """Return the records with a key of a log that ends and begins at these offsets, in order."""
        records = self.keys.get(key, [])
        return [each for each in records[: bisect_right(records, end_offset, key=_end_of)] if each.offset >= min_offset]


def _begin_of(unit: Unit) -> int:
    return unit.record.offset


def _end_of(record: Record) -> int:
    return record.end_offset


CONSUMER_OFFSETS = f"{ROOT}/config/consumerOffset.json"

LIGHT_CONSUMER_OFFSETS = f"{ROOT}/config/lmqConsumerOffset.json"

DELAY_OFFSETS = f"{ROOT}/config/delayOffset.json"

BROKER_TABLES: Mapping[str, TableName] = {
    f"{ROOT}/config/topics.json": "topics",
    f"{ROOT}/config/subscriptionGroup.json": "groups",
}
"""The files of the broker tables that the model knows."""

SavedVersion = Hashable
"""The content of one version: sorted pairs; () for a missing file."""


def version_text(content: SavedVersion) -> str:
    """Return a version as text: levels and their numbers, or groups and their offsets."""
    if not isinstance(content, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in content):
        return str(content)
    return ", ".join(f"{_owner_text(owner)} at {number}" for owner, number in content) or "nothing"


def _owner_text(owner: object) -> str:
    match owner:
        case (topic, group, queue_id):
            return f"group {group} in {topic}/{queue_id}"
        case str():
            return f"entry {owner}"
        case _:
            return f"level {owner}"


LegalVersions = Mapping[str, frozenset[SavedVersion]]
"""The versions that each state file may have, by path."""


def _consumer_offsets(document: object) -> SavedVersion:
    return tuple(sorted(parse_consumer_offsets(document).items()))


def _delay_offsets(document: object) -> SavedVersion:
    return parse_delay_offsets(document)


_TABLE_NAMES: Mapping[TableName, str] = {"topics": "topicConfigTable", "groups": "subscriptionGroupTable"}


def entry_fields(table: TableName, name: str, number: int) -> dict[str, object]:
    """Return the fields that a number stands for in a broker table, under RocketMQ's names."""
    if table == "topics":
        return {
            "topicName": name, "readQueueNums": number + 1, "writeQueueNums": number + 2, "perm": 4 + 2 * (number % 2),
            "topicFilterType": "SINGLE_TAG", "topicSysFlag": number % 3, "order": number % 2 == 1,
        }  # fmt: skip
    return {
        "groupName": name, "consumeEnable": number % 2 == 0, "consumeFromMinEnable": number % 3 == 0,
        "consumeBroadcastEnable": number % 5 == 0, "retryQueueNums": number + 1, "retryMaxTimes": number + 3,
        "brokerId": number % 2, "whichBrokerWhenConsumeSlowly": number + 1,
        "notifyConsumerIdsChangedEnable": number % 3 == 1,
    }  # fmt: skip


_NUMBER_FIELDS: Mapping[TableName, str] = {"topics": "readQueueNums", "groups": "retryQueueNums"}


def _table_entries(table: TableName, document: object) -> SavedVersion:
    """Return name and number of each entry; an entry of no number is text. Raises ValueError."""
    match document:
        case dict():
            entries = document.get(_TABLE_NAMES[table]) or {}
        case _:
            raise ValueError("the document is not an object")
    if not isinstance(entries, dict):
        raise ValueError("the table is not an object")
    return tuple(sorted((name, _number_of(table, name, entry)) for name, entry in entries.items()))


def _number_of(table: TableName, name: str, entry: object) -> int | str:
    if isinstance(entry, dict):
        number = entry.get(_NUMBER_FIELDS[table], 0)
        if isinstance(number, int) and entry == entry_fields(table, name, number - 1):
            return number - 1
    return str(entry)


READERS: dict[str, Callable[[object], SavedVersion]] = {
    DELAY_OFFSETS: _delay_offsets,
    CONSUMER_OFFSETS: _consumer_offsets,
    LIGHT_CONSUMER_OFFSETS: _consumer_offsets,
    **{path: partial(_table_entries, table) for path, table in BROKER_TABLES.items()},
}
"""Parsers of the state files' documents; each raises ValueError for a document of another form."""


def versions_in(files: Mapping[str, bytes], paths: Iterable[str]) -> dict[str, SavedVersion]:
    """Return the version in each state file, or else in its backup; () if neither is readable."""
    return {path: _saved_version_in(files, path) for path in paths}


def torn_in(files: Mapping[str, bytes], paths: Iterable[str]) -> frozenset[tuple[str, bytes]]:
    """Return name and content of each state file or backup that is not readable.

    Such a file is empty, torn or foreign.
    """
    names = (name for path in paths for name in (path, f"{path}.bak"))
    return frozenset((name, files[name]) for name in names if name in files and not _is_document(files[name]))


@lru_cache(maxsize=1 << 10)
def _is_document(stored: bytes) -> bool:
    return load_config({"it": stored}, "it") is not None


def _saved_version_in(files: Mapping[str, bytes], path: str) -> SavedVersion:
    names = (path, f"{path}.bak")
    return _version_in_bytes(path, tuple((name, files[name]) for name in names if name in files))


@lru_cache(maxsize=1 << 10)
def _version_in_bytes(path: str, there: tuple[tuple[str, bytes], ...]) -> SavedVersion:
    """Read a file and its backup.

    Cached, because thousands of images have the same few versions.
    """
    document = load_config(dict(there), path)
    if document is None:
        return ()
    try:
        return READERS[path](document)
    except ValueError:
        return ("unreadable", repr(document))


@dataclass(frozen=True, slots=True)
class _Version:
    """One version, saved between the events `first` and `last`."""

    content: SavedVersion
    first: int
    last: int


class ProgressLedger:
    """The versions of each state file since the disk was opened.

    `there` are the versions before the open.

    After a kill, `legal` has the versions that may have been on the disk then. Until the event `until`, the end of the
    following open, a power loss may leave any of them, because the last writes of the killed process were not synced.
    """

    def __init__(
        self, there: Mapping[str, SavedVersion], *, legal: LegalVersions | None = None, until: int = -1
    ) -> None:
        self._versions = {}
        for path, content in there.items():
            others = sorted((legal or {}).get(path, frozenset()) - {content}, key=repr)
            ends = [-1, *(until for _ in others)]
            self._versions[path] = [_Version(each, -1, end) for each, end in zip((*others, content), ends, strict=True)]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the recorded state files."""
        return tuple(self._versions)

    def saved(self, path: str, content: SavedVersion, first: int, last: int) -> None:
        """Record the version that an operation between the events `first` and `last` saved."""
        versions = self._versions[path]
        if versions[-1].content != content:
            versions.append(_Version(content, first, last))

    def legal_versions(self, event: int) -> LegalVersions:
        """Return the legal versions of each file after a crash at an event.

        They are the last saved version and the one being saved.
        """
        return {path: frozenset(_legal(versions, event)) for path, versions in self._versions.items()}


def _legal(versions: list[_Version], event: int) -> Iterable[SavedVersion]:
    begun = [version for version in versions if version.first <= event]
    returned = max(number for number, version in enumerate(begun) if version.last <= event)
    return (version.content for version in begun[returned:])
