"""Measurements of a disk, one row per operation: the raw material of a calibration.

Rows are kept as measured, so that a later version can read more out of them. `round` numbers the passes over all
slices. Even rounds are compared with odd ones to find the noise.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MODES", "PROBES", "PROBE_DTYPE", "STATES", "SYNC_DTYPE", "Samples"]

MODES = ("mmap", "pwrite")
"""How bytes reached the file before fdatasync: by a shared mapping, or by pwrite."""
STATES = ("reserved", "written", "sparse")
"""The blocks of a sync: reserved (fallocate), written and synced before, or unallocated."""
PROBES = (
    "touch",
    "populate",
    "copy",
    "pwrite",
    "create",
    "reserve",
    "sync_directory",
    "put",
    "request",
    "wake",
    "answer",
    "turn",
)
"""Other operations that take time; `amount` of a row is bytes, answers, or 1.

| probe | what one row measures |
|---|---|
| touch | first store into each page of `amount` bytes of a mapping in `state` |
| populate | have the kernel make `amount` bytes of a mapping in `state` writable |
| copy | store `amount` bytes into pages that are mapped and dirty |
| pwrite | one pwrite of `amount` bytes into pages that are in the cache |
| create | create a file and map it |
| reserve | reserve `amount` bytes of it |
| sync_directory | make its name durable |
| put | one put of a real store that flushes after its answers; its record has `amount` bytes |
| request | the same of a store that syncs, during a sync |
| wake | from the begin of the put that wakes a sleeping flusher to its flush; `amount`: ns since the put before |
| answer | from the end of a flush of group commit to the answer with `amount` others before it, in a real store |
| turn | from one flush of group commit to the next, for which puts wait, with `amount` answers, in a real store |
"""

SYNC_DTYPE = np.dtype(
    [
        ("round", np.int32),
        ("mode", np.int8),
        ("state", np.int8),
        ("rate_per_s", np.int32),
        ("pages", np.int32),
        ("gap_ns", np.int64),
        ("took_ns", np.int64),
    ]
)
"""One fdatasync.

`mode` and `state` index MODES and STATES. `rate_per_s` is 0 where pages and gap were chosen, and otherwise the rate of
the load on the real store. `pages` counts the whole 4 KiB pages with new bytes. `gap_ns` begins at the return of the
previous sync.
"""

PROBE_DTYPE = np.dtype(
    [
        ("round", np.int32),
        ("probe", np.int8),
        ("state", np.int8),
        ("position", np.int64),
        ("amount", np.int64),
        ("gap_ns", np.int64),
        ("took_ns", np.int64),
    ]
)
"""One measurement of PROBES.

`state` is 0 where it means nothing. `position` is a position in a file. `gap_ns` is the pause before: between two puts,
or from a flush to the put that wakes the next one.
"""

Rows = NDArray[np.void]


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Rows of SYNC_DTYPE and of PROBE_DTYPE, in the order of measurement."""

    syncs: Rows
    probes: Rows

    @classmethod
    def of(cls, syncs: Iterable[tuple[Any, ...]] = (), probes: Iterable[tuple[Any, ...]] = ()) -> "Samples":
        """Return the samples of these rows."""
        return cls(np.array(list(syncs), SYNC_DTYPE), np.array(list(probes), PROBE_DTYPE))

    @classmethod
    def joined(cls, parts: Iterable["Samples"]) -> "Samples":
        """Return the rows of all parts, in their order."""
        found = [cls.of(), *parts]
        return cls(np.concatenate([part.syncs for part in found]), np.concatenate([part.probes for part in found]))
