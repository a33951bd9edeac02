"""Read consume queue files: units of 20 bytes, and their extension units.

    0                  8          12                 20
    | commit log offset | size     | tags code         |        one unit, big-endian and signed

Unit number n of a queue, counted over all its files, is the message with queue offset n. The third field is the tags
code of the message, its due time in queues of delayed messages, or the address of an extension unit:

    0      2            10           18       20
    | size | tags code   | store time | length | filter bits |

Guarantees: every unit of a file belongs to exactly one yielded item, and a run of empty units is one item. No bytes
make a walk raise. Memory is bounded, and holes are skipped.

Source: RocketMQ's `ConsumeQueue` and `ConsumeQueueExt`.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias

from tornpage.properties.decode.files import PIECE_BYTES, FileSource

__all__ = [
    "EXT_ADDRESS_MAX",
    "PREFILL_BYTES",
    "UNIT_BYTES",
    "EmptyUnits",
    "ExtReader",
    "ExtUnit",
    "QueueFile",
    "QueueItem",
    "QueueUnit",
    "java_hash",
    "list_queues",
    "read_ext",
    "walk_units",
]

UNIT_BYTES: Final = 20
PREFILL_BYTES: Final = 0x7FFFFFFF
"""The size in a unit that fills a file before the queue's first real unit; its offset and tags code are 0."""

EXT_ADDRESS_MAX: Final = -(2**31) - 1
"""A third field of this value or less is an address: the position in the extension, minus 2**63."""

_UNIT = struct.Struct(">qiq")
_EXT = struct.Struct(">hqqh")
_EMPTY = bytes(UNIT_BYTES)
_STEP_BYTES = 64 * UNIT_BYTES
_NAME = re.compile(r"[0-9]{20}")
_POSITION_MAX = 2**63 - 1
_QUEUE_ID = re.compile(r"0|-?[1-9][0-9]{0,9}")

assert _UNIT.size == UNIT_BYTES
assert _EXT.size == 20


@dataclass(frozen=True, slots=True)
class QueueUnit:
    """A unit that is not empty, as stored.

    `physical_offset` and `size_bytes` are those of the record that it points to.
    """

    queue_offset: int
    physical_offset: int
    size_bytes: int
    tags_code: int

    @property
    def raw(self) -> bytes:
        """The unit as stored."""
        return _UNIT.pack(self.physical_offset, self.size_bytes, self.tags_code)

    @property
    def is_prefill(self) -> bool:
        """Whether this unit fills the place of queue offsets that were never written."""
        return (self.physical_offset, self.size_bytes, self.tags_code) == (0, PREFILL_BYTES, 0)

    @property
    def is_possible(self) -> bool:
        """Whether it can point to a record; RocketMQ itself makes only this test."""
        return self.physical_offset >= 0 and self.size_bytes > 0

    @property
    def has_address(self) -> bool:
        """Whether the tags code is in the extension."""
        return self.tags_code <= EXT_ADDRESS_MAX


@dataclass(frozen=True, slots=True)
class EmptyUnits:
    """A run of `count` units of zeros that begins at `queue_offset`."""

    queue_offset: int
    count: int


QueueItem: TypeAlias = QueueUnit | EmptyUnits


@dataclass(frozen=True, slots=True)
class ExtUnit:
    """The extension unit of a message: its tags code and store time (ms).

    `raw` is the unit as stored; the filter's bit map follows its first 20 bytes.
    """

    tags_code: int
    store_timestamp: int
    raw: bytes = field(default=b"", repr=False, compare=False)

    @property
    def bit_map(self) -> bytes:
        """Return the filter bits of this message; empty if there are none."""
        return self.raw[_EXT.size :]


@dataclass(frozen=True, slots=True)
class QueueFile:
    """One file below `consumequeue`; `base` is the position in the queue that its name states."""

    topic: str
    queue_id: int
    path: Path
    label: str
    base: int
    size_bytes: int


def list_queues(store_dir: Path) -> tuple[list[QueueFile], list[str], list[tuple[str, OSError]]]:
    """Return queue files in order, labels of foreign entries, and failed listings.

    Labels are paths relative to `store_dir`. A topic that is not UTF-8 is shown with U+FFFD.
    """
    files: list[QueueFile] = []
    strays: list[str] = []
    closed: list[tuple[str, OSError]] = []
    root = store_dir / "consumequeue"
    for topic_dir in _folders(root, store_dir, strays, closed):
        topic = os.fsencode(topic_dir.name).decode("utf-8", "replace")
        for queue_dir in _folders(topic_dir, store_dir, strays, closed):
            if not _is_queue_id(queue_dir.name):
                strays.append(_label(queue_dir, store_dir))
                continue
            for path in _sorted_entries(queue_dir, store_dir, closed):
                label = _label(path, store_dir)
                try:
                    status = path.stat()
                except OSError as error:
                    closed.append((label, error))
                    continue
                if _is_a_position(path.name) and stat.S_ISREG(status.st_mode):
                    files.append(QueueFile(topic, int(queue_dir.name), path, label, int(path.name), status.st_size))
                else:
                    strays.append(label)
    return files, strays, closed


