"""The costs of files and pages without syncs: creation, first touch, copying, pwrite."""

import os
from collections.abc import Iterator
from time import perf_counter_ns

import numpy as np

from tornpage.bench.calibration.scratch_file import ScratchFile, scratch_file, touch_pages
from tornpage.bench.figures import scratch
from tornpage.impl.io.os_files import OsFiles
from tornpage.sim.device.samples import PROBES, STATES, Samples

__all__ = ["file_slice", "page_slice"]

MIB = 1 << 20
TOUCHED_BYTES = 32 * MIB
"""Bytes of each state: four windows of read-ahead of 8 MiB."""
FILE_BYTES = (MIB, 16 * MIB, 64 * MIB)
COPIES = 64
COPY_BYTES = 256 << 10
WRITES = ((4 << 10, 64), (MIB, 8))
"""Sizes of a pwrite, and how many of each."""

Row = tuple[int, ...]


def page_slice(directory: str, rng: np.random.Generator, round_number: int) -> Samples:
    """Return samples of first touches, populating, copies and writes. Raises OSError.

    The states are in random order.
    """
    rows: list[Row] = []
    for number in rng.permutation(len(STATES)).tolist():
        with scratch_file(directory, TOUCHED_BYTES, state=STATES[number]) as file:
            rows += _touches(file, number)
            rows += _copies(file)
        with scratch_file(directory, TOUCHED_BYTES, state=STATES[number]) as file:
            rows += _populates(file, number)
            rows += _writes(file)
    return Samples.of(probes=((round_number, *row) for row in rows))


def file_slice(directory: str, rng: np.random.Generator, round_number: int) -> Samples:
    """Return the times of making files of several sizes, step by step. Raises OSError."""
    rows: list[Row] = []
    files = OsFiles()
    with scratch(directory) as path:
        for place in rng.permutation(len(FILE_BYTES)).tolist():
            size_bytes, name = FILE_BYTES[place], f"{path}/{place}"
            made_ns = perf_counter_ns()
            file = files.create(name)
            reserving_ns = perf_counter_ns()
            files.allocate(file, size_bytes)
            mapping_ns = perf_counter_ns()
            mapping = files.map(file)
            syncing_ns = perf_counter_ns()
            files.sync_directory(path)
            ended_ns = perf_counter_ns()
            files.unmap(mapping)
            files.close(file)
            files.unlink(name)
            rows += [
                (PROBES.index("create"), 0, 0, 1, 0, reserving_ns - made_ns + syncing_ns - mapping_ns),
                (PROBES.index("reserve"), 0, 0, size_bytes, 0, mapping_ns - reserving_ns),
                (PROBES.index("sync_directory"), 0, 0, 1, 0, ended_ns - syncing_ns),
            ]
    return Samples.of(probes=((round_number, *row) for row in rows))


def _touches(file: ScratchFile, state: int) -> Iterator[Row]:
    for begin in range(0, TOUCHED_BYTES, MIB):
        begun_ns = perf_counter_ns()
        touch_pages(file.memory, begin, begin + MIB)
        yield PROBES.index("touch"), state, begin, MIB, 0, perf_counter_ns() - begun_ns


def _copies(file: ScratchFile) -> Iterator[Row]:
    """Copy into the pages that were touched last, which are mapped and dirty."""
    record = bytes(COPY_BYTES)
    for number in range(COPIES):
        begin = TOUCHED_BYTES - (number % 4 + 1) * COPY_BYTES
        begun_ns = perf_counter_ns()
        file.memory[begin : begin + COPY_BYTES] = record
        yield PROBES.index("copy"), 0, begin, COPY_BYTES, 0, perf_counter_ns() - begun_ns


def _populates(file: ScratchFile, state: int) -> Iterator[Row]:
    """Populate half of the file; there is no row if the kernel does not support it."""
    for begin in range(0, TOUCHED_BYTES // 2, MIB):
        begun_ns = perf_counter_ns()
        if file.populate(begin, MIB):
            yield PROBES.index("populate"), state, begin, MIB, 0, perf_counter_ns() - begun_ns


def _writes(file: ScratchFile) -> Iterator[Row]:
    """Write over existing pages: the cost of a commit without first touches."""
    for size_bytes, times in WRITES:
        data, at = bytes(size_bytes), 0
        for _ in range(times):
            begun_ns = perf_counter_ns()
            os.pwrite(file.fd, data, at)
            yield PROBES.index("pwrite"), 0, at, size_bytes, 0, perf_counter_ns() - begun_ns
            at += size_bytes
