"""Follow the log of a live store: its complete records, and the parts with them.

An offset of a stream is a physical offset between two items of the log. It moves over whole valid records and over end
marks. Other bytes stay undecided as long as nothing valid follows them, and the next look decides. If a valid record
follows and a second reading finds the same bytes bad, they are damage: a problem, and the stream continues after them.
A store appends in order, so a record is complete before the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tornpage.pipeline.readers.parts import LogPart, Part, Said
from tornpage.pipeline.readers.problems import PROBLEM_CODES, Problem
from tornpage.properties.decode.arrays import PIECE_BYTES, walk_arrays
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.record import Blank
from tornpage.properties.decode.store import LogFile, StoreView, look
from tornpage.properties.decode.walk import Unreadable, Zeros

__all__ = ["LogFollower", "advance", "first_offset", "parts_between"]


class LogFollower:
    """Reads the logs of stores; `file_bytes` is the configured size of a log file, if given."""

    unknown = 0

    def __init__(self, file_bytes: int | None = None) -> None:
        self._file_bytes = file_bytes

    def first(self, store: str) -> int:
        """Return where the log begins. Raises OSError."""
        return first_offset(store, self._file_bytes)

    def target(self, store: str) -> int:
        """Return how far the log can be read now. Cost: one walk over all of it."""
        return self.advanced(store, self.first(store), None)

    def advanced(self, store: str, start: int, bytes_max: int | None) -> int:
        """Return how far the log can be read from `start` on, slightly over `bytes_max` at most."""
        try:
            return advance(store, start, file_bytes=self._file_bytes, bytes_max=bytes_max)
        except OSError:
            return start  # a file that retention has removed, or that cannot be read yet: the next look decides

    def bounded(self, start: int, latest: int, target: int) -> int:
        """Return the lower one of `latest` and `target`; never below `start`."""
        return max(start, min(latest, target))

    def tasks(self, store: str, start: int, end: int) -> Iterator[tuple[Part, ...]]:
        """Yield one task for each file between two offsets of a stream."""
        return ((part,) for part in parts_between(store, start, end, self._file_bytes))


def first_offset(store: str, file_bytes: int | None = None) -> int:
    """Return the offset where the log begins, 0 where there is none yet. Raises OSError."""
    files = look(Path(store), file_bytes=file_bytes).files
    return files[0].base_offset if files else 0


def advance(store: str, start: int, *, file_bytes: int | None = None, bytes_max: int | None = None) -> int:
    """Return how far the log can be read from `start` on, slightly over `bytes_max` at most.

    Cost: one walk over these bytes. Raises OSError if a file cannot be read; the next look may succeed.
    """
    view = look(Path(store), file_bytes=file_bytes)
    offset = max(start, view.files[0].base_offset) if view.files else start
    last = None if bytes_max is None else offset + bytes_max
    while (file := _file_at(view, offset)) is not None and (last is None or offset < last):
        behind = _in_file(file, view.file_bytes, offset, last)
        if behind == offset:
            break
        offset = behind
    return offset


def parts_between(store: str, start: int, end: int, file_bytes: int | None = None) -> Iterator[LogPart | Said]:
    """Yield the parts with the records between two offsets of a stream."""
    view = look(Path(store), file_bytes=file_bytes)
    least = view.files[0].base_offset if view.files else end
    if start < min(least, end):
        size = min(least, end) - start
        message = f"{PROBLEM_CODES['CL_CUT']}: {size} bytes from the physical offset {start} on"
        yield Said((Problem(store, "commitlog", "CL_CUT", None, size, message),))
    for file in view.files:
        first, behind = max(start, file.base_offset), min(end, file.base_offset + view.file_bytes)
        if first < behind:
            base = file.base_offset
            yield LogPart(
                store, file.path, file.label, base, view.file_bytes, first - base, behind - base, is_exact=True
            )


def _file_at(view: StoreView, offset: int) -> LogFile | None:
    for file in view.files:
        if file.base_offset <= offset < file.base_offset + view.file_bytes and file.size_bytes:
            return file
    return None


def _in_file(file: LogFile, file_bytes: int, offset: int, last: int | None) -> int:
    """Return how far one file can be read.

    At an end mark that is the start of the next file.
    """
    base = file.base_offset
    confirmed = -1
    while True:
        with FileSource(file.path, size_bytes_max=file_bytes, piece_bytes=PIECE_BYTES) as source:
            doubt = None
            for batch in walk_arrays(
                source,
                base_offset=base,
                file_bytes=file_bytes,
                position=offset - base,
                stop=None if last is None else last - base,
                with_properties=False,
            ):
                for other in batch.others:
                    if isinstance(other.item, Blank):
                        return base + file_bytes
                    if isinstance(other.item, Zeros):
                        return other.item.offset
                    if isinstance(other.item, Unreadable) and other.item.offset != confirmed:
                        doubt = other.item
                        break
                if doubt is not None:
                    break
                offset = batch.end
            if doubt is None:
                return offset
            if doubt.offset + doubt.size_bytes >= base + source.end:
                return doubt.offset
        offset = confirmed = doubt.offset  # a valid record follows: read once more, then accept the damage
