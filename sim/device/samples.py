"""What was measured on a disk, one row per thing done: the raw material of a calibration.

Rows are kept as they were measured, so that a later version can read more out of them. `round` numbers the passes over
all slices; even rounds are compared with odd ones to know the noise.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MODES", "PROBES", "PROBE_DTYPE", "STATES", "SYNC_DTYPE", "Samples"]

MODES = ("mmap", "pwrite")
"""How bytes came to the file before fdatasync: through a shared mapping, as the store's do, or by pwrite."""
STATES = ("reserved", "written", "sparse")
"""Of the blocks a sync writes: only reserved (fallocate), written and synced before, or nothing but a file size."""
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
"""What else takes time. `amount` of a row says how much was done: bytes, or answers, or 1.

| probe | what one row took |
|---|---|
| touch | first store into each page of `amount` bytes of a mapping in `state` |
| populate | have the kernel make `amount` bytes of a mapping in `state` writable |
| copy | storing `amount` bytes into pages that are there and dirty |
| pwrite | one pwrite of `amount` bytes into pages that are there |
| create | create a file and map it |
| reserve | reserve `amount` bytes of it |
| sync_directory | make its name durable |
| put | one put of a real store that flushes behind its answers; its record has `amount` bytes |
| request | the same of a store that syncs, while a sync runs |
| wake | from the begin of the put that wakes a sleeping flusher until its flush; `amount`: ns since the put before |
| answer | from the end of a flush of group commit until the answer with `amount` others before it, in a real store |
| turn | from one flush of group commit to the next, which is waited for, through `amount` answers, in a real store |
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
"""One fdatasync. `mode` and `state` are places in MODES and STATES. `rate_per_s` is 0 where pages and gap were chosen,
else that of the load on the real store under which it was seen. `pages`: whole 4 KiB pages that hold what was new.
`gap_ns`: from the return of the sync before."""

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
"""One of PROBES; `state` is 0 where it means nothing, `position` is a place in a file, `gap_ns` the
rest before: from one put to the next, from a flush to the put that wakes the next one."""

Rows = NDArray[np.void]


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Rows of SYNC_DTYPE and of PROBE_DTYPE, in the order in which they were measured."""

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
