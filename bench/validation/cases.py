"""The cases that calibrate, and the held-out cases that are predicted.

No held-out case has the rate or interval of a calibrating one.

| calibrating | held out |
|---|---|
| group commit at 500, 1,500 and 4,000/s | 1,000, 2,500, 3,200/s, in bursts |
| group commit at 1,500/s into a warmed file | 1,000/s |
| timed flush, 20 ms, at 500, 2,000 and 8,000/s | 10 and 100 ms, 1 and 16 pages, 1,000 to 4,000/s; a warmed file |
| no such case | woken flush; transient store pool |

Other files are fresh (reserved blocks, no page touched). The highest rates keep one thread of CPython, which serves all
puts here, busy a third of the time. Higher rates would measure the interpreter.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tornpage.bench.calibration.driven import RECORD_BYTES
from tornpage.impl.config.policy import AllocationPolicy, CommitPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.sim.device.device import PRESETS
from tornpage.sim.scenario import Pool, Scenario
from tornpage.sim.workload import OnOffBursts, OpenLoad, OpenPoisson, Sizes

__all__ = ["CALIBRATING", "HELD_OUT", "Cases"]

MIB = 1 << 20
MS = 1_000_000
SLICE_NS = 550 * MS
"""No multiple of an interval: a flush at the end would be counted on one side only."""
FILE_BYTES = 16 * MIB
"""Room for a slice of any case without a file roll."""
RECORDS = Sizes.of(RECORD_BYTES)
GROUP = FlushPolicy(FlushDiskType.SYNC_FLUSH)

Cases = Mapping[str, Scenario]


def _timed(interval_ms: int, least_pages: int) -> FlushPolicy:
    return FlushPolicy(FlushDiskType.ASYNC_FLUSH, interval_ms, least_pages)


def _woken(least_pages: int) -> FlushPolicy:
    return FlushPolicy(FlushDiskType.ASYNC_FLUSH, 500, least_pages, flush_commit_log_timed=False)


def _case(
    flush: FlushPolicy,
    load: float | OpenLoad,
    *,
    warm_up: WarmUp = WarmUp.NONE,
    pool: Pool | None = None,
) -> Scenario:
    return Scenario(
        flush=flush,
        allocation=AllocationPolicy(0, warm_up),
        device=PRESETS["vm-ext4"],  # until a measured one exists
        workload=OpenPoisson(load, RECORDS) if isinstance(load, float) else load,
        file_bytes=FILE_BYTES,
        pool=pool,
        duration_ns=SLICE_NS,
    )


CALIBRATING: Cases = MappingProxyType(
    {
        "group commit 500/s": _case(GROUP, 500.0),
        "group commit 1500/s": _case(GROUP, 1_500.0),
        "group commit 4000/s": _case(GROUP, 4_000.0),
        "group commit 1500/s warmed": _case(GROUP, 1_500.0, warm_up=WarmUp.TOUCH_AND_FORCE),
        "timed 20 ms 500/s": _case(_timed(20, 1), 500.0),
        "timed 20 ms 2000/s": _case(_timed(20, 1), 2_000.0),
        "timed 20 ms 8000/s": _case(_timed(20, 1), 8_000.0),
    }
)

HELD_OUT: Cases = MappingProxyType(
    {
        "group commit 1000/s": _case(GROUP, 1_000.0),
        "group commit 2500/s": _case(GROUP, 2_500.0),
        "group commit 3200/s": _case(GROUP, 3_200.0),
        "group commit bursts 3000/s": _case(GROUP, OnOffBursts(3_000.0, 20 * MS, 20 * MS, RECORDS, 300.0)),
        "group commit 1000/s warmed": _case(GROUP, 1_000.0, warm_up=WarmUp.TOUCH_AND_FORCE),
        "timed 10 ms 1 page 1000/s": _case(_timed(10, 1), 1_000.0),
        "timed 100 ms 16 pages 3000/s": _case(_timed(100, 16), 3_000.0),
        "timed 10 ms 16 pages 4000/s": _case(_timed(10, 16), 4_000.0),
        "timed 100 ms 1 page 1000/s warmed": _case(_timed(100, 1), 1_000.0, warm_up=WarmUp.TOUCH),
        "woken 4 pages 1000/s": _case(_woken(4), 1_000.0),
        "woken 16 pages 4000/s": _case(_woken(16), 4_000.0),
        "pool 200 ms 1000/s": _case(_timed(100, 4), 1_000.0, pool=Pool(2)),
        "pool 20 ms 4000/s": _case(_timed(10, 4), 4_000.0, pool=Pool(2, CommitPolicy(20))),
    }
)
