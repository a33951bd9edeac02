"""Calibrate a disk: rounds of slices in random order until the time is over.

The result has the samples and the machine.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from tornpage.bench.calibration.probes import NEEDED_BYTES, slices
from tornpage.bench.calibration.snapshot import Pressure, machine_snapshot, pressure_between
from tornpage.bench.figures import file_system_of
from tornpage.outcomes.doctor import MEMORY_FILE_SYSTEMS
from tornpage.sim.device.calibration import Calibration
from tornpage.sim.device.samples import Samples
from tornpage.sim.device.sync_table import TooFewSamples

__all__ = ["ROUNDS_MIN", "Calibrated", "CannotCalibrate", "calibrate"]

ROUNDS_MIN = 2
"""One even, and one odd."""


class CannotCalibrate(Exception):
    """The directory cannot be measured, or was measured too briefly."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The result; `interrupted` by the user, with the finished rounds."""

    calibration: Calibration
    interrupted: bool


def calibrate(
    directory: str,
    *,
    seconds: float,
    modes: Sequence[str],
    seed: int,
    progress: Callable[[str, float], None] = lambda name, seconds: None,
    file_system: Callable[[str], str] = file_system_of,
) -> Calibrated:
    """Measure the disk below a directory for about `seconds`, at least two rounds.

    The directory must exist. A round that has begun is finished. An interrupted one is dropped, and with fewer than two
    rounds the interrupt is raised. Nothing is left below the directory. Raises CannotCalibrate, and OSError, StoreError
    or HarnessError when measuring fails.
    """
    require_disk(directory, file_system(directory), shutil.disk_usage(directory).free)
    rng = np.random.default_rng(seed)
    done: list[Samples] = []
    interrupted, begin = False, Pressure.now()
    started = perf_counter()
    try:
        while len(done) < ROUNDS_MIN or _has_time(perf_counter() - started, len(done), seconds):
            parts = []
            for one in slices(directory, rng, modes=modes):
                progress(f"round {len(done) + 1}: {one.name}", perf_counter() - started)
                parts.append(one.run(len(done)))
            done.append(Samples.joined(parts))
    except KeyboardInterrupt:
        if len(done) < ROUNDS_MIN:
            raise
        interrupted = True
    snapshot = machine_snapshot(directory)
    snapshot |= pressure_between(begin, Pressure.now(), os.cpu_count() or 1)
    try:
        return Calibrated(Calibration.from_samples(Samples.joined(done), snapshot), interrupted)
    except TooFewSamples as error:
        raise CannotCalibrate(
            f"too little was measured: {error}; give more --seconds, or a disk whose syncs take less than some 10 ms"
        ) from error


def require_disk(directory: str, kind: str, free_bytes: int) -> None:
    """Raise CannotCalibrate for a directory in memory or without room."""
    if kind in MEMORY_FILE_SYSTEMS:
        raise CannotCalibrate(
            f"{directory} is on {kind}, in memory, where a sync costs nothing; name a directory on a disk"
        )
    if free_bytes < NEEDED_BYTES:
        raise CannotCalibrate(
            f"{directory} has {free_bytes >> 20} MiB free, measuring takes up to {NEEDED_BYTES >> 20} MiB; make room"
        )


def _has_time(elapsed_s: float, rounds: int, seconds: float) -> bool:
    """Return whether another round as long as those before fits."""
    return elapsed_s * (rounds + 1) / rounds <= seconds
