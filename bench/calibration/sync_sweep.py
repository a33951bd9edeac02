"""Measure fdatasync after a chosen number of new pages and a chosen pause.

In a passive log, a large batch is the effect of a slow sync before it, so that size and time are confounded. Here both
are drawn. Records of 1 KiB follow each other as in a log file. So the first page of a sync has mostly been written by
the previous sync, as in the store.
"""

import os
from time import perf_counter_ns, sleep

import numpy as np

from tornpage.bench.calibration.scratch_file import ScratchFile, scratch_file
from tornpage.impl.config.policy import PAGE_BYTES
from tornpage.sim.device.samples import MODES, STATES, Samples

__all__ = ["sync_sweep"]

RECORD_BYTES = 1024
GAPS_US = (0, 10, 35, 75, 150, 300, 700, 1_500, 5_000)
SMALL_PAGES = (1, 2, 3, 4, 6, 8, 16)
SMALL_TIMES = 3
"""The number of each small size at each gap in a slice."""
LARGE = ((64, GAPS_US), (256, GAPS_US[::2]), (1_024, (0, 5_000)), (4_096, (5_000,)))
SPIN_NS = 120_000
"""Pauses up to this are spun, since a sleep takes longer."""


def sync_sweep(directory: str, mode: str, state: str, rng: np.random.Generator, round_number: int) -> Samples:
    """Return the syncs of one slice, some 200 in random order. Raises OSError."""
    steps = [(pages, gap) for pages in SMALL_PAGES for gap in GAPS_US] * SMALL_TIMES
    steps += [(pages, gap) for pages, gaps in LARGE for gap in gaps]
    order = [steps[place] for place in rng.permutation(len(steps)).tolist()]
    size_bytes = sum(pages for pages, _ in steps) * PAGE_BYTES
    records = rng.integers(1, PAGE_BYTES // RECORD_BYTES, len(steps), endpoint=True).tolist()
    with scratch_file(directory, size_bytes, state=state) as file:
        store = _store_mapped if mode == "mmap" else _store_written
        rows, position = [], 0
        returned_ns = perf_counter_ns()
        for (pages, gap_us), ends_with in zip(order, records, strict=True):
            end = _end(position, pages, ends_with * RECORD_BYTES)
            _pause(returned_ns + gap_us * 1_000)
            store(file, position, end)
            begun_ns = perf_counter_ns()
            os.fdatasync(file.fd)
            ended_ns = perf_counter_ns()
            synced = -(-end // PAGE_BYTES) - position // PAGE_BYTES
            rows.append(
                (
                    round_number,
                    MODES.index(mode),
                    STATES.index(state),
                    0,
                    synced,
                    begun_ns - returned_ns,
                    ended_ns - begun_ns,
                )
            )
            returned_ns, position = ended_ns, end
    return Samples.of(syncs=rows)


def _end(position: int, pages: int, in_last_page: int) -> int:
    """Return where an append ends that begins at `position` and reaches `pages` pages.

    The first page counts.
    """
    last_page = position // PAGE_BYTES + pages - 1
    return max(last_page * PAGE_BYTES + in_last_page, position + RECORD_BYTES)


def _pause(until_ns: int) -> None:
    left_ns = until_ns - perf_counter_ns()
    if left_ns > SPIN_NS:
        sleep((left_ns - SPIN_NS // 2) / 1e9)
    while perf_counter_ns() < until_ns:
        pass


def _store_mapped(file: ScratchFile, begin: int, end: int) -> None:
    file.memory[begin:end] = bytes(end - begin)


def _store_written(file: ScratchFile, begin: int, end: int) -> None:
    os.pwrite(file.fd, bytes(end - begin), begin)
