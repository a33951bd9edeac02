"""Read parts of index files in place, and find out how many slots they have.

A default index file has 400 MiB. A look-up needs its header, one slot and the entries of one chain. The number of slots
is not stored and is found from the bytes: the first used entry begins at the first non-zero word after the slots in
use, and a guess is right only if every entry is consistent with its slot and its predecessor.

Guarantees: reads are bounded, and nothing is mapped, locked or written. No bytes make it raise. The entry numbers of a
chain decrease, or the chain ends.

Source: `properties.decode.index` draws the file (RocketMQ's `IndexFile`).
"""

from __future__ import annotations

import re
import stat
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.index import ENTRY_BYTES, HEADER_BYTES, SLOT_BYTES, IndexEntry, IndexHeader

__all__ = [
    "DEFAULT_SLOTS",
    "BrokenChain",
    "IndexFile",
    "IndexReader",
    "list_index",
    "no_access",
    "opened_index",
    "unsettled",
]

DEFAULT_SLOTS = 5_000_000
_NAME = re.compile(r"[0-9]{17}")
_HEADER = struct.Struct(">qqqqii")
_ENTRY = struct.Struct(">iqii")
_SLOT = struct.Struct(">i")
_RANDOM_BYTES = 4096
_PIECE_BYTES = 1 << 20
_SAMPLES = 512
_HITS_MAX = 256
_ENOUGH = 0.9
"""Share of the checks that a guess must pass if none passes all, as in a file that a crash left torn."""


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file of the directory `index`; its name is the time of its creation."""

    name: str
    path: Path
    size_bytes: int

    @property
    def label(self) -> str:
        """Path relative to the store directory."""
        return f"index/{self.name}"


class BrokenChain(ValueError):
    """A chain names an entry that cannot be its next.

    The entries after that are lost to readers.
    """


def list_index(store_dir: Path) -> tuple[list[IndexFile], list[str], list[tuple[str, OSError]]]:
    """Return the index files, oldest first, foreign entries, and what could not be listed."""
    files: list[IndexFile] = []
    strays: list[str] = []
    closed: list[tuple[str, OSError]] = []
    directory = store_dir / "index"
    try:
        paths = sorted(directory.iterdir(), key=lambda path: path.name)
    except OSError as error:
        return files, strays, [] if isinstance(error, FileNotFoundError) else [("index", error)]
    for path in paths:
        try:
            status = path.stat()
        except OSError as error:
            closed.append((f"index/{path.name}", error))
            continue
        if _NAME.fullmatch(path.name) and stat.S_ISREG(status.st_mode) and status.st_size >= HEADER_BYTES:
            files.append(IndexFile(path.name, path, status.st_size))
        else:
            strays.append(f"index/{path.name}")
    return files, strays, closed


class IndexReader:
    """Header, slots and entries of one index file.

    Raises OSError if the file cannot be opened or read.

    `slots` is the given or found number of slots. It is None before `settle`, and if the bytes do not show the number.
    Use it as a context manager.
    """

    def __init__(self, file: IndexFile) -> None:
        self.file = file
        self.slots: int | None = None
        self._source = FileSource(file.path, size_bytes_max=2**63 - 1, piece_bytes=_RANDOM_BYTES)
        stored = self._source.read(0, HEADER_BYTES).ljust(HEADER_BYTES, b"\0")
        self.header = IndexHeader(*_HEADER.unpack(stored))
        self.header_bytes = stored

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._source.__exit__(kind, error, trace)

    @property
    def entry_count(self) -> int:
        """The number of entries that the header states."""
        return max(0, self.header.next_entry - 1)

    @property
    def entries_max(self) -> int | None:
        """The room for entries, with the unused entry 0; None while the slots are unknown."""
        return None if self.slots is None else self._room(self.slots)

    def has_content(self) -> bool:
        """Tell whether anything past the header is not zero. Raises OSError."""
        return self._source.next_nonzero(HEADER_BYTES) < self._source.end

    def settle(self, stated: int | None) -> tuple[int, ...]:
        """Find the number of slots; return those that the bytes allow, the best first.

        `stated` is used if the file has room for its entries with it. Otherwise `slots` is set if exactly one number
        passes all checks or, if none does, if exactly one passes nearly all.
        """
        if stated is not None:
            self.slots = stated if self._is_possible(stated) else None
            return () if self.slots is None else (stated,)
        if self.entry_count == 0:
            return ()
        scores = {slots: self.agreement(slots) for slots in self._guesses()}
        if not any(score == 1.0 for score in scores.values()):
            scores |= {slots: self.agreement(slots) for slots in self._guesses_by_end()}
        fitting = [slots for slots, score in sorted(scores.items()) if score == 1.0]
        fitting = fitting or [slots for slots, score in sorted(scores.items()) if score >= _ENOUGH]
        self.slots = fitting[0] if len(fitting) == 1 else None
        return tuple(fitting)

    def agreement(self, slots: int) -> float:
        """Return the share of checks that pass with this many slots; a sample in a big file."""
        if not self._is_possible(slots):
            return 0.0
        count = self.entry_count
        step = max(1, count // _SAMPLES)
        checks = [
            self._entry_bytes(slots, 0) == bytes(ENTRY_BYTES),
            self._entry(slots, 1).offset == self.header.begin_offset,
            self._entry(slots, count).offset == self.header.end_offset,
            count + 1 >= self._room(slots) or self._entry_bytes(slots, count + 1) == bytes(ENTRY_BYTES),
        ]
        for number in {*range(1, count + 1, step), count}:
            checks.append(self._hangs_together(slots, self._entry(slots, number)))
        return sum(checks) / len(checks)

    def slot(self, number: int) -> int:
        """Return the value of a slot; the slots must be settled."""
        stored = self._source.read(HEADER_BYTES + SLOT_BYTES * number, SLOT_BYTES)
        return int(_SLOT.unpack(stored)[0]) if len(stored) == SLOT_BYTES else 0

    def slot_words(self) -> array[int]:
        """Return all slots; the slots must be settled."""
        assert self.slots is not None
        words = array("i")
        position, end = HEADER_BYTES, HEADER_BYTES + SLOT_BYTES * self.slots
        while position < end:
            piece = self._source.read(position, min(_PIECE_BYTES, end - position))
            if len(piece) < SLOT_BYTES:
                break
            words.frombytes(piece[: len(piece) - len(piece) % SLOT_BYTES])
            position += len(piece) - len(piece) % SLOT_BYTES
        words.byteswap()
        return words

    def all_bytes(self) -> bytes:
        """Return the whole file, which must be small."""
        pieces: list[bytes] = []
        position = 0
        while piece := self._source.read(position, min(_PIECE_BYTES, self._source.end - position)):
            pieces.append(piece)
            position += len(piece)
        return b"".join(pieces)

    def entry(self, number: int) -> IndexEntry:
        """Return an entry; the slots must be settled."""
        assert self.slots is not None
        return self._entry(self.slots, number)

    def entry_bytes(self, number: int) -> bytes:
        """Return an entry as stored; the slots must be settled."""
        assert self.slots is not None
        return self._entry_bytes(self.slots, number)

    def chain(self, key_hash: int) -> Iterator[IndexEntry]:
        """Yield all entries in the slot of a hash, newest first, including those of other hashes.

        Raises BrokenChain if a link leads nowhere. A slot that names an entry past the last one is empty, as for
        RocketMQ.
        """
        assert self.slots is not None
        number = self.slot(key_hash % self.slots)
        if not 0 < number <= self.entry_count + 1:
            return
        while number:
            entry = self.entry(number)
            if number <= self.entry_count or entry[1:] != (0, 0, 0, 0):
                yield entry
            if not 0 <= entry.previous < number or entry.key_hash % self.slots != key_hash % self.slots:
                raise BrokenChain(f"entry {number} of slot {key_hash % self.slots} leads to {entry.previous}")
            number = entry.previous

    def _hangs_together(self, slots: int, entry: IndexEntry) -> bool:
        number, key_hash, offset, seconds, previous = entry
        if key_hash < 0 or offset < 0 or seconds < 0 or not 0 <= previous < number:
            return False
        if previous and self._entry(slots, previous).key_hash % slots != key_hash % slots:
            return False
        return self.slot(key_hash % slots) >= number

    def _guesses(self) -> set[int]:
        """Return numbers of slots that the first words after the slots in use allow."""
        guesses = {DEFAULT_SLOTS}
        in_use = max(0, self.header.slots_in_use)
        seen, position = 0, HEADER_BYTES
        while position < self._source.end and seen <= in_use + 1:
            position = self._source.next_nonzero(position) & ~3
            piece = self._source.read(position, min(_PIECE_BYTES, self._source.end - position))
            if len(piece) < 4:
                break
            words = array("I", piece[: len(piece) & ~3])
            if seen + len(words) - words.count(0) > in_use:
                for at, word in enumerate(words):
                    seen += bool(word)
                    # one more word may be a slot that the header does not count yet
                    if word and seen in (in_use + 1, in_use + 2):
                        guesses |= self._guesses_at(position + 4 * at)
            else:
                seen += len(words) - words.count(0)
            position += 4 * len(words)
        return {slots for slots in guesses if self._is_possible(slots)}

    def _guesses_at(self, position: int) -> set[int]:
        """Return the numbers of slots for which the word at `position` is in entry 1 or 2."""
        word = (position - HEADER_BYTES) // 4
        in_first = {word - 5 - field for field in range(5)}
        return in_first | {slots - 5 for slots in in_first}

    def _guesses_by_end(self) -> set[int]:
        """Return at most `_HITS_MAX` numbers of slots for which the last entry fits the header.

        The last entry then has the header's end offset.
        """
        needle = struct.pack(">q", self.header.end_offset)
        if not needle.strip(b"\0"):
            return set()
        guesses: set[int] = set()
        position = HEADER_BYTES
        while position < self._source.end and len(guesses) < _HITS_MAX:
            piece = self._source.read(position, min(_PIECE_BYTES, self._source.end - position))
            at = piece.find(needle)
            while at >= 0 and len(guesses) < _HITS_MAX:
                slots = (position + at - 4 - ENTRY_BYTES * self.entry_count - HEADER_BYTES) // SLOT_BYTES
                guesses |= {slots} if self._is_possible(slots) else set()
                at = piece.find(needle, at + 1)
            if len(piece) <= len(needle):
                break
            position += len(piece) - len(needle) + 1
        return guesses

    def _is_possible(self, slots: int) -> bool:
        left = self.file.size_bytes - HEADER_BYTES - SLOT_BYTES * slots
        return slots > 0 and left > 0 and left % ENTRY_BYTES == 0 and self.entry_count < left // ENTRY_BYTES

    def _room(self, slots: int) -> int:
        return (self.file.size_bytes - HEADER_BYTES - SLOT_BYTES * slots) // ENTRY_BYTES

    def _entry_bytes(self, slots: int, number: int) -> bytes:
        position = HEADER_BYTES + SLOT_BYTES * slots + ENTRY_BYTES * number
        return self._source.read(position, ENTRY_BYTES).ljust(ENTRY_BYTES, b"\0")

    def _entry(self, slots: int, number: int) -> IndexEntry:
        return IndexEntry(number, *_ENTRY.unpack(self._entry_bytes(slots, number)))


def opened_index(store_dir: Path, slots: int | None, findings: list[Finding]) -> Iterator[IndexReader]:
    """Yield an open reader for each index file, oldest first.

    A reader stays open until the next one is requested. Skipped files give findings. `reader.slots` is None if the
    number of slots is not known.
    """
    files, strays, closed = list_index(store_dir)
    for label in strays:
        message = "not an index file: the name is not a time of 17 digits, or the file is too short"
        findings.append(Finding("IX_STRAY_FILE", "note", label, None, message, "move it out of index"))
    findings += [no_access(label, error) for label, error in closed]
    for file in files:
        try:
            with IndexReader(file) as reader:
                reader.settle(slots)
                yield reader
        except OSError as error:
            findings.append(no_access(file.label, error))


def unsettled(reader: IndexReader, stated: int | None) -> Finding:
    """Return the finding of an index file whose number of slots is unknown."""
    if stated is not None:
        message = f"{stated} slots do not fit a file of {reader.file.size_bytes} bytes and {reader.entry_count} entries"
    else:
        fitting = ", ".join(map(str, reader.settle(None)))
        message = f"the number of slots is not clear: {f'{fitting} would fit' if fitting else 'none fits the entries'}"
    remedy = "give the broker's settings (--broker-config) or its maxHashSlotNum (--slots)"
    return Finding("IX_SLOTS_UNKNOWN", "note", reader.file.label, None, message, remedy)


def no_access(label: str, error: OSError) -> Finding:
    """Return the finding of an index file that cannot be read."""
    message = f"cannot be read: {error.strerror or error}"
    return Finding("IX_NO_ACCESS", "note", label, None, message, "look again with permission to read it")
