"""Follow the index of a live store: the counted entries of its files, and their parts.

An offset of a stream has three numbers for each index file: entries taken, slots, and room for entries. A store writes
an entry before the header counts it, and never changes it afterwards. The number of slots is found once, when there are
entries, and kept, so that all batches of a file are read alike. While the bytes do not show it, nothing is taken. If
they still do not when the next file has begun, that is a problem. Numbers of entries never go back: after a recovery
has cut a file, new entries past the offset are read.
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
"""Entries taken, slots (0: unknown) and room for entries, by the name of the index file."""


class IndexFollower:
    """Reads the index files of stores; `slots` is the user's setting."""

    unknown: IndexOffsets = {}  # noqa: RUF012 - it is never changed

    def __init__(self, slots: int | None = None) -> None:
        self._slots = slots

    def first(self, store: str) -> IndexOffsets:
        """Return the offset of an index without files."""
        return {}

    def target(self, store: str) -> IndexOffsets:
        """Return how many entries can be read now."""
        return self.advanced(store, {}, None)

    def advanced(self, store: str, start: IndexOffsets, bytes_max: int | None) -> IndexOffsets:
        """Return how far the index can be read from `start` on, by `bytes_max` bytes at most.

        Files that no longer exist are left out.
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
            with suppress(OSError):  # a file that retention removed, or that cannot be read yet: the next look decides
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
        """Yield the parts with the entries between two offsets of a stream."""
        return together(_parts(store, start, end))

    def _counted(
        self, file: IndexFile, taken: list[int] | None, *, is_newest: bool, entries_max: int | None
    ) -> list[int] | None:
        """Return the offset of a file after this look, or None. Raises OSError."""
        entries, slots, room = taken or (0, 0, 0)
        if taken is not None and entries >= room:
            return taken  # full, or abandoned
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
            # the reader of a file that was removed meanwhile finds that out
            file = listed.get(name, IndexFile(name, Path(store) / "index" / name, 0))
            whole = (file.size_bytes - HEADER_BYTES - SLOT_BYTES * slots) // ENTRY_BYTES - 1
            if name in listed and whole < entries:
                yield _said(store, name, "IX_CUT", (entries - max(first, whole)) * ENTRY_BYTES), 0
            yield IndexPart(store, file, slots, first, entries), (entries - first) * ENTRY_BYTES


def _said(store: str, name: str, code: str, size_bytes: int) -> Said:
    return Said((Problem(store, f"index/{name}", code, None, size_bytes, PROBLEM_CODES[code]),))
