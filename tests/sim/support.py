"""Small, complete scenarios, and devices with only one cost."""

import numpy as np

from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy
from tornpage.sim.device.device import PRESETS, DeviceTimes
from tornpage.sim.device.samples import SYNC_DTYPE, Rows
from tornpage.sim.distributions import Distribution
from tornpage.sim.scenario import Scenario
from tornpage.sim.workload import OpenPoisson, Sizes, Workload

__all__ = [
    "ASYNC",
    "MS",
    "NO_ROLL",
    "ONE_AHEAD",
    "ON_DEMAND",
    "SYNC",
    "US",
    "open_load",
    "scenario",
    "sync_only",
    "syncs",
]

US = 1_000
MS = 1_000_000
NO_ROLL = 1 << 40
"""A file size that no test fills."""
SYNC = FlushPolicy(FlushDiskType.SYNC_FLUSH)
ASYNC = FlushPolicy(FlushDiskType.ASYNC_FLUSH)
ON_DEMAND = AllocationPolicy(files_ahead=0)
ONE_AHEAD = AllocationPolicy(files_ahead=1)


def open_load(rate_per_s: float, size_bytes: int = 1024) -> OpenPoisson:
    """Return a Poisson load of records of one size."""
    return OpenPoisson(rate_per_s, Sizes.of(size_bytes))


def sync_only(sync: Distribution) -> DeviceTimes:
    """Return a device on which only a sync takes time."""
    return DeviceTimes(name="sync only", sync=sync)


def syncs(seed: int, count: int, *, mode: int = 0, state: int = 0, rate_per_s: int = 0, times: float = 1.0) -> Rows:
    """Return rows of made-up syncs: longer with pages and gap, all pairs about equally often."""
    rng = np.random.default_rng(seed)
    rows = np.zeros(count, SYNC_DTYPE)
    rows["round"], rows["mode"], rows["state"], rows["rate_per_s"] = np.arange(count) % 8, mode, state, rate_per_s
    rows["pages"] = rng.choice([1, 2, 4, 8, 16, 64, 256], count)
    rows["gap_ns"] = rng.choice([0, 30 * US, 300 * US, 5 * MS], count)
    grown_ns = 500 * rows["pages"] + rows["gap_ns"] // 100
    rows["took_ns"] = (times * rng.lognormal(11.0, 0.3, count)).astype(np.int64) + grown_ns
    return rows


def scenario(
    *,
    flush: FlushPolicy = SYNC,
    allocation: AllocationPolicy = ONE_AHEAD,
    device: DeviceTimes | Distribution = PRESETS["vm-ext4"],
    workload: Workload | float = 5_000.0,
    file_bytes: int = NO_ROLL,
    messages: int | None = 1_000,
    duration_ns: int | None = None,
) -> Scenario:
    """Return a scenario.

    A distribution stands for a device of syncs only, a number for the rate of an open load.
    """
    return Scenario(
        flush=flush,
        allocation=allocation,
        device=device if isinstance(device, DeviceTimes) else sync_only(device),
        workload=open_load(workload) if isinstance(workload, int | float) else workload,
        file_bytes=file_bytes,
        messages=messages,
        duration_ns=duration_ns,
    )
