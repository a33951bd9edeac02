"""Three issues of RocketMQ's users as scenarios: does the simulator reproduce them?

| issue | reported |
|---|---|
| 1372 | with a pool and a synchronous replica, puts went from below 2 ms to above 100 ms |
| 2439 | a pool of one buffer: "only remain 0 sheets", sends are rejected |
| 7524 | (with 7523) a pool and SYNC_FLUSH: every put timed out, as the flush was tried twice, before the commit |

The fix of 7524 was up to 1,000 tries, one each ms.

A replica receives only committed messages (1372). Two files are requested ahead, each with a buffer (2439). 4.9.3
leaves the pool unused under SYNC_FLUSH, so the simulator refuses that pair. For 7524 the experiment measures instead
how long messages wait for their commit under ASYNC_FLUSH, and which of them would have been too late.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tornpage.sim.distributions import Constant
from tornpage.sim.experiments.policies import ASYNC, POLICIES, StorePolicy
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Progress, Row, Setup
from tornpage.sim.experiments.words import grouped, number, of, span_ms
from tornpage.sim.results.tables import quantile
from tornpage.sim.scenario import ImpossibleScenario, Pool, Replica

__all__ = ["REPLAY"]

REPLICA = Replica(Constant(500_000))
RATE = 50.0
"""Messages/s: too few to fill four pages in a commit interval of 200 ms."""
WAITING_RATE = 5.0
"""The rate of one producer that waits up to 200 ms for each answer."""
BUSY_RATE = 20_000.0
MESSAGES = 6_000
FILE_BYTES = 4 << 20
LATENCY = "1372: put p50 with a replica, ms"
UNBUFFERED = "2439: files without a buffer, %"
TIMED_OUT = "7524: not committed in time, %"
QUICK_MS, SLOW_MS = 2.0, 100.0
"""Reported in 1372: below the first without a pool, above the second with one."""
SYNC_TRIES_MS = 1_000


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per issue and case."""
    progress("issue 1372")
    yield from _latencies(setup)
    progress("issue 2439")
    yield from _buffers(setup)
    progress("issue 7524")
    yield from _time_outs(setup)


def _latencies(setup: Setup) -> Iterator[Row]:
    cases = [("no pool", StorePolicy("", ASYNC), RATE, 0.0, QUICK_MS)]
    pool = POLICIES["pool + async 500 ms"]
    cases.append(("pool, 200 ms", pool, RATE, SLOW_MS, 200.0))
    for interval_ms in (50, 10, 1):
        assert pool.pool is not None
        commit = replace(
            pool.pool.commit,
            commit_interval_commit_log=interval_ms,
            commit_commit_log_thorough_interval=interval_ms,
        )
        cases.append((f"pool, {interval_ms} ms", replace(pool, pool=Pool(5, commit)), RATE, 0.0, 0.0))
    cases.append((f"pool, 200 ms, {BUSY_RATE:,.0f}/s", pool, BUSY_RATE, 0.0, 0.0))
    for case, policy, rate, low, high in cases:
        scenario = policy.scenario(setup.device, rate, messages=setup.count(MESSAGES))
        trace = setup.trace(replace(scenario, replica=REPLICA))
        p50 = quantile(np.sort(trace.put_ns - trace.arrival_ns), 0.5) / 1e6
        yield _row(LATENCY, case, p50, (low, high) if high else None)


