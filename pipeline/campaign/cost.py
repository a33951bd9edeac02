"""Estimate what a campaign will cost, from a short trial.

The trial runs one small shard in this process and measures processor time, rows and their size as Parquet. Costs of a
shard (canary and planted violations) are measured apart from costs of a state. Spark's own processor time is not part
of the estimate. Everything is a function of the measured trial, so an estimate is as good as its number of states.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, replace
from time import perf_counter, process_time

from tornpage.pipeline.campaign.files import parquet_of
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.crashes.rows import rows_of
from tornpage.properties.explore.crashes.shards import Shard, ShardRun, run_shard

__all__ = [
    "RUN_BYTES",
    "SHARD_BYTES",
    "SUMMARY_BYTES",
    "TRIAL_STATES",
    "Cost",
    "Trial",
    "cores_of",
    "cost_of",
    "measured_trial",
]

TRIAL_STATES = 1_000
"""Counted states of a trial."""

SUMMARY_BYTES = 250_000_000
RUN_BYTES = 70
SHARD_BYTES = 400


@dataclass(frozen=True, slots=True)
class Trial:
    """What a trial has measured.

    `shard_s` and `explored_s` are processor time. A file of Parquet has `file_bytes`, and `row_bytes` for each row.
    """

    states: int
    runs: int
    shard_s: float
    explored_s: float
    wall_s: float
    file_bytes: float
    row_bytes: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a campaign will cost.

    `seconds` is the time on `cores` cores that do nothing else, `disk_bytes` the size of all rows, `driver_bytes` the
    bound of the memory of the driver (docs/cluster.md).
    """

    shards: int
    states: int
    runs: int
    processor_s: float
    cores: int
    seconds: float
    disk_bytes: float
    driver_bytes: float

    @property
    def rows(self) -> int:
        """Return the number of rows: one for each run and one for each shard."""
        return self.runs + self.shards


def measured_trial(shard: Shard, *, states: int = TRIAL_STATES) -> Trial:
    """Run a small shard like this one and measure it, warm. Errors of runs are not raised."""
    run = ShardRun(replace(shard, number=shard.number + 1, states=states))  # the first one repeats its first run
    with choose_tracker("auto") as tracker:
        run_shard(ShardRun(replace(shard, number=shard.number + 2, states=1)), tracker=tracker)
        wall, processor = perf_counter(), process_time()
        run_shard(run, tracker=tracker)
        wall, processor = perf_counter() - wall, process_time() - processor
    share = processor / max(wall, 1e-9)
    shard_s = share * (run.seconds.get("canary", 0.0) + run.seconds.get("violations", 0.0))
    rows = rows_of(run)
    one, all_of_them = len(parquet_of(rows[:1])), len(parquet_of(rows))
    row_bytes = (all_of_them - one) / max(1, len(rows) - 1)
    return Trial(run.states, len(run.histories), shard_s, processor - shard_s, wall, one - row_bytes, row_bytes)


def cost_of(trial: Trial, *, shards: int, states_per_shard: int, cores: int) -> Cost:
    """Return the cost of a campaign.

    The last run of a shard may count more states than the shard needs, so the number of runs is rounded up for each
    shard.
    """
    states = max(1, trial.states)
    runs = shards * math.ceil(states_per_shard * trial.runs / states)
    processor_s = shards * (trial.shard_s + states_per_shard * trial.explored_s / states)
    busy = min(cores, shards)
    seconds = processor_s / shards * math.ceil(shards / busy)
    return Cost(
        shards=shards,
        states=shards * states_per_shard,
        runs=runs,
        processor_s=processor_s,
        cores=cores,
        seconds=seconds,
        disk_bytes=shards * trial.file_bytes + (runs + shards) * trial.row_bytes,
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
