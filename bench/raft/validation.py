"""Compare the simulator of Raft groups with the members of `impl/raft`.

Groups run in virtual time. Both have the same links, disks, time-outs and puts. Compared are the times of puts and of
failovers. With the policy of DLedger there is nothing to compare, since a member of `impl/raft` confirms durable
entries only.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tornpage.bench.compared import Compared
from tornpage.bench.raft.real_member import RealMember
from tornpage.sim.device.device import PRESETS
from tornpage.sim.pair import LINKS
from tornpage.sim.raft.group import RaftRun, run_raft
from tornpage.sim.raft.links import jittered
from tornpage.sim.raft.member import RaftMember
from tornpage.sim.raft.scenario import NS_PER_MS, RaftScenario

__all__ = ["RAFT_GROUPS", "RaftGroup", "validate_raft"]

_S = 1_000 * NS_PER_MS


@dataclass(frozen=True, slots=True)
class RaftGroup:
    """One configuration of a group."""

    name: str
    scenario: RaftScenario


def _scenario(members: int, link: str, duration_s: int, *, loss: float = 0.0, **changes: object) -> RaftScenario:
    return RaftScenario(
        members=members,
        link=replace(jittered(LINKS[link]), loss=loss),
        device=PRESETS["vm-ext4"],
        duration_ns=duration_s * _S,
        **changes,  # type: ignore[arg-type]
    )


RAFT_GROUPS = (
    RaftGroup("3, same rack", _scenario(3, "same rack", 3, rate_per_s=1_000.0)),
    RaftGroup("5, other zone", _scenario(5, "other zone", 3, rate_per_s=1_000.0)),
    RaftGroup("3, other zone, 64 clients", _scenario(3, "other zone", 1, clients=64)),
    RaftGroup(
        "3, same rack, kills",
        _scenario(3, "same rack", 240, rate_per_s=50.0, kill_after_ns=2 * _S, restart_ns=1 * _S),
    ),
    RaftGroup(
        "5, other zone, 1 % lost, kills",
        _scenario(5, "other zone", 180, loss=0.01, rate_per_s=50.0, kill_after_ns=2 * _S, restart_ns=1 * _S),
    ),
    RaftGroup(
        "7, other region, narrow time-outs, kills",
        _scenario(
            7, "other region", 180, rate_per_s=20.0, kill_after_ns=2 * _S, restart_ns=1 * _S,
            election_min_ns=600 * NS_PER_MS, election_max_ns=660 * NS_PER_MS,
        ),
    ),
)  # fmt: skip


def validate_raft(
    seed: int, progress: Callable[[str], None], groups: tuple[RaftGroup, ...] = RAFT_GROUPS
) -> Iterator[Compared]:
    """Yield the figures of each group."""
    for group in groups:
        progress(group.name)
        simulated, measured = (_figures(run_raft(group.scenario, seed, kind=kind)) for kind in (RaftMember, RealMember))
        for name, value in simulated.items():
            yield Compared(group.name, name, value, measured[name])


def _figures(run: RaftRun) -> dict[str, float]:
    if run.scenario.kill_after_ns is None:
        return {
            "put_p50_ms": float(np.quantile(run.put_ms, 0.5)),
            "put_p99_ms": float(np.quantile(run.put_ms, 0.99)),
            "puts_per_s": run.puts_per_s,
        }
    return {
        "failovers": float(len(run.failovers)),
        "failover_mean_ms": float(run.failover_ms.mean()),
        "failover_p90_ms": float(np.quantile(run.failover_ms, 0.9)),
        "failed_elections": float(sum(each.failed_elections for each in run.failovers)),
        "unavailable_s": run.unavailable_ns / 1e9,
    }
