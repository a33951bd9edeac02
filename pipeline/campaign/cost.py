"""Estimate what a campaign will cost, from a short trial.

The trial runs one small shard in this process and measures processor time, rows and their size as Parquet. Processor
time is that of this process and of all that it starts: the processes of a foreign store, the JVM of a peer. Each shard
pays once for what comes before its first run and in it: the canary, planted violations, make-up sessions, the start of
a JVM. So the first run of the trial gives the cost of a shard, and the other runs give the cost of a state. Runs differ
much, and their spread gives the error of the estimate. Spark's own processor time is not part of it.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter

from tornpage.pipeline.campaign.files import CRASHES, CampaignFiles, CampaignTable, parquet_of
from tornpage.pipeline.campaign.turns import Kind, ProgressT, ShardT, TurnRows
from tornpage.pipeline.spark.jobs import Death
from tornpage.properties.explore.crashes.rows import Row
from tornpage.properties.explore.crashes.shards import REPEATED_SHARE

__all__ = [
    "RUN_BYTES",
    "SHARD_BYTES",
    "SUMMARY_BYTES",
    "TRIAL_SECONDS_MAX",
    "TRIAL_STATES",
    "Cost",
    "Trial",
    "TrialFailed",
    "cores_of",
    "cost_of",
    "file_and_row_bytes",
    "measured_trial",
    "processor_seconds",
    "state_cost",
]

TRIAL_STATES = 2_000
"""Counted states of a trial, those of its first run included."""

TRIAL_SECONDS_MAX = 120.0
"""Seconds after which a trial has no further run, for stores and peers that need long for a state."""

_CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NO_FILES = Path("/nonexistent")

_ERRORS = 2.0
"""Standard errors from the estimate to the ends of its range."""

SUMMARY_BYTES = 250_000_000
RUN_BYTES = 70
SHARD_BYTES = 400


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial has measured.

    `states` and `runs` leave out the first run. `shard_s` is the processor time that a shard needs once, `explored_s`
    that of the states, and `spread` the standard error of `explored_s` as a share of it. A file of Parquet has
    `file_bytes`, and `row_bytes` for each run.
    """

    states: int
    runs: int
    shard_s: float
    explored_s: float
    wall_s: float
    file_bytes: float
    row_bytes: float
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What a campaign will cost.

    `processor_s` lies between `processor_s_min` and `processor_s_max` in 95 of 100 trials. `seconds` is the time on
    `cores` cores that do nothing else, `disk_bytes` the size of all rows, `driver_bytes` the bound of the memory of the
    driver (docs/cluster.md).
    """

    shards: int
    states: int
    runs: int
    processor_s: float
    processor_s_min: float
    processor_s_max: float
    cores: int
    seconds: float
    disk_bytes: float
    driver_bytes: float

    @property
    def rows(self) -> int:
        """Return the number of rows: one for each run and one for each shard."""
        return self.runs + self.shards


class TrialFailed(Exception):
    """The trial could not run a shard; the message is the reason in one line."""


def measured_trial(kind: Kind[ShardT, ProgressT], shard: ShardT, *, states: int = TRIAL_STATES) -> Trial:
    """Run a small shard like this one and measure it, warm. Errors of runs are not raised.

    It is not shard 0, since the first shard of a campaign of our store repeats its first run. Raises TrialFailed.
    """
    files = CampaignFiles(_NO_FILES, kind.table)
    warm = kind.resized(shard, number=shard.number + 2, states=1)
    trial = kind.resized(shard, number=shard.number + 1, states=states)
    _made_rows(kind.turn(warm, kind.progress(files, warm), lambda: False))
    ends, started = [processor_seconds()], perf_counter()

    def ended() -> bool:
        ends.append(processor_seconds())
        return perf_counter() - started >= TRIAL_SECONDS_MAX

    rows = _made_rows(kind.turn(trial, kind.progress(files, trial), ended))
    wall_s = perf_counter() - started
    runs = [row for row in rows if row["kind"] == "history"]
    if len(ends) > len(runs):  # the trial was paused after its last run
        ends.pop()
    ends.append(processor_seconds())
    spans = [end - start for start, end in pairwise(ends)]
    state_s, spread = state_cost(runs, spans)
    later = runs[1:] or runs
    states = sum(row["states"] for row in later)
    shard_s = max(0.0, spans[0] - state_s * runs[0]["states"])
    file_bytes, row_bytes = file_and_row_bytes(rows, kind.table)
    return Trial(states, len(later), shard_s, state_s * states, wall_s, file_bytes, row_bytes, spread)


def _made_rows(made: TurnRows[ProgressT] | Death) -> list[Row]:
    if isinstance(made, Death):
        raise TrialFailed(made.how)
    return made.rows


def processor_seconds() -> float:
    """Return the processor time so far of this process and of all processes that it started.

    Those that run are read from /proc, whose unit is 10 ms on most systems.
    """
    mine = os.times()
    total = mine.user + mine.system + mine.children_user + mine.children_system
    waiting = _children(os.getpid())
    while waiting:
        child = waiting.pop()
        with suppress(OSError, IndexError):  # it has just ended
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15])) / _CLOCK_TICKS_PER_S
            waiting += _children(child)
    return total


def _children(process: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def state_cost(runs: Sequence[Row], spans: Sequence[float]) -> tuple[float, float]:
    """Return the processor time of a state, and its standard error as a share of it.

    `runs` are rows with `states`, and with `repeated` if some runs are repeated. `spans` has the processor time of each
    run. The first run is left out, since it has what the shard needs once. A repeated run counts once, and the share of
    repeated runs is added. From less than two other runs no error follows, and it is 1.
    """
    times = [span / (2 if run.get("repeated") else 1) for run, span in zip(runs, spans, strict=False)]
    counted = [run["states"] for run in runs]
    repeats = 1 + 1 / REPEATED_SHARE if any("repeated" in run for run in runs) else 1.0
    if len(times) > 1:
        times, counted = times[1:], counted[1:]
    total = max(1, sum(counted))
    cost, number = sum(times) / total, len(times)
    if number < 2 or not cost:
        return cost * repeats, 1.0
    squares = sum((time - cost * states) ** 2 for time, states in zip(times, counted, strict=True))
    error = math.sqrt(number / (number - 1) * squares) / total
    return cost * repeats, error / cost


def file_and_row_bytes(rows: Sequence[Row], table: CampaignTable = CRASHES) -> tuple[float, float]:
    """Return the bytes of a Parquet file of a shard, and those that a run adds to it.

    `rows` are those of a shard. The size of a file also depends on the rows that sum up the shard: the row of a shard
    has empty texts, so that the statistics of the file have shorter minima. So files of runs are compared with each
    other. The first run of a shard has the largest row and is left out, unless there are few runs. Then the estimate is
    too large.
    """
    runs = [row for row in rows if row["kind"] == "history"]
    whole = float(len(parquet_of(rows, table)))
    if len(runs) < 3:
        row_bytes = (len(parquet_of(runs, table)) - len(parquet_of([], table))) / max(1, len(runs))
    else:
        row_bytes = (len(parquet_of(runs[1:], table)) - len(parquet_of(runs[1:2], table))) / (len(runs) - 2)
    return max(0.0, whole - len(runs) * row_bytes), max(0.0, row_bytes)


def cost_of(trial: Trial, *, shards: int, states_per_shard: int, cores: int) -> Cost:
    """Return the cost of a campaign.

    The last run of a shard may count more states than the shard needs, so the number of runs is rounded up for each
    shard.
    """
    states = max(1, trial.states)
    runs = shards * math.ceil(states_per_shard * trial.runs / states)
    explored_s = shards * states_per_shard * trial.explored_s / states
    processor_s = shards * trial.shard_s + explored_s
    error_s = min(_ERRORS * trial.spread, 1.0) * explored_s
    busy = min(cores, shards)
    seconds = processor_s / shards * math.ceil(shards / busy)
    return Cost(
        shards=shards,
        states=shards * states_per_shard,
        runs=runs,
        processor_s=processor_s,
        processor_s_min=processor_s - error_s,
        processor_s_max=processor_s + error_s,
        cores=cores,
        seconds=seconds,
        disk_bytes=shards * trial.file_bytes + runs * trial.row_bytes,
        driver_bytes=SUMMARY_BYTES + RUN_BYTES * runs + SHARD_BYTES * shards,
    )


def cores_of(master: str) -> int | None:
    """Return the cores of a master whose URL says it, else None."""
    if master == "local":
        return 1
    if found := re.fullmatch(r"local\[(\*|\d+)(?:,\d+)?\]", master):
        return len(os.sched_getaffinity(0)) if found[1] == "*" else int(found[1])
    if found := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master):
        return int(found[1]) * int(found[2])
    return None
