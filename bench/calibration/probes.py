"""Slices: short measurements of a disk, to be interleaved in random order.

Measurements minutes apart differ by more than the effects to be found (docs/disks/presets.md). Alternating measurements
do not. So a measurement runs in rounds, each of all slices in an order of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tornpage.bench.calibration.load_slices import load_slice
from tornpage.bench.calibration.page_slices import file_slice, page_slice
from tornpage.bench.calibration.sync_sweep import sync_sweep
from tornpage.impl.config.policy import FlushDiskType
from tornpage.sim.device.samples import MODES, STATES, Samples

__all__ = ["LOADS", "NEEDED_BYTES", "Slice", "slices"]

LOADS = (
    (FlushDiskType.SYNC_FLUSH, 500),
    (FlushDiskType.SYNC_FLUSH, 2_000),
    (FlushDiskType.SYNC_FLUSH, 8_000),
    (FlushDiskType.ASYNC_FLUSH, 4_000),
)
"""Loads on the real store, messages/s."""
LOAD_SECONDS = 0.4
NEEDED_BYTES = 512 << 20
"""Free space that no slice exceeds."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One measurement of some tenths of a second; its files are removed when `run` ends."""

    name: str
    work: Callable[[np.random.Generator, int], Samples]
    rng: np.random.Generator

    def run(self, round_number: int) -> Samples:
        """Measure; the rows carry `round_number`. Raises OSError, StoreError, HarnessError."""
        return self.work(self.rng, round_number)


def slices(
    directory: str,
    rng: np.random.Generator,
    *,
    modes: Sequence[str] = MODES,
    states: Sequence[str] = STATES,
    loads: Sequence[tuple[FlushDiskType, int]] = LOADS,
) -> list[Slice]:
    """Return the slices of one round below a directory, in random order.

    The directory must exist. Each round needs another call. A calibration needs the states "reserved" and "written", a
    load of each flush type, and at least one mode.
    """
    works: list[tuple[str, Callable[[np.random.Generator, int], Samples]]] = [
        ("pages", partial(page_slice, directory)),
        ("files", partial(file_slice, directory)),
    ]
    works += [
        (f"syncs, {mode}, {state}", partial(sync_sweep, directory, mode, state)) for mode in modes for state in states
    ]
    works += [
        (f"store, {flush.value}, {rate}/s", partial(load_slice, directory, flush, rate, LOAD_SECONDS))
        for flush, rate in loads
    ]
    found = [Slice(name, work, own) for (name, work), own in zip(works, rng.spawn(len(works)), strict=True)]
    return [found[place] for place in rng.permutation(len(found)).tolist()]
