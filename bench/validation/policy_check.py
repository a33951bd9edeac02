"""Run one policy on the real store: latency and loss measured, and recorded power cuts.

The store is driven on real files with the arrivals of the simulator. At each moment of this run the acknowledged
messages that no finished flush covers are what a power loss would take. The store then puts at the same arrivals on the
crash lab's disk. Its power is cut at drawn moments, and what recovery does not find is lost.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np

from tornpage.bench.calibration.driven import Driven, drive, real_time
from tornpage.bench.crashes.power_losses import power_losses
from tornpage.bench.validation.costs import durable_ns
from tornpage.impl.message.message import Message
from tornpage.sim.device.device import PRESETS
from tornpage.sim.distributions import Int64s
from tornpage.sim.experiments.policies import StorePolicy
from tornpage.sim.results.tables import quantile
from tornpage.sim.scenario import Scenario
from tornpage.sim.streams import stream
from tornpage.sim.workload import OpenPoisson, Sizes

__all__ = ["FILE_BYTES_MAX", "Checked", "check_policy", "measured_loss"]

MIB = 1 << 20
FILE_BYTES_MAX = 512 * MIB
ROOM = 1.2
"""A log file has this times the expected bytes, so that none is filled."""
MOMENTS = 10_000
"""Moments of a run at which its loss is looked at, for a share of the crashes."""
CUT_SECONDS = 2.0
CUT_MESSAGES_MAX = 10_000
"""How much of the arrivals is put on the recorded disk, whichever is less."""
BODY_BESIDES = 112
"""Bytes of a record besides its body on the recorded disk, whose topic has one letter."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The measured figures of a policy; losses count acknowledged messages."""

    messages: int
    put_p50_us: float
    put_p99_us: float
    loss_ms: float
    loss_messages: int
    cuts: int
    """Power cuts on the recorded disk."""
    cut_loss_ms: float
    cut_loss_messages: int


def check_policy(
    directory: str,
    policy: StorePolicy,
    *,
    rate_per_s: float,
    record_bytes: int,
    seconds: float,
    cuts: int,
    crash: str,
    share: float,
    seed: int,
    progress: Callable[[str], object] = lambda step: None,
) -> Checked:
    """Run a policy for some seconds below a directory, and cut its power on the recorded disk.

    `crash` is "power" or "kill"; a kill has no cuts. `share` is the share of the crashes whose loss counts: 1 is the
    worst crash. Raises HarnessError, StoreError or OSError if the store cannot be measured.
    """
    workload = OpenPoisson(rate_per_s, Sizes.of(record_bytes))
    scenario = Scenario(
        flush=policy.flush,
        allocation=policy.allocation,
        pool=policy.pool,
        device=PRESETS["vm-ext4"],  # the store uses no device of the simulator
        workload=workload,
        file_bytes=_room(rate_per_s * seconds * record_bytes),
        duration_ns=round(seconds * 1e9),
    )
    progress("the real store")
    with real_time():
        driven = drive(directory, scenario, seed)
    ordered = np.sort(driven.latency_ns)
    age_ns, lost = measured_loss(driven, crash, share)
    ages_ms, counts = [], []
    if crash == "power":
        progress("power cuts")
        arrivals = driven.due_ns[driven.due_ns <= CUT_SECONDS * 1e9][:CUT_MESSAGES_MAX]
        cut_bytes = _room(len(arrivals) * record_bytes)
        moments = np.sort(stream(seed, "crashes").integers(0, int(arrivals[-1]), cuts, endpoint=True))
        message = Message("T", bytes(record_bytes - BODY_BESIDES))
        for loss in power_losses(policy, arrivals, moments.tolist(), cut_bytes, message):
            ages_ms.append(loss.age_ms if loss.answered else 0.0)
            counts.append(loss.answered)
    if not ages_ms:
        ages_ms, counts = [0.0], [0]
    return Checked(
        messages=len(ordered),
        put_p50_us=quantile(ordered, 0.5) / 1e3,
        put_p99_us=quantile(ordered, 0.99) / 1e3,
        loss_ms=age_ns / 1e6,
        loss_messages=lost,
        cuts=cuts if crash == "power" else 0,
        cut_loss_ms=sorted(ages_ms)[_place(len(ages_ms), share)],
        cut_loss_messages=sorted(counts)[_place(len(counts), share)],
    )


def measured_loss(driven: Driven, crash: str, share: float = 1.0) -> tuple[int, int]:
    """Return the greatest loss of acknowledged messages: age (ns) and number.

    A power loss takes what no flush has covered, a kill what no commit of a pool has covered. With a `share` below 1
    the loss is the one that this share of evenly spread moments does not exceed.
    """
    if not len(driven.due_ns):
        return 0, 0
    if crash == "power":
        safe = durable_ns(driven)
    elif driven.scenario.pool is None:
        return 0, 0
    else:
        safe = _committed_ns(driven)
    end = int(driven.answered_ns.max())
    safe = np.minimum(safe, end)
    if share < 1:
        at = np.linspace(int(driven.answered_ns.min()), end, MOMENTS).astype(np.int64)
        began, covered = np.sort(driven.answered_ns), np.sort(safe).searchsorted(at, side="right")
        answered = began.searchsorted(at, side="right")
        ages = np.where(answered > covered, at - began[np.minimum(covered, len(began) - 1)], 0)
        return quantile(np.sort(ages), share), quantile(np.sort(np.maximum(answered - covered, 0)), share)
    exposed = np.maximum(safe - driven.answered_ns, 0)
    moments = np.unique(safe)
    answered = np.sort(driven.answered_ns).searchsorted(moments, side="left")
    covered = np.sort(safe).searchsorted(moments, side="left")
    return int(exposed.max()), int(np.maximum(answered - covered, 0).max())


def _place(count: int, share: float) -> int:
    return max(ceil(share * count) - 1, 0)


def _room(size_bytes: float) -> int:
    """Return the size of a log file that so many bytes do not fill, up to FILE_BYTES_MAX."""
    return min(-(-int(max(size_bytes * ROOM, MIB)) // MIB) * MIB, FILE_BYTES_MAX)


def _committed_ns(driven: Driven) -> Int64s:
    ends = np.append(driven.commits["end_ns"], np.iinfo(np.int64).max)
    return ends[np.searchsorted(driven.commits["to_offset"], driven.end_offset, side="left")]