def _is_queue_id(name: str) -> bool:
    """Whether a name is a queue id: the canonical decimal of a signed 32-bit number."""
    return _QUEUE_ID.fullmatch(name) is not None and -(2**31) <= int(name) < 2**31


def walk_units(source: FileSource, *, base: int, position: int = 0) -> Iterator[QueueItem]:
    """Yield the items of one queue file whose first byte is at `base` in its queue.

    The walk begins at `position`, a multiple of 20. A truncated last unit is left out.
    """
    end = source.end - source.end % UNIT_BYTES
    size_bytes = _STEP_BYTES
    while position < end:  # in growing steps, so that a file full of small gaps is read once
        if source.read(position, UNIT_BYTES) == _EMPTY:
            next_used = min(source.next_nonzero(position), end)
            next_used -= next_used % UNIT_BYTES
            if next_used <= position:  # the file shrank meanwhile
                return
            yield EmptyUnits((base + position) // UNIT_BYTES, (next_used - position) // UNIT_BYTES)
            position = next_used
            continue
        piece = source.read(position, min(end - position, size_bytes))
        piece = piece[: len(piece) - len(piece) % UNIT_BYTES]
        if not piece:
            return
        size_bytes = min(2 * size_bytes, PIECE_BYTES - PIECE_BYTES % UNIT_BYTES)
        for offset, size, code in _UNIT.iter_unpack(piece):
            if not (offset or size or code):
                size_bytes = _STEP_BYTES
                break
            yield QueueUnit((base + position) // UNIT_BYTES, offset, size, code)
            position += UNIT_BYTES


class ExtReader:
    """Looks up extension units of one queue by address.

    Returns None for a missing or damaged unit and never raises.

    Keeps one file open; use it as a context manager.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._bases: list[int] | None = None
        self._source: FileSource | None = None
        self._base = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def look_up(self, address: int) -> ExtUnit | None:
        """Return the unit at `address` (see `EXT_ADDRESS_MAX`)."""
        place = address + 2**63
        try:
            source = self._source_of(place)
            if source is None:
                return None
            return read_ext(source, place - self._base)
        except OSError:
            return None

    def _source_of(self, place: int) -> FileSource | None:
        if self._bases is None:
            self._bases = sorted(int(entry.name) for entry in self._directory.iterdir() if _NAME.fullmatch(entry.name))
        base = max((base for base in self._bases if base <= place), default=None)
        if base is None:
            return None
        if self._source is None or base != self._base:
            self._close()
            self._source = FileSource(self._directory / f"{base:020}", size_bytes_max=2**63 - 1)
            self._source.__enter__()
            self._base = base
        return self._source

    def _close(self) -> None:
        if self._source is not None:
            self._source.__exit__(None, None, None)
            self._source = None


def read_ext(source: FileSource, position: int) -> ExtUnit | None:
    """Return the extension unit at a position of its file; None if it is not valid."""
    head = source.read(position, _EXT.size)
    if len(head) < _EXT.size:
        return None
    size, tags_code, store_timestamp, bits_bytes = _EXT.unpack(head)
    if bits_bytes < 0 or size != _EXT.size + bits_bytes or position + size > source.end:
        return None
    raw = source.read(position, size)
    return ExtUnit(tags_code, store_timestamp, raw) if len(raw) == size else None


def java_hash(text: str) -> int:
    """Return Java's hash of a string as a signed 32-bit number.

    It is computed as 31 * hash + unit over the UTF-16 units.
    """
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _is_a_position(name: str) -> bool:
    """Whether a unit can begin at the position in a file's name."""
    return bool(_NAME.fullmatch(name)) and int(name) % UNIT_BYTES == 0 and int(name) <= _POSITION_MAX


def _sorted_entries(directory: Path, store_dir: Path, closed: list[tuple[str, OSError]]) -> list[Path]:
    try:
        return sorted(directory.iterdir(), key=lambda path: path.name)
    except OSError as error:
        closed.append((_label(directory, store_dir), error))
        return []


def _folders(directory: Path, store_dir: Path, strays: list[str], closed: list[tuple[str, OSError]]) -> Iterator[Path]:
    """Yield the directories in a directory, in order.

    Other entries are added to `strays`, and those without permission to `closed`.
    """
    for path in _sorted_entries(directory, store_dir, closed):
        try:
            is_directory = path.is_dir()
        except OSError as error:
            closed.append((_label(path, store_dir), error))
            continue
        if is_directory:
            yield path
        else:
            strays.append(_label(path, store_dir))


def _label(path: Path, store_dir: Path) -> str:
    return os.fsencode(path.relative_to(store_dir).as_posix()).decode("utf-8", "replace")
