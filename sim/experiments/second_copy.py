"""What does a second copy cost, and what does it save?

The master flushes every 500 ms. A put waits for nothing, for its own disk, or for a replica that has received it or
made it durable. The loss of the master's machine loses what the replica has not received. A power loss of both loses
what neither disk has.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tornpage.impl.config.policy import FlushPolicy
from tornpage.sim.distributions import Constant, Int64s
from tornpage.sim.experiments.policies import ASYNC, SYNC, StorePolicy
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Progress, Row, Setup
from tornpage.sim.experiments.words import grouped, listed, number, of, span_ms, span_us
from tornpage.sim.pair import LINKS, Link, Pair, Replication, replicate
from tornpage.sim.results.crashes import crash_moments
from tornpage.sim.results.tables import quantile
from tornpage.sim.results.trace import Trace

__all__ = ["SECOND_COPY"]

RATE = 1_000.0
MESSAGES = 60_000
LOSSES = 1_000
_POLL = Constant(100_000_000)
"""An idle sender of an ASYNC_MASTER of RocketMQ looks for new bytes every 100 ms."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a put waits for."""

    name: str
    flush: FlushPolicy = ASYNC
    waits: bool = True
    acknowledge: str = "received"
    slow_sender: bool = False

    def pair(self, link: Link, setup: Setup) -> Pair:
        """Return the pair over a link; the replica has a disk like that of the master."""
        pair = Pair(link, self.waits, device=setup.device)
        if self.acknowledge == "durable":
            pair = replace(pair, acknowledge="durable")
        return replace(pair, master_round=_POLL) if self.slow_sender else pair


POLICIES = (
    Policy("no wait, 100 ms", waits=False, slow_sender=True),
    Policy("no wait, 5 ms", waits=False),
    Policy("own disk", flush=SYNC, waits=False),
    Policy("received"),
    Policy("durable there", acknowledge="durable"),
    Policy("own disk and received", flush=SYNC),
)
LOSSY = replace(LINKS["other zone"], name="other zone, 0.1 % lost", loss=0.001)
LINKS_COMPARED = (LINKS["same rack"], LINKS["other zone"], LOSSY, LINKS["other region"])


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per link and policy."""
    messages = setup.count(MESSAGES, least=2_000)
    for link in LINKS_COMPARED:
        for policy in POLICIES:
            progress(f"{link.name}: {policy.name}")
            scenario = StorePolicy(policy.name, policy.flush).scenario(setup.device, RATE, messages=messages)
            trace = setup.trace(replace(scenario, replica=policy.pair(link, setup)))
            assert isinstance(trace.scenario.replica, Pair)
            copy = replicate(trace.scenario.replica, setup.seed, trace.committed_ns, trace.size)
            yield _row(link, policy, trace, copy, setup)


def _row(link: Link, policy: Policy, trace: Trace, copy: Replication, setup: Setup) -> Row:
    moments = crash_moments(trace, setup.count(LOSSES), seed=setup.seed)
    took = np.sort(trace.put_ns - trace.arrival_ns)
    machine, both = (
        _answered_and_lost(trace, safe_ns, moments)
        for safe_ns in (copy.received_ns, np.minimum(trace.durable_ns, copy.durable_ns))
    )
    return {
        "link": link.name,
        "policy": policy.name,
        "put_p50_us": quantile(took, 0.5) / 1000,
        "put_p99_us": quantile(took, 0.99) / 1000,
        "machine_lost_mean": float(machine.mean()),
        "machine_lost_max": int(machine.max()),
        "both_lost_mean": float(both.mean()),
        "both_lost_max": int(both.max()),
        "lag_p99_ms": float(np.quantile(copy.received_ns - trace.committed_ns, 0.99)) / 1e6,
        "messages_per_transfer": trace.messages / max(copy.transfers, 1),
        "retransmits": copy.retransmits,
    }


def _answered_and_lost(trace: Trace, safe_ns: Int64s, moments: Int64s) -> Int64s:
    """Return how many answered messages are not safe, at each moment."""
    answered = np.sort(trace.put_ns).searchsorted(moments, side="right")
    both = np.sort(np.maximum(trace.put_ns, safe_ns)).searchsorted(moments, side="right")
    return (answered - both).astype(np.int64)


def caption(rows: Sequence[Row]) -> str:
    """Describe cost, safety, and the share of the link."""
    told = []
    for link, own in grouped(rows, "link").items():
        by = {str(row["policy"]): row for row in own}
        disk, received, durable = by["own disk"], by["received"], by["durable there"]
        told.append(
            f"{link}: a put that waits for its own disk takes {span_us(of(disk, 'put_p50_us'))}, for a copy that was "
            f"received {span_us(of(received, 'put_p50_us'))} (p99 {span_us(of(received, 'put_p99_us'))}), for a "
            f"durable copy {span_us(of(durable, 'put_p50_us'))}."
        )
    free = [row for row in rows if str(row["policy"]).startswith("no wait")]
    worst = max(free, key=lambda row: of(row, "machine_lost_mean"))
    told.append(
        f"Without a wait the loss of the master's machine loses up to {number(of(worst, 'machine_lost_mean'))} "
        f"answered messages on average ({worst['policy']}, {worst['link']}; "
        f"lag p99 {span_ms(of(worst, 'lag_p99_ms'))})."
    )
    machine_safe = _safe(rows, "machine_lost_max")
    both_safe = _safe(rows, "both_lost_max")
    told.append(f"No answered message is lost with the machine under {listed(machine_safe) or 'no policy'}.")
    told.append(f"A power loss of both loses none under {listed(both_safe) or 'no policy'}.")
    return " ".join(told)


def _safe(rows: Sequence[Row], column: str) -> list[str]:
    """Return the policies that lose nothing over any link."""
    return [name for name, own in grouped(rows, "policy").items() if not any(of(row, column) for row in own)]


SECOND_COPY = Experiment(
    name="second-copy",
    title="The price of a second copy",
    question="What does a second copy cost and save?",
    setting="Open load of 1,000 messages/s of 1 KiB, asynchronous flush every 500 ms unless a put waits for its disk; "
    "a put that waits for the replica wakes its master, which looks every 5 ms else. "
    "Lost are answered messages: with the machine of the master, or in a power loss "
    "of both, at moments drawn evenly from the load.",
    chart=Chart(
        "points",
        Axis("put_p50_us", "put latency, p50", "µs", "log"),
        (
            Axis("machine_lost_mean", "lost with the master, mean", "messages", "log"),
            Axis("both_lost_mean", "lost with both, mean", "messages", "log"),
        ),
        series="link",
        label="policy",
    ),
    measure=measure,
    caption=caption,
)