def _buffers(setup: Setup) -> Iterator[Row]:
    for buffers in range(1, 6):
        policy = replace(POLICIES["pool + async 500 ms"], pool=Pool(buffers))
        trace = setup.trace(
            policy.scenario(
                setup.device, BUSY_RATE, messages=setup.count(16 * MESSAGES, least=30_000), file_bytes=FILE_BYTES
            )
        )
        files = len(np.unique(trace.offset // FILE_BYTES))
        yield _row(UNBUFFERED, _buffers_name(buffers), 100 * trace.files_without_buffer / files, None)


def _time_outs(setup: Setup) -> Iterator[Row]:
    policy = POLICIES["pool + async 500 ms"]
    try:
        replace(policy, flush=replace(ASYNC, flush_disk_type=type(ASYNC.flush_disk_type).SYNC_FLUSH)).scenario(
            setup.device, RATE, messages=1
        )
    except ImpossibleScenario:
        pass
    else:
        raise AssertionError("the simulator has learnt SYNC_FLUSH with a pool: replay 7524 with it")
    trace = setup.trace(policy.scenario(setup.device, WAITING_RATE, messages=setup.count(MESSAGES)))
    waits_ms = (trace.committed_ns - trace.written_ns) / 1e6
    at_once_ms = 2 * setup.device.sync.mean_ns / 1e6
    for case, tries_ms, reported in (
        ("two tries at once", at_once_ms, (99.0, 100.0)),
        ("10 tries of 1 ms", 10.0, None),
        ("100 tries of 1 ms", 100.0, None),
        ("1,000 tries of 1 ms", float(SYNC_TRIES_MS), (0.0, 0.0)),
    ):
        yield _row(TIMED_OUT, case, 100 * float(np.mean(waits_ms > tries_ms)), reported)


def _buffers_name(buffers: int) -> str:
    return f"{buffers} buffer{'s' * (buffers > 1)}"


def _row(issue: str, case: str, value: float, reported: tuple[float, float] | None) -> Row:
    low, high = reported or (None, None)
    return {"issue": issue, "case": case, "simulated": value, "reported_low": low, "reported_high": high}


def caption(rows: Sequence[Row]) -> str:
    """Describe for each issue whether the simulator reproduces it."""
    found = {
        issue: {str(row["case"]): of(row, "simulated") for row in own} for issue, own in grouped(rows, "issue").items()
    }
    return " ".join((_on_1372(found[LATENCY]), _on_2439(found[UNBUFFERED]), _on_7524(found[TIMED_OUT])))


def _on_1372(p50_ms: dict[str, float]) -> str:
    bare, pooled = p50_ms["no pool"], p50_ms["pool, 200 ms"]
    busy = next(value for case, value in p50_ms.items() if case.endswith("/s"))
    foretold = bare < QUICK_MS and pooled > SLOW_MS
    return (
        f"Issue 1372 is {'reproduced' if foretold else 'not reproduced'}: {span_ms(bare)} without a pool, "
        f"{span_ms(pooled)} with one at {number(RATE)}/s (reported: below {QUICK_MS:g} ms, above {SLOW_MS:g} ms). "
        f"The commit interval decides; at {number(BUSY_RATE)}/s pages fill before it is over, and the same pool "
        f"answers in {span_ms(busy)}."
    )


def _on_2439(share: dict[str, float]) -> str:
    short = [case for case, percent in share.items() if percent > 0]
    foretold = _buffers_name(1) in short
    enough = [case for case, percent in share.items() if percent == 0]
    told = f"Issue 2439 is {'reproduced' if foretold else 'not reproduced'}: "
    told += f"files are made without a buffer with {', '.join(short)}" if short else "every file has a buffer"
    told += f"; the smallest pool that always has one has {enough[0]}" if short and enough else ""
    return told + " (the rule of two files requested ahead needs three)."


def _on_7524(late: dict[str, float]) -> str:
    first, last = late["two tries at once"], late["1,000 tries of 1 ms"]
    foretold = first > 99 and last == 0
    return (
        f"Issue 7524 is {'reproduced in part' if foretold else 'not reproduced'}: the pair of pool and SYNC_FLUSH is "
        f"refused as impossible, as in 4.9.3; from the commit delays at {number(WAITING_RATE)}/s, {number(first)} % of "
        f"the messages would not be there for two tries at once, and {number(last)} % after 1,000 tries of 1 ms."
    )


REPLAY = Experiment(
    name="replay",
    title="Issues of users, replayed",
    question="Does the simulator reproduce what users reported in issues 1372, 2439 and 7524?",
    setting="Records of 1 KiB; the replica answers after 0.5 ms; buffers of 1 GiB, of 4 MiB for issue 2439.",
    chart=Chart(
        "bars",
        Axis("simulated", "simulated"),
        (Axis("case", "case", scale="names"),),
        panel_by="issue",
        low="reported_low",
        high="reported_high",
        range_label="reported by users",
    ),
    measure=measure,
    caption=caption,
)
