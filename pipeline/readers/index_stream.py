"""Follow the index of a store that may be at work: which entries its files count, and which parts hold them.

An offset of a stream has three numbers for each index file: entries taken, slots, and entries that there is room for.
A store writes an entry before the header counts it, and never changes it then. The number of slots is found once, when
entries are there, and kept: so all batches of a file read it alike. As long as the bytes do not tell it, nothing is
taken; if they do not when the next file has begun, that is a problem. Numbers of entries never go back: of a file that
a recovery cut, entries come again where they are new ones, behind the offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from tornpage.pipeline.readers.parts import IndexPart, Part, Said
from tornpage.pipeline.readers.planning import together
from tornpage.pipeline.readers.problems import PROBLEM_CODES, Problem
from tornpage.properties.decode.index import ENTRY_BYTES, HEADER_BYTES, SLOT_BYTES
from tornpage.properties.decode.index_files import IndexFile, IndexReader, list_index

__all__ = ["IndexFollower", "IndexOffsets"]

IndexOffsets: TypeAlias = dict[str, list[int]]
"""Entries taken, slots (0: the bytes do not tell) and room for entries, by the name of the index file."""


class IndexFollower:
    """Looks at the index files of stores; `slots` is what the user states."""

    unknown: IndexOffsets = {}  # noqa: RUF012 - nobody changes it

    def __init__(self, slots: int | None = None) -> None:
        self._slots = slots

    def first(self, store: str) -> IndexOffsets:
        """Return where the index begins: with no file."""
        return {}

    def target(self, store: str) -> IndexOffsets:
        """Return how many entries can be read now."""
        return self.advanced(store, {}, None)

    def advanced(self, store: str, start: IndexOffsets, bytes_max: int | None) -> IndexOffsets:
        """Return how far the index can be read from `start` on, by `bytes_max` bytes at most.

        Files that are no longer there are left out.
        """
        files, _, closed = list_index(Path(store))
        hidden = {label for label, _ in closed}
        if "index" in hidden:
            return start
        latest = {name: taken for name, taken in start.items() if f"index/{name}" in hidden}
        left = None if bytes_max is None else max(1, bytes_max // ENTRY_BYTES)
        for file in files:
            taken = start.get(file.name)
            before = 0 if taken is None else taken[0]
            with suppress(OSError):  # a file that retention takes away, or may not be read yet: the next look will tell
                taken = self._counted(file, taken, is_newest=file is files[-1], entries_max=left)
            if taken is not None:
                latest[file.name] = taken
                left = None if left is None else left - (taken[0] - before)
        return dict(sorted(latest.items()))

    def bounded(self, start: IndexOffsets, latest: IndexOffsets, target: IndexOffsets) -> IndexOffsets:
        """Return the offsets up to which `latest` lies within `target`; never below `start`."""
        found: IndexOffsets = {}
        for name, (entries, *shape) in latest.items():
            if name in target:
                found[name] = [max(start.get(name, [0])[0], min(entries, target[name][0])), *shape]
            elif name in start:
                found[name] = start[name]
        return found

    def tasks(self, store: str, start: IndexOffsets, end: IndexOffsets) -> Iterator[tuple[Part, ...]]:
        """Yield what holds the entries between two offsets of a stream."""
        return together(_parts(store, start, end))

    def _counted(
        self, file: IndexFile, taken: list[int] | None, *, is_newest: bool, entries_max: int | None
    ) -> list[int] | None:
        """Return what the offset says of a file after this look; None: nothing yet. Raises OSError."""
        entries, slots, room = taken or (0, 0, 0)
        if taken is not None and entries >= room:
            return taken  # full, or given up
        with IndexReader(file) as reader:
            if taken is None:
                if not reader.entry_count:
                    return None
                reader.settle(self._slots)
                if reader.slots is None or reader.entries_max is None:
                    return None if is_newest else [reader.entry_count, 0, 0]
                slots, room = reader.slots, reader.entries_max - 1
            counted = min(reader.entry_count, room)
        if entries_max is not None:
            counted = min(counted, entries + entries_max)
        return [max(entries, counted), slots, room]


def _parts(store: str, start: IndexOffsets, end: IndexOffsets) -> Iterator[tuple[Part, int]]:
    listed = {file.name: file for file in list_index(Path(store))[0]}
    for name, (entries, _, room) in sorted(start.items()):
        if name not in end and entries < room:
            yield _said(store, name, "IX_CUT", (room - entries) * ENTRY_BYTES), 0
    for name, (entries, slots, _) in sorted(end.items()):
        first = start[name][0] if name in start else 0
        if not slots and name not in start:
            yield _said(store, name, "IX_SLOTS_UNKNOWN", entries * ENTRY_BYTES), 0
        elif slots and first < entries:
            # a file that is gone meanwhile is found to be so by who reads it
            file = listed.get(name, IndexFile(name, Path(store) / "index" / name, 0))
            whole = (file.size_bytes - HEADER_BYTES - SLOT_BYTES * slots) // ENTRY_BYTES - 1
            if name in listed and whole < entries:
                yield _said(store, name, "IX_CUT", (entries - max(first, whole)) * ENTRY_BYTES), 0
            yield IndexPart(store, file, slots, first, entries), (entries - first) * ENTRY_BYTES


def _said(store: str, name: str, code: str, size_bytes: int) -> Said:
    return Said((Problem(store, f"index/{name}", code, None, size_bytes, PROBLEM_CODES[code]),))
