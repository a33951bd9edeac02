"""The policies that experiments compare, by their names in figures."""

from dataclasses import dataclass
from types import MappingProxyType

from tornpage.impl.config.policy import AllocationPolicy, CommitPolicy, FlushDiskType, FlushPolicy
from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.pair import Pair
from tornpage.sim.scenario import Pool, Scenario
from tornpage.sim.workload import OpenPoisson, Sizes, Workload

__all__ = ["ASYNC", "POLICIES", "SYNC", "StorePolicy", "policies"]

SYNC = FlushPolicy(FlushDiskType.SYNC_FLUSH)
ASYNC = FlushPolicy(FlushDiskType.ASYNC_FLUSH)
ONE_AHEAD = AllocationPolicy()
RECORD_BYTES = 1024


@dataclass(frozen=True, slots=True)
class StorePolicy:
    """Settings of a store: flushes, pool, prepared files, and a second copy."""

    name: str
    flush: FlushPolicy
    pool: Pool | None = None
    allocation: AllocationPolicy = ONE_AHEAD
    replica: Pair | None = None

    def scenario(
        self,
        device: DeviceTimes,
        load: Workload | float,
        *,
        messages: int | None = None,
        duration_ns: int | None = None,
        file_bytes: int = 1 << 30,
    ) -> Scenario:
        """Return a scenario with this policy.

        A number as load stands for an open load of records of 1 KiB.
        """
        if isinstance(load, int | float):
            load = OpenPoisson(load, Sizes.of(RECORD_BYTES))
        return Scenario(
            flush=self.flush,
            allocation=self.allocation,
            pool=self.pool,
            replica=self.replica,
            device=device,
            workload=load,
            file_bytes=file_bytes,
            messages=messages,
            duration_ns=duration_ns,
        )


def _timed(interval_ms: int, least_pages: int = 4) -> FlushPolicy:
    return FlushPolicy(FlushDiskType.ASYNC_FLUSH, interval_ms, least_pages)


def _woken(least_pages: int) -> FlushPolicy:
    return FlushPolicy(FlushDiskType.ASYNC_FLUSH, 500, least_pages, 10_000, False)


POLICIES = MappingProxyType(
    {
        policy.name: policy
        for policy in (
            StorePolicy("sync", SYNC),
            StorePolicy("woken at 4 pages", _woken(4)),
            StorePolicy("woken at 64 pages", _woken(64)),
            StorePolicy("async 10 ms", _timed(10)),
            StorePolicy("async 100 ms", _timed(100)),
            StorePolicy("async 500 ms", ASYNC),
            StorePolicy("async 500 ms at 256 pages", _timed(500, 256)),
            StorePolicy("pool + async 500 ms", ASYNC, Pool(5, CommitPolicy())),
        )
    }
)


def policies(*names: str) -> tuple[StorePolicy, ...]:
    """Return the policies of these names."""
    return tuple(POLICIES[name] for name in names)
