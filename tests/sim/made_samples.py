"""Invented samples and calibrations, complete and quick to make."""

import numpy as np

from tests.sim.support import MS, US, syncs
from tornpage.sim.device.calibration import Calibration, Snapshot
from tornpage.sim.device.samples import MODES, PROBE_DTYPE, PROBES, STATES, Rows, Samples
from tornpage.sim.distributions import Int64s

__all__ = ["MADE_MACHINE", "made_calibration", "made_samples"]

MIB = 1 << 20
MADE_MACHINE: Snapshot = {
    "processor": "made up",
    "cores": 2,
    "memory_mib": 1024,
    "kernel": "Linux 0",
    "file_system": "ext4",
    "read_ahead_kib": 8192,
    "cpu_pressure_share": 0.01,
}


def made_calibration(seed: int = 1, snapshot: Snapshot = MADE_MACHINE) -> Calibration:
    """Return a calibration of the samples of a seed."""
    return Calibration.from_samples(made_samples(seed), snapshot)


def made_samples(seed: int = 1, rounds: int = 8) -> Samples:
    """Return samples of both modes, all states and one load, and of every probe."""
    parts = [
        syncs(seed * 100 + mode * 10 + state, 100 * rounds, mode=mode, state=state, times=1 + state / 2)
        for mode in range(len(MODES))
        for state in range(len(STATES))
    ]
    load = syncs(seed + 7, 40 * rounds, state=STATES.index("reserved"), rate_per_s=2_000, times=1.3)
    return Samples(np.concatenate([*parts, load]), np.concatenate(_probes(seed, rounds)))


def _probes(seed: int, rounds: int) -> list[Rows]:
    rng = np.random.default_rng(seed)
    count = 8 * rounds
    gaps = rng.choice([10 * US, 150 * US, 2 * MS], count)
    position = np.arange(count) % 32 * MIB
    made: dict[str, tuple[int | Int64s, Int64s]] = {
        "touch": (MIB, 256 * 700 + (position % (8 * MIB) == 0) * 600 * US),
        "populate": (MIB, np.full(count, 60 * US)),
        "copy": (MIB, np.full(count, 70 * US)),
        "pwrite": (np.where(position % (2 * MIB) == 0, MIB, 4096), np.where(position % (2 * MIB) == 0, 90_000, 5_000)),
        "create": (1, np.full(count, 66 * US)),
        "reserve": (64 * MIB, np.full(count, 60 * US)),
        "sync_directory": (1, np.full(count, 130 * US)),
        "put": (1024, 10 * US + gaps // 100),
        "request": (1024, 15 * US + gaps // 100),
        "wake": (gaps, 60 * US + gaps // 50),
        "answer": (np.arange(count) % 3, 20 * US + np.arange(count) % 3 * 8 * US),
        "turn": (1 + np.arange(count) % 3, 50 * US + (1 + np.arange(count) % 3) * 8 * US),
    }
    assert set(made) == set(PROBES)
    return [_rows(probe, amount, gaps, position, took) for probe, (amount, took) in made.items()]


def _rows(probe: str, amount: int | Int64s, gaps: Int64s, position: Int64s, took: Int64s) -> Rows:
    rows = np.zeros(len(took), PROBE_DTYPE)
    rows["round"] = np.arange(len(rows)) % 8
    rows["probe"] = PROBES.index(probe)
    rows["amount"], rows["gap_ns"], rows["position"], rows["took_ns"] = amount, gaps, position, took
    return rows
