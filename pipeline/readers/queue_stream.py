"""Follow the consume queues of a live store: their complete units, and their parts.

An offset of a stream is a number of units for each queue: all before it were taken. A unit does not show whether it is
complete. But a store fills its queues in order, so a unit is complete once a used one follows. The last unit is taken
when a second look finds the same bytes. For a queue that appears later its begin is noted first, and its units are read
from there on. Offsets never go back: after a recovery has cut a queue, new units past the offset are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tornpage.pipeline.readers.parts import Part, QueuePart, Said
from tornpage.pipeline.readers.planning import together
from tornpage.pipeline.readers.problems import PROBLEM_CODES, Problem
from tornpage.properties.decode.consumequeue import UNIT_BYTES, QueueFile, list_queues
from tornpage.properties.decode.files import FileSource

__all__ = ["WINDOW_BYTES", "QueueFollower", "QueueOffsets"]

WINDOW_BYTES = 3276 * UNIT_BYTES
"""The distance after empty units in which a look searches the same file for used ones.

Used units in later files are seen anyway.
"""

QueueOffsets: TypeAlias = dict[str, int]
"""Units taken, by the directory of the queue below `consumequeue`."""


class QueueFollower:
    """Reads the queues of stores, and remembers the last unit of each for the next look."""

    unknown: QueueOffsets = {}  # noqa: RUF012 - it is never changed

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[int, bytes]] = {}

    def first(self, store: str) -> QueueOffsets:
        """Return where the queues begin."""
        return {key: files[0].base // UNIT_BYTES for key, files in _queues(store).items()}

    def target(self, store: str) -> QueueOffsets:
        """Return how many units there are, including those that are not certain yet.

        Cost: all units are read.
        """
        return {
            key: self._look(store, key, files, files[0].base // UNIT_BYTES, None)[0]
            for key, files in _queues(store).items()
        }

    def advanced(self, store: str, start: QueueOffsets, bytes_max: int | None) -> QueueOffsets:
        """Return how far the queues can be read from `start` on, each by `bytes_max` at most."""
        latest = dict(start)
        for key, files in _queues(store).items():
            if key not in start:
                latest[key] = files[0].base // UNIT_BYTES
                continue
            end, is_certain = self._look(store, key, files, start[key], bytes_max)
            latest[key] = end if is_certain else end - 1
            if bytes_max is not None:
                latest[key] = min(latest[key], start[key] + max(1, bytes_max // UNIT_BYTES))
        return dict(sorted(latest.items()))

    def bounded(self, start: QueueOffsets, latest: QueueOffsets, target: QueueOffsets) -> QueueOffsets:
        """Return the offsets up to which `latest` lies within `target`; never below `start`."""
        return {
            key: max(start.get(key, 0), min(units, target[key])) if key in target else start[key]
            for key, units in latest.items()
            if key in target or key in start
        }

    def tasks(self, store: str, start: QueueOffsets, end: QueueOffsets) -> Iterator[tuple[Part, ...]]:
        """Yield the parts with the units between two offsets of a stream."""
        queues = _queues(store)
        ranges = ((key, start.get(key, units), units) for key, units in sorted(end.items()))
        parts = (_parts(store, key, queues.get(key, []), *between) for key, *between in ranges)
        return together(chain.from_iterable(parts))

    def _look(
        self, store: str, key: str, files: Sequence[QueueFile], start: int, bytes_max: int | None
    ) -> tuple[int, bool]:
        """Return how many units a queue has, and whether the last one is certainly complete."""
        seen = _last_used(files, start * UNIT_BYTES, bytes_max)
        if seen is None:
            return start, True
        before, self._last[store, key] = self._last.get((store, key)), seen
        return seen[0], before == seen


def _queues(store: str) -> dict[str, list[QueueFile]]:
    root = Path(store) / "consumequeue"
    queues: dict[str, list[QueueFile]] = {}
    if root.is_dir():
        for file in list_queues(Path(store))[0]:
            queues.setdefault(file.path.parent.relative_to(root).as_posix(), []).append(file)
    return queues


def _last_used(files: Sequence[QueueFile], start: int, bytes_max: int | None) -> tuple[int, bytes] | None:
    """Return the number after the last used unit from a position on, and its bytes.

    The result is None without any. The search goes slightly over `bytes_max`. An unreadable file ends it: the next look
    may continue.
    """
    found: tuple[int, bytes] | None = None
    at = start
    try:
        for file in files:
            if found is not None and bytes_max is not None and at > start + bytes_max:
                break
            at = max(at, file.base)
            if at >= file.base + file.size_bytes:
                continue
            with FileSource(file.path, size_bytes_max=2**63 - 1, piece_bytes=WINDOW_BYTES) as source:
                while bytes_max is None or at <= start + bytes_max:
                    piece = source.read(at - file.base, WINDOW_BYTES)
                    count = len(piece) // UNIT_BYTES
                    units = np.frombuffer(piece, np.uint8, count * UNIT_BYTES).reshape(count, UNIT_BYTES)
                    used = np.flatnonzero(units.any(axis=1))
                    if not len(used):
                        break
                    last = int(used[-1]) * UNIT_BYTES
                    at += last + UNIT_BYTES
                    found = at // UNIT_BYTES, piece[last : last + UNIT_BYTES]
    except OSError:
        pass
    return found


def _parts(store: str, key: str, files: Sequence[QueueFile], first: int, end: int) -> Iterator[tuple[Part, int]]:
    """Yield the parts of one queue between two numbers of units, each with its bytes.

    Missing files are reported as problems.
    """
    position, stop = first * UNIT_BYTES, end * UNIT_BYTES
    label = os.fsencode(f"consumequeue/{key}").decode("utf-8", "replace")
    for file in files:
        begin = max(position, file.base)
        behind = min(stop, file.base + file.size_bytes - file.size_bytes % UNIT_BYTES)
        if begin < behind:
            if position < begin:
                yield _gone(store, label, position, begin), 0
            extension = Path(store) / "consumequeue_ext" / key
            start, end_position = begin - file.base, behind - file.base
            yield (
                QueuePart(
                    store,
                    file.path,
                    file.label,
                    file.topic,
                    file.queue_id,
                    file.base,
                    extension,
                    is_last=False,  # a used unit follows whatever is empty here
                    start=start,
                    stop=end_position,
                ),
                behind - begin,
            )
            position = behind
    if position < stop:
        yield _gone(store, label, position, stop), 0


def _gone(store: str, label: str, position: int, end: int) -> Said:
    units = (end - position) // UNIT_BYTES
    message = f"{PROBLEM_CODES['CQ_CUT']}: {units} units from queue offset {position // UNIT_BYTES} on"
    return Said((Problem(store, label, "CQ_CUT", None, end - position, message),))
