"""Which directories of a run were judged, and held: one that is left again, byte for byte, is not judged again.

What the judges say is a function of content, settings, time and the log that survived; two kills often leave the same,
and more often what their recoveries leave is the same: that is not recovered again either. Every twentieth time it is
judged, or recovered again, all the same.
"""

import os
from collections.abc import Iterator

import mmh3

from impl.components import Components
from model.state import CommitLog
from properties.cases.case import Settings
from properties.kills.judge import LegalLogs, Snapshot, judge_directory

__all__ = ["Judged", "digest_of"]

_AGAIN_EVERY = 20


class Judged:
    """The memory of one run, whose stores all have the same `components`.

    `count` says how often somebody judged, `twice` how often what a recovery had left was recovered again.
    """

    def __init__(self, components: Components) -> None:
        self.count = 0
        self.twice = 0
        self._components = components
        self._survivors: dict[tuple[bytes, int], CommitLog] = {}
        self._recovered: dict[tuple[bytes, int], CommitLog] = {}
        self._passed_over = {"judged": 0, "recovered again": 0}

    def judge(self, directory: str, left: Snapshot, legal: LegalLogs, *, settings: Settings, now_ms: int) -> None:
        """Judge a directory whose files are `left`, unless that is known to hold. Raises GuaranteeBroken."""

        def digest(content: Snapshot) -> tuple[bytes, int]:
            names = "\0".join((repr(settings), *sorted(_directories(directory)))).encode()
            return mmh3.hash_bytes(names + digest_of(content)), now_ms

        recovering: dict[tuple[bytes, int], CommitLog] = {}

        def once_more(recovered: Snapshot, survivor: CommitLog) -> bool:
            key = digest(recovered)
            if self._recovered.get(key) == survivor and self._passes_over("recovered again"):
                return False
            self.twice += 1
            recovering[key] = survivor
            return True

        key = digest(left)
        survivor = self._survivors.get(key)
        if survivor is not None and legal.get(survivor.end_offset) == survivor and self._passes_over("judged"):
            return
        self.count += 1
        self._survivors[key] = judge_directory(
            directory, legal, settings=settings, components=self._components, now_ms=now_ms, once_more=once_more
        )
        self._recovered.update(recovering)  # it held

    def _passes_over(self, what: str) -> bool:
        """Whether something known is passed over: but for each twentieth time."""
        self._passed_over[what] += 1
        return self._passed_over[what] % _AGAIN_EVERY != 0


def digest_of(left: Snapshot) -> bytes:
    """Return a 128-bit hash of names and contents."""
    return mmh3.hash_bytes(b"".join(f"{name}\0{len(data)}\0".encode() + data for name, data in left.items()))


def _directories(path: str) -> Iterator[str]:
    """Yield the directories below one; an empty one is in no snapshot."""
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield entry.name
                yield from (f"{entry.name}/{name}" for name in _directories(entry.path))
