"""What does a failover cost, and how short may time-outs of elections be?

A leader is killed again and again. A failover ends with the first acknowledged put. In a second run no member is
killed, so each election is a false one. Causes of false elections are lost segments, which arrive 200 ms late, and
stalls of the disk of the leader, which sends no heartbeat during a sync.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tornpage.sim.device.stalls import StallLaw, StallSlice
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Progress, Row, Setup
from tornpage.sim.experiments.words import grouped, number, of, span_ms
from tornpage.sim.pair import LINKS
from tornpage.sim.raft.group import run_raft
from tornpage.sim.raft.links import jittered
from tornpage.sim.raft.scenario import NS_PER_MS, RaftScenario

__all__ = ["FAILOVER", "TIMEOUTS_MS"]

_S = 1_000 * NS_PER_MS
TIMEOUTS_MS = (100, 200, 400, 800, 1_600, 3_200)
KILLS = 60
CALM_S = 300
RATE = 20.0
STALLS = StallLaw.of(StallSlice(10 * _S, (5 * _S,), (round(each * NS_PER_MS),)) for each in np.geomspace(50, 1_000, 9))
"""A stall of 50 ms to 1 s every 10 s. Made up; `tornpage sim calibrate` measures those of a disk."""


@dataclass(frozen=True, slots=True)
class Case:
    """A group.

    Time-outs are drawn up to `range_of` times the shortest; `beats` heartbeats fit into that one.
    """

    name: str
    members: int = 3
    range_of: float = 2.0
    beats: float = 4.0
    loss: float = 0.0
    stalls: StallLaw | None = None

    def scenario(self, setup: Setup, timeout_ms: int, duration_ns: int) -> RaftScenario:
        """Return the group with a shortest time-out, without kills."""
        shortest_ns = timeout_ms * NS_PER_MS
        return RaftScenario(
            members=self.members,
            link=replace(jittered(LINKS["other zone"]), loss=self.loss),
            device=setup.device,
            stalls=self.stalls,
            duration_ns=duration_ns,
            rate_per_s=RATE,
            heartbeat_ns=round(shortest_ns / self.beats),
            election_min_ns=shortest_ns,
            election_max_ns=round(shortest_ns * self.range_of),
        )


CASES = (
    Case("3 members"),
    Case("5 members", members=5),
    Case("7 members", members=7),
    Case("7, narrow range", members=7, range_of=1.05),
    Case("3, few beats", beats=1.5),
    Case("3, 1 % lost", loss=0.01),
    Case("3, disk stalls", stalls=STALLS),
)


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per group and shortest time-out."""
    for case in CASES:
        progress(case.name)
        for timeout_ms in TIMEOUTS_MS:
            yield _row(case, timeout_ms, setup)


def _row(case: Case, timeout_ms: int, setup: Setup) -> Row:
    kills = setup.count(KILLS, least=2)
    cycle_ns = round((1 + case.range_of) * 2 * timeout_ms * NS_PER_MS) + 200 * NS_PER_MS
    scenario = case.scenario(setup, timeout_ms, kills * cycle_ns)
    pause_ns = timeout_ms * NS_PER_MS + 50 * NS_PER_MS
    killed = run_raft(replace(scenario, kill_after_ns=pause_ns, restart_ns=pause_ns), setup.seed)
    calm_ns = round(max(1.0, CALM_S * min(1.0, setup.effort)) * 1e9)
    calm = run_raft(replace(scenario, duration_ns=calm_ns), setup.seed)
    took_ms = killed.failover_ms
    return {
        "series": case.name,
        "members": case.members,
        "timeout_ms": timeout_ms,
        "timeout_max_ms": round(timeout_ms * case.range_of),
        "heartbeat_ms": timeout_ms / case.beats,
        "failovers": len(took_ms),
        "failover_p50_s": float(np.quantile(took_ms, 0.5)) / 1_000,
        "failover_p99_s": float(np.quantile(took_ms, 0.99)) / 1_000,
        "failed_percent": 100.0 * sum(each.failed_elections for each in killed.failovers) / max(1, len(took_ms)),
        "false_per_hour": calm.false_elections / (calm_ns / 1e9) * 3_600,
        "without_leader_percent": 100.0 * calm.unavailable_ns / calm_ns,
        "put_max_s": float(calm.put_ms.max(initial=0.0)) / 1_000,
    }


def caption(rows: Sequence[Row]) -> str:
    """Describe the time of a failover, failed elections, and false ones."""
    told = []
    plain = grouped(rows, "series")["3 members"]
    short, long = plain[0], plain[-1]
    told.append(
        f"In a group of 3 half of the failovers take at most {span_ms(1_000 * of(short, 'failover_p50_s'))} at a "
        f"shortest time-out of {of(short, 'timeout_ms'):.0f} ms and {span_ms(1_000 * of(long, 'failover_p50_s'))} at "
        f"{of(long, 'timeout_ms'):.0f} ms: {number(_share(plain))} times the shortest time-out."
    )
    for name, own in grouped(rows, "series").items():
        failed = max(own, key=lambda row: of(row, "failed_percent"))
        false = max(own, key=lambda row: of(row, "false_per_hour"))
        quiet = [of(row, "timeout_ms") for row in own if of(row, "false_per_hour") == 0]
        least = f"none from {min(quiet):.0f} ms on" if quiet and quiet == _tail(own, len(quiet)) else "at all time-outs"
        told.append(
            f"{name}: up to {number(of(failed, 'failed_percent'))} failed elections in 100 failovers "
            f"({of(failed, 'timeout_ms'):.0f} ms)"
            + (
                f", up to {number(of(false, 'false_per_hour'))} false elections an hour "
                f"({number(of(false, 'without_leader_percent'))} % of the time without a leader, a put takes up to "
                f"{span_ms(1_000 * of(false, 'put_max_s'))}), {least}."
                if of(false, "false_per_hour")
                else ", no false election."
            )
        )
    return " ".join(told)


def _share(rows: Sequence[Row]) -> float:
    return float(np.median([1_000 * of(row, "failover_p50_s") / of(row, "timeout_ms") for row in rows]))


def _tail(rows: Sequence[Row], count: int) -> list[float]:
    return [of(row, "timeout_ms") for row in rows[-count:]]


FAILOVER = Experiment(
    name="failover",
    title="A failover",
    question="What does a failover cost, and how short may the time-outs of elections be?",
    setting=f"Groups of 3, 5 and 7 members. Links of another zone, {RATE:g} puts/s, time-outs drawn from the shortest "
    "one to twice that (narrow: 1.05 times), 4 heartbeats in the shortest time-out (few: 1.5). Clients know a new "
    "leader at once. A lost segment arrives 200 ms late. Stalls of a disk: one every 10 s, 50 ms to 1 s.",
    chart=Chart(
        "lines",
        Axis("timeout_ms", "shortest time-out of an election", "ms", "log"),
        (
            Axis("failover_p50_s", "failover, p50", "s", "log"),
            Axis("failover_p99_s", "failover, p99", "s", "log"),
            Axis("failed_percent", "failed elections", "per 100 failovers"),
            Axis("false_per_hour", "false elections", "per hour", "log"),
        ),
        series="series",
    ),
    measure=measure,
    caption=caption,
)
