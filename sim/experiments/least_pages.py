"""When does the page rule delay flushes? `flushCommitLogLeastPages` by rate and interval."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tornpage.impl.config.policy import PAGE_BYTES
from tornpage.sim.experiments.policies import ASYNC, RECORD_BYTES, StorePolicy
from tornpage.sim.experiments.values import Axis, Chart, Experiment, Overlay, Progress, Row, Setup
from tornpage.sim.experiments.words import number, of, per_s, span_ms
from tornpage.sim.results.tables import quantile

__all__ = ["LEAST_PAGES", "boundary_rate"]

PAGES = ASYNC.flush_commit_log_least_pages
RATES = (2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
INTERVALS_MS = (50, 100, 200, 500, 1000, 2000)
SECONDS = 400
OWN_INTERVALS = 2.0
"""A flush was delayed if messages wait longer than this many intervals.

Without the rule no message waits two.
"""


def boundary_rate(interval_ms: float) -> float:
    """Return the rate below which an interval brings fewer pages than the rule asks for.

    Source: docs/disks/presets.md, formula 4.
    """
    return PAGES * PAGE_BYTES / RECORD_BYTES / (interval_ms / 1000)


def measure(setup: Setup, progress: Progress) -> Iterator[Row]:
    """Yield a row per rate and interval."""
    for interval_ms in INTERVALS_MS:
        progress(f"an interval of {interval_ms} ms")
        policy = StorePolicy("", replace(ASYNC, flush_interval_commit_log=interval_ms))
        for rate in RATES:
            duration_ns = setup.count(SECONDS, least=60) * 10**9
            trace = setup.trace(policy.scenario(setup.device, rate, duration_ns=duration_ns))
            waited = np.sort(trace.durable_ns - trace.written_ns)
            yield {
                "rate_per_s": rate,
                "interval_ms": interval_ms,
                "exposed_p50_ms": quantile(waited, 0.5) / 1e6,
                "exposed_p99_ms": quantile(waited, 0.99) / 1e6,
                "exposed_max_ms": quantile(waited, 1.0) / 1e6,
                "exposed_p99_s": quantile(waited, 0.99) / 1e9,
            }


def overlays(rows: Sequence[Row]) -> tuple[Overlay, ...]:
    """Draw the boundary of the formula."""
    intervals = sorted({of(row, "interval_ms") for row in rows})
    return (
        Overlay(
            f"{PAGES} pages per interval: rate x interval = {PAGES} x 4 KiB",
            tuple(boundary_rate(interval) for interval in intervals),
            tuple(intervals),
        ),
    )


def caption(rows: Sequence[Row]) -> str:
    """Describe how well the formula divides the map, and the waits on either side."""
    slow = [row for row in rows if of(row, "rate_per_s") < boundary_rate(of(row, "interval_ms"))]
    quick = [row for row in rows if of(row, "rate_per_s") > boundary_rate(of(row, "interval_ms"))]
    held = [row for row in slow if _is_held_back(row)]
    free = [row for row in quick if not _is_held_back(row)]
    told = [
        f"Below the boundary {len(held)} of {len(slow)} cells delay flushes (p99 of the age at risk above "
        f"{OWN_INTERVALS:g} intervals); above it {len(free)} of {len(quick)} do not."
    ]
    if slow:
        worst = max(slow, key=lambda row: of(row, "exposed_p99_ms"))
        told.append(
            f"The worst cell is {per_s(of(worst, 'rate_per_s'))} with {number(of(worst, 'interval_ms'))} ms: a p99 of "
            f"{span_ms(of(worst, 'exposed_p99_ms'))}, at most {span_ms(of(worst, 'exposed_max_ms'))}. The thorough "
            f"round every {ASYNC.flush_commit_log_thorough_interval / 1000:g} s is its only bound."
        )
    default = [row for row in quick if of(row, "interval_ms") == ASYNC.flush_interval_commit_log]
    if default:
        told.append(
            f"With the default of {ASYNC.flush_interval_commit_log} ms the p99 is "
            f"{span_ms(max(of(row, 'exposed_p99_ms') for row in default))} at most above "
            f"{per_s(boundary_rate(ASYNC.flush_interval_commit_log))}."
        )
    return " ".join(told)


def _is_held_back(row: Row) -> bool:
    return of(row, "exposed_p99_ms") > OWN_INTERVALS * of(row, "interval_ms")


LEAST_PAGES = Experiment(
    name="least-pages",
    title="The regimes of the page rule",
    question="When does the thorough round, not the interval, decide what is at risk?",
    setting="flushCommitLogLeastPages 4, thorough round every 10 s; open loads of records of 1 KiB, 400 s each.",
    chart=Chart(
        "cells",
        Axis("rate_per_s", "rate", "messages/s of 1 KiB", "log"),
        (Axis("interval_ms", "flush interval", "ms", "log"),),
        value=Axis("exposed_p99_s", "age at risk, p99", "s"),
    ),
    measure=measure,
    caption=caption,
    overlays=overlays,
)
