"""A measured disk: raw samples, their machine, and how far to trust them.

The samples of even rounds are compared with those of odd ones. Only the time differs between them, so their difference
is noise, and no prediction can be more exact. The Kolmogorov-Smirnov distance is the largest difference between the
shares below any duration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tornpage.sim.device.calibrated_device import device_of
from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.device.samples import MODES, STATES, Rows, Samples
from tornpage.sim.distributions import Int64s

__all__ = ["NOISY_KS", "NOISY_PRESSURE", "Calibration", "Floor", "Snapshot", "ks_distance"]

Snapshot = Mapping[str, str | int | float]
"""What is known of the machine.

The keys are those of `bench.calibration.snapshot`; any may be missing.
"""
MACHINE = ("processor", "cores", "memory_mib", "kernel")
"""Keys that are equal in two snapshots of one machine."""
NOISY_KS = 0.1
NOISY_PRESSURE = 0.2
"""Samples are noisy if a process waited for a processor for more than this share of time."""
QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class Floor:
    """The difference between even and odd rounds, for one kind of sync measured in each round.

    `p50`, `p90` and `p99` are signed shares: (odd - even) / even.
    """

    what: str
    syncs: int
    ks: float
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """The samples of a disk and their machine; `device` gives a `Scenario.device`."""

    samples: Samples
    snapshot: Snapshot

    @classmethod
    def from_samples(cls, samples: Samples, snapshot: Snapshot) -> "Calibration":
        """Return the calibration of these samples, taken on the machine of the snapshot.

        Raises TooFewSamples when they make no device.
        """
        made = cls(samples, MappingProxyType(dict(snapshot)))
        for mode in made.modes or MODES[:1]:
            made.device(mode)
        return made

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that were measured."""
        return tuple(MODES[number] for number in np.unique(self.samples.syncs["mode"]).tolist())

    @property
    def rounds(self) -> int:
        """The number of measured rounds."""
        return len(np.unique(self.samples.syncs["round"]))

    def device(self, mode: str = "mmap") -> DeviceTimes:
        """Return the device whose bytes reach the file by a mode; its name shows noise.

        Raises TooFewSamples for a mode that was not measured.
        """
        kind = self.snapshot.get("file_system", "disk")
        name = f"calibrated {kind}, {mode}{' (noisy)' if self.is_noisy else ''}"
        window_bytes = int(self.snapshot.get("read_ahead_kib", 0)) << 10
        return device_of(self.samples, name=name, mode=mode, read_ahead_bytes=window_bytes)

    @property
    def floors(self) -> tuple[Floor, ...]:
        """The noise of each kind of sync, by mode and state of the blocks.

        Only syncs of chosen sizes count.
        """
        syncs = self.samples.syncs[self.samples.syncs["rate_per_s"] == 0]
        found = []
        for mode in range(len(MODES)):
            for state in range(len(STATES)):
                rows = syncs[(syncs["mode"] == mode) & (syncs["state"] == state)]
                if len(rows):
                    found.append(_floor(f"{MODES[mode]}, {STATES[state]}", rows))
        return tuple(found)

    @property
    def is_noisy(self) -> bool:
        """Whether the machine was too busy, or the rounds too few, to trust the samples."""
        return bool(self.noise)

    @property
    def noise(self) -> str:
        """Why the calibration is noisy, in a few words; empty if it is not."""
        reasons = []
        worst = max(self.floors, key=lambda floor: floor.ks, default=None)
        if worst is None or worst.ks > NOISY_KS:
            said = "nothing to compare" if worst is None else f"{worst.ks:.2f} for {worst.what}"
            reasons.append(f"even and odd of {self.rounds} rounds differ (KS {said}, limit {NOISY_KS:g})")
        pressure = float(self.snapshot.get("cpu_pressure_share", 0.0))
        if pressure > NOISY_PRESSURE:
            reasons.append(f"processes waited for a processor {pressure:.0%} of the time (limit {NOISY_PRESSURE:.0%})")
        return "; ".join(reasons)

    def strangeness(self, machine: Snapshot) -> str:
        """Return how the measured machine differs from that of a snapshot; empty if it does not."""
        differ = [
            f"{key} {self.snapshot.get(key, 'unknown')}, here {machine.get(key, 'unknown')}"
            for key in MACHINE
            if self.snapshot.get(key) != machine.get(key)
        ]
        return "; ".join(differ)


def _floor(what: str, rows: Rows) -> Floor:
    even, odd = (np.sort(rows["took_ns"][rows["round"] % 2 == rest]) for rest in (0, 1))
    if not len(even) or not len(odd):
        return Floor(what, len(rows), 1.0, *(0.0 for _ in QUANTILES))
    apart = [float(np.quantile(odd, share) / max(np.quantile(even, share), 1.0) - 1) for share in QUANTILES]
    return Floor(what, len(rows), ks_distance(even, odd), *apart)


def ks_distance(one: Int64s, two: Int64s) -> float:
    """Return the Kolmogorov-Smirnov distance of two ordered, non-empty samples."""
    at = np.concatenate((one, two))
    shares = (ordered.searchsorted(at, side="right") / len(ordered) for ordered in (one, two))
    return float(np.abs(next(shares) - next(shares)).max())
