"""What does a quorum cost, and what does it save?

A put is answered after a majority has confirmed it. Members of `impl/raft` confirm after a sync. Members of DLedger
confirm after a copy to the page cache and sync every 10 ms. A power cut of one member of the quorum and the loss of the
leader then take acknowledged messages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tornpage.sim.experiments.values import Axis, Chart, Experiment, Progress, Row, Setup
from tornpage.sim.experiments.words import grouped, listed, number, of, per_s, span_ms
from tornpage.sim.pair import LINKS, Link
from tornpage.sim.raft.group import lost_in_group_cut, lost_in_quorum_cut, run_raft
from tornpage.sim.raft.links import jittered
from tornpage.sim.raft.scenario import RaftScenario
from tornpage.sim.results.tables import quantile

__all__ = ["MEMBERS", "QUORUM"]

MEMBERS = (1, 3, 5, 7)
RATE = 1_000.0
MESSAGES, MESSAGES_LOSSY = 4_000, 12_000
CLIENTS = 64
CUTS = 2_000
_SYNC, _FLUSH = "sync", "10 ms"
LINKS_COMPARED = (
    LINKS["same rack"],
    LINKS["other zone"],
    replace(LINKS["other zone"], name="lossy zone", loss=0.001),
    LINKS["other region"],
)
CLOSED_S = {"same rack": 0.3, "other zone": 1.0, "lossy zone": 4.0, "other region": 8.0}
"""The length of a closed load."""


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per policy, link and number of members."""
    for policy in (_SYNC, _FLUSH):
        for link in LINKS_COMPARED:
            progress(f"{policy}, {link.name}")
            for members in MEMBERS:
                yield _row(policy, link, members, setup)


def _row(policy: str, link: Link, members: int, setup: Setup) -> Row:
    messages = MESSAGES_LOSSY if link.loss else MESSAGES
    seconds = setup.count(messages, least=200) / RATE
    closed_s = CLOSED_S[link.name] * min(1.0, max(0.02, setup.effort))
    scenario = RaftScenario(
        members=members,
        link=jittered(link),
        device=setup.device,
        duration_ns=round(seconds * 1e9),
        acknowledge="durable" if policy == _SYNC else "received",
        rate_per_s=RATE,
    )
    opened = run_raft(scenario, setup.seed)
    closed = run_raft(replace(scenario, rate_per_s=0.0, clients=CLIENTS, duration_ns=round(closed_s * 1e9)), setup.seed)
    moments = np.linspace(scenario.duration_ns // 10, scenario.duration_ns, setup.count(CUTS)).astype(np.int64)
    cut, group = lost_in_quorum_cut(opened, moments), lost_in_group_cut(opened, moments)
    took = np.sort(opened.answered_ns - opened.arrived_ns)
    return {
        "series": f"{policy}, {link.name}",
        "policy": policy,
        "link": link.name,
        "members": members,
        "put_p50_ms": quantile(took, 0.5) / 1e6,
        "put_p99_ms": quantile(took, 0.99) / 1e6,
        "puts_per_s": closed.puts_per_s,
        "lost_mean": float(cut.mean()),
        "lost_max": int(cut.max()),
        "group_lost_mean": float(group.mean()),
        "group_lost_max": int(group.max()),
        "retransmits": opened.retransmits,
    }


def caption(rows: Sequence[Row]) -> str:
    """Describe cost by members, and what each policy loses."""
    told = []
    for link, own in grouped(rows, "link").items():
        times = [
            f"{'1 member' if members == '1' else f'{members} members'} "
            f"{span_ms(of(sync, 'put_p50_ms'))} with syncs and "
            f"{span_ms(of(flush, 'put_p50_ms'))} without"
            for members, (sync, flush) in grouped(own, "members").items()
            if members in ("1", "3", "7")
        ]
        told.append(f"{link}, p50: {'; '.join(times)}.")
    for policy, own in grouped(rows, "policy").items():
        three, seven = (
            max(of(row, "puts_per_s") for row in own if row["members"] == members and row["link"] == "same rack")
            for members in (3, 7)
        )
        told.append(
            f"Policy {policy}: {CLIENTS} clients put {per_s(three)} with 3 members of one rack and {per_s(seven)} "
            "with 7."
        )
    kept = [name for name, own in grouped(rows, "policy").items() if not any(of(row, "lost_max") for row in own)]
    worst = max(rows, key=lambda row: of(row, "lost_max"))
    told.append(
        f"A power cut of one member and the loss of the leader take no acknowledged message under "
        f"{listed(kept) or 'neither'}, and up to {number(of(worst, 'lost_max'))} under {worst['policy']} "
        f"({worst['link']}, {worst['members']} members; {number(of(worst, 'lost_mean'))} on average)."
    )
    return " ".join(told)


QUORUM = Experiment(
    name="quorum",
    title="The price of a quorum",
    question="What does a quorum cost, by members, link and sync policy, and what does it save?",
    setting="Policy sync: members confirm after a sync. Policy 10 ms: they confirm at once and sync every 10 ms, as "
    f"DLedger. The lossy zone loses 0.1 % of the segments. Open load of {RATE:,.0f} messages/s of 1 KiB for latencies "
    f"and losses, {CLIENTS} clients that wait for each put for the throughput. The p99 of a latency is 1.5 times its "
    "median. One follower of the quorum loses power, the leader is killed, and this follower leads the followers that "
    "had been away. A single member loses power.",
    chart=Chart(
        "lines",
        Axis("members", "size of the group", "members"),
        (
            Axis("put_p50_ms", "put latency, p50", "ms", "log"),
            Axis("put_p99_ms", "put latency, p99", "ms", "log"),
            Axis("puts_per_s", f"throughput, {CLIENTS} clients", "puts/s", "log"),
            Axis("lost_mean", "lost in a cut and a kill", "messages"),
        ),
        series="series",
    ),
    measure=measure,
    caption=caption,
)
