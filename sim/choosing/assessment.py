"""The latency and the loss of one policy under one load, from traces.

A loss counts acknowledged messages only: a producer without an answer sends again. It is measured in messages and in
the age of the oldest lost message. Both are known at every moment of a trace. The worst moment for a loss is the last
one before a flush, or a commit, ends; these moments are looked at one by one. Quantiles are over moments drawn evenly
from the load.

With a second copy a power loss is that of the machine of the master. A message is safe from it once the slave has
received it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tornpage.sim.distributions import Int64s
from tornpage.sim.experiments.policies import StorePolicy
from tornpage.sim.pair import replicate
from tornpage.sim.results.crashes import crash_moments, losses
from tornpage.sim.results.tables import quantile, summarise_flushes, summarise_put_latency
from tornpage.sim.results.trace import Trace

__all__ = ["CRASHES", "Assessed", "assess", "merged"]

CRASHES = ("power", "kill")
MOMENTS = 10_000
"""Crash moments drawn from a trace, for quantiles."""
US, MS = 1e3, 1e6


@dataclass(frozen=True, slots=True)
class Assessed:
    """The figures of a policy over all its seeds.

    `put_p99_us` and the losses are those of the worst seed.
    """

    policy: StorePolicy
    seeds: int
    messages: int
    put_p50_us: float
    put_p99_us: float
    put_p99_best_us: float
    """The p99 of the best seed: with `put_p99_us` the range of the draw."""
    loss_ms: float
    """The loss that the wanted share of the crashes does not exceed."""
    loss_messages: int
    loss_ms_max: float
    """The loss of the worst crash."""
    loss_messages_max: int
    loss_bytes_max: int
    flushes_per_s: float
    written_per_byte: float
    """Bytes that the device wrote for each byte of a record."""
    put_refused: int
    rolls: int


def assess(policy: StorePolicy, trace: Trace, *, crash: str, share: float, seed: int) -> Assessed:
    """Return the figures of a policy from one trace.

    `crash` is one of CRASHES. `share` is the share of the crashes whose loss counts: 1 is the worst crash.
    """
    put, work = summarise_put_latency(trace), summarise_flushes(trace)
    if policy.replica is not None:
        copy = replicate(policy.replica, trace.seed, trace.committed_ns, trace.size)
        trace = replace(trace, durable_ns=np.minimum(trace.durable_ns, copy.received_ns))
    ages, messages, _ = _losses(trace, crash_moments(trace, MOMENTS, seed=seed), crash)
    worst_ages, worst_messages, worst_bytes = _losses(trace, _worst_moments(trace, crash), crash)
    age_max, messages_max = max(_last(ages), _last(worst_ages)), max(_last(messages), _last(worst_messages))
    return Assessed(
        policy=policy,
        seeds=1,
        messages=put.messages,
        put_p50_us=put.p50_us,
        put_p99_us=put.p99_us,
        put_p99_best_us=put.p99_us,
        loss_ms=(age_max if share == 1 else quantile(ages, share)) / MS,
        loss_messages=messages_max if share == 1 else quantile(messages, share),
        loss_ms_max=age_max / MS,
        loss_messages_max=messages_max,
        loss_bytes_max=_last(worst_bytes),
        flushes_per_s=work.flushes / (trace.load_ns / 1e9),
        written_per_byte=work.amplification,
        put_refused=int(np.count_nonzero(trace.size == 0)),
        rolls=len(trace.rolls),
    )


def merged(parts: Sequence[Assessed]) -> Assessed:
    """Return the figures of one policy over several seeds."""
    return Assessed(
        policy=parts[0].policy,
        seeds=sum(part.seeds for part in parts),
        messages=sum(part.messages for part in parts),
        put_p50_us=float(np.median([part.put_p50_us for part in parts])),
        put_p99_us=max(part.put_p99_us for part in parts),
        put_p99_best_us=min(part.put_p99_best_us for part in parts),
        loss_ms=max(part.loss_ms for part in parts),
        loss_messages=max(part.loss_messages for part in parts),
        loss_ms_max=max(part.loss_ms_max for part in parts),
        loss_messages_max=max(part.loss_messages_max for part in parts),
        loss_bytes_max=max(part.loss_bytes_max for part in parts),
        flushes_per_s=_mean(part.flushes_per_s for part in parts),
        written_per_byte=_mean(part.written_per_byte for part in parts),
        put_refused=sum(part.put_refused for part in parts),
        rolls=sum(part.rolls for part in parts),
    )


def _losses(trace: Trace, moments: Int64s, crash: str) -> tuple[Int64s, Int64s, Int64s]:
    """Return the losses of acknowledged messages at the moments.

    They are ages (ns), numbers and bytes, each sorted.
    """
    table = losses(trace, moments)
    answered = table[f"{crash}_answered"]
    age = np.where(answered > 0, table[f"{crash}_age_ns"], 0)
    size_bytes = np.where(answered > 0, table[f"{crash}_bytes"], 0)
    return np.sort(age), np.sort(answered), np.sort(size_bytes)


def _worst_moments(trace: Trace, crash: str) -> Int64s:
    """Return the last moments before messages become safe, and the end of the load."""
    if not trace.messages:
        return np.zeros(0, np.int64)
    safe_ns = np.unique(trace.durable_ns if crash == "power" else trace.committed_ns) - 1
    begin, end = int(trace.arrival_ns[0]), trace.load_ns
    return np.append(safe_ns[(safe_ns >= begin) & (safe_ns < end)], end)


def _last(ordered: Int64s) -> int:
    return int(ordered[-1]) if len(ordered) else 0


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
