"""The compared policies: settings of a broker that decide latency and loss.

With a link, policies with a second copy are compared too. A put of them is answered after the acknowledgement of the
slave (SYNC_MASTER). The slave of RocketMQ acknowledges what it has received. That of this store may acknowledge what is
durable, for which no broker has a setting.
"""

from tornpage.impl.config.policy import AllocationPolicy, CommitPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.experiments.policies import ASYNC, SYNC, StorePolicy
from tornpage.sim.pair import Link, Pair
from tornpage.sim.scenario import Pool

__all__ = ["KINDS", "candidates", "kind_of", "with_replica"]

KINDS = ("sync", "timed", "woken", "pool", "replica")
INTERVALS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
TIMED_PAGES = (0, 4, 16)
WOKEN_PAGES = (1, 4, 16, 64)
POOL_BUFFERS = 5
COMMITS_MS = (5, 20, 200)
POOL_INTERVALS_MS = (5, 20, 100, 500)
PREPARED = AllocationPolicy()
WARMED = AllocationPolicy(warm_up=WarmUp.TOUCH_AND_FORCE)


def candidates() -> tuple[StorePolicy, ...]:
    """Return all policies of one machine that are compared, each with a name of its own.

    Every one of them can be written as settings of RocketMQ, so each has one file prepared ahead, warmed or not.
    """
    return (
        *(_prepared("sync", SYNC, is_warmed=is_warmed) for is_warmed in (False, True)),
        *(
            _prepared(f"async {interval} ms, {_pages(pages)}", _timed(interval, pages), is_warmed=is_warmed)
            for interval in INTERVALS_MS
            for pages in TIMED_PAGES
            for is_warmed in (False, True)
        ),
        *(
            _prepared(f"woken at {_pages(pages)}", _woken(pages), is_warmed=is_warmed)
            for pages in WOKEN_PAGES
            for is_warmed in (False, True)
        ),
        *(
            StorePolicy(
                f"pool {commit} ms + async {interval} ms",
                _timed(interval, 4),
                Pool(POOL_BUFFERS, CommitPolicy(commit, 4, commit)),
                PREPARED,
            )
            for commit in COMMITS_MS
            for interval in POOL_INTERVALS_MS
        ),
    )


def with_replica(link: Link, disk: DeviceTimes) -> tuple[StorePolicy, ...]:
    """Return the policies with a second copy past a link.

    The slave has a disk like that of the master.
    """
    received = Pair(link, device=disk)
    durable = Pair(link, acknowledge="durable", device=disk)
    return (
        StorePolicy("async 500 ms + received by a replica", ASYNC, None, PREPARED, received),
        StorePolicy("async 500 ms + durable at a replica", ASYNC, None, PREPARED, durable),
        StorePolicy("sync + received by a replica", SYNC, None, PREPARED, received),
    )


def kind_of(policy: StorePolicy) -> str:
    """Return the kind of a policy, one of KINDS."""
    if policy.replica is not None:
        return "replica"
    if policy.pool is not None:
        return "pool"
    if policy.flush.flush_disk_type is FlushDiskType.SYNC_FLUSH:
        return "sync"
    return "timed" if policy.flush.flush_commit_log_timed else "woken"


def _prepared(name: str, flush: FlushPolicy, *, is_warmed: bool) -> StorePolicy:
    return StorePolicy(f"{name}, warmed" if is_warmed else name, flush, None, WARMED if is_warmed else PREPARED)


def _timed(interval_ms: int, least_pages: int) -> FlushPolicy:
    return FlushPolicy(FlushDiskType.ASYNC_FLUSH, interval_ms, least_pages)


def _woken(least_pages: int) -> FlushPolicy:
    return FlushPolicy(FlushDiskType.ASYNC_FLUSH, 500, least_pages, flush_commit_log_timed=False)


def _pages(count: int) -> str:
    return f"{count} page{'' if count == 1 else 's'}"
