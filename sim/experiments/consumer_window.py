"""How far should a consumer read ahead?

Two limits bound what a member takes of a queue: the messages that it caches (`pullThresholdForQueue`), and the distance
from the first to the last unfinished one (`consumeConcurrentlyMaxSpan`). Both are the window here. A large window keeps
threads busy while pulls are on their way. A slow message pins the progress of its queue, and after a crash all messages
that were finished since then run again, at most a window of them. A small window stalls the queue until the slow
message ends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tornpage.sim.consumers.group import run_group
from tornpage.sim.consumers.scenario import NS_PER_MS, GroupScenario, Member, SomeSlow
from tornpage.sim.distributions import Constant, Exponential
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Overlay, Progress, Row, Setup
from tornpage.sim.experiments.words import grouped, number, of, per_s

__all__ = ["CONSUMER_WINDOW", "capacity", "rate_limit"]

_S = 1_000 * NS_PER_MS
QUEUES = 4
SERVICE_MS = 20
OVERLOAD = 1.2
"""The full load, as a multiple of what the threads can take."""
CALM_RATE = 120.0
SLOW_SHARE, SLOW_S = 0.002, 10
WINDOWS = (8, 16, 32, 64, 128, 256, 512, 1_024)
MEMBERS = ((10, 20), (20, 1), (20, 80))
"""Threads of a member, and the time of its pulls in ms."""
PAUSE_MS = 50
SECONDS, CRASHES = 30, 8


def capacity(threads: int) -> float:
    """Return the rate that threads can take."""
    return threads * 1_000 / SERVICE_MS


def rate_limit(window: int, pull_ms: float) -> float:
    """Return the rate that windows allow: each is refilled after a pause and a pull."""
    return QUEUES * window / ((PAUSE_MS + pull_ms) / 1_000)


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per pull time and window."""
    seconds = max(2, round(SECONDS * min(1.0, setup.effort)))
    for threads, pull_ms in MEMBERS:
        progress(f"{threads} threads, pulls of {pull_ms} ms")
        for window in WINDOWS:
            yield _row(setup, threads, pull_ms, window, seconds)


def _row(setup: Setup, threads: int, pull_ms: int, window: int, seconds: int) -> Row:
    busy = GroupScenario(
        queues=QUEUES,
        members=(Member("a", threads),),
        rate_per_s=OVERLOAD * capacity(threads),
        service=Exponential(float(SERVICE_MS * NS_PER_MS)),
        duration_ns=seconds * _S,
        pull=Constant(pull_ms * NS_PER_MS),
        pause_ns=PAUSE_MS * NS_PER_MS,
        prefetch=window,
        span=window,
    )
    full = run_group(busy, setup.seed)
    second_half = full.runs["ended_ns"] >= busy.duration_ns // 2
    crash_ns = busy.duration_ns // 2
    calm = replace(
        busy,
        members=(Member("a", threads, crashes_ns=crash_ns), Member("b", threads, joins_ns=crash_ns)),
        rate_per_s=CALM_RATE,
        service=SomeSlow(SLOW_SHARE, SLOW_S * _S, Exponential(float(SERVICE_MS * NS_PER_MS))),
        noticed_ns=0,
    )
    crashed = [run_group(calm, setup.seed + each) for each in range(max(1, round(CRASHES * min(1.0, setup.effort))))]
    return {
        "member": f"{threads} threads, pulls of {pull_ms} ms",
        "threads": threads,
        "pull_ms": pull_ms,
        "window": window,
        "messages_per_s": float(second_half.sum() / (busy.duration_ns / 2e9)),
        "idle_percent": 100 * full.idle_share,
        "repeated_mean": float(np.mean([run.duplicates for run in crashed])),
        "repeated_max": max(run.duplicates for run in crashed),
        "wait_p99_s": float(np.mean([np.quantile(run.waits_ms(), 0.99) for run in crashed])) / 1_000,
    }


def overlays(rows: Sequence[Row]) -> tuple[Overlay, ...]:
    """Draw the idle share that follows from the limit of the window, for each member."""
    curves = []
    for name, own in grouped(rows, "member").items():
        windows = tuple(of(row, "window") for row in own)
        curves.append(Overlay(f"by the limit of the window, {name}", windows, tuple(map(_idle_by_limit, own))))
    return tuple(curves)


def _idle_by_limit(row: Row) -> float:
    limit = rate_limit(int(of(row, "window")), of(row, "pull_ms"))
    return 100 * max(0.0, 1 - limit / capacity(int(of(row, "threads"))))


def caption(rows: Sequence[Row]) -> str:
    """Describe the least window that keeps the threads busy, and what larger ones cost."""
    told = []
    for name, own in grouped(rows, "member").items():
        best = max(of(row, "messages_per_s") for row in own)
        least = next(row for row in own if of(row, "messages_per_s") >= 0.95 * best)
        told.append(f"{name}: a window of {of(least, 'window'):.0f} gives 95 % of {per_s(best)}.")
    small, large = (
        [row for row in rows if row["window"] == pick(of(each, "window") for each in rows)] for pick in (min, max)
    )
    repeated = [np.mean([of(row, "repeated_mean") for row in own]) for own in (small, large)]
    waits = [np.mean([of(row, "wait_p99_s") for row in own]) for own in (small, large)]
    told.append(
        f"After a crash {number(float(repeated[0]))} messages run again with the smallest window, "
        f"{number(float(repeated[1]))} with the largest. 1 % of the messages wait longer than "
        f"{number(float(waits[0]))} s with the smallest, {number(float(waits[1]))} s with the largest."
    )
    return " ".join(told)


CONSUMER_WINDOW = Experiment(
    name="consumer-window",
    title="How far a consumer reads ahead",
    question="How large should the window of a consumer be?",
    setting=f"{QUEUES} queues, one member, listeners of {SERVICE_MS} ms. Threads are idle under {OVERLOAD:g} times the "
    f"load that they can take. Crashes happen at {CALM_RATE:g}/s, where {100 * SLOW_SHARE:g} % of the listeners take "
    f"{SLOW_S} s; another member takes over at once.",
    chart=Chart(
        "lines",
        Axis("window", "window of each queue", "messages", "log"),
        (
            Axis("idle_percent", "idle threads", "%"),
            Axis("repeated_mean", "repeated, mean", "messages"),
            Axis("wait_p99_s", "wait, p99", "s"),
        ),
        series="member",
    ),
    measure=measure,
    caption=caption,
    overlays=overlays,
)
