"""Compare campaigns in Spark tasks with the same shards in plain processes.

Both sides have two warm processes and the same shards, and must give the same rows. The compared time is from the first
shard to the last row. Rounds alternate which side goes first.
"""

import logging
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from statistics import median
from time import perf_counter

from tornpage.bench.figures import Figure, Skipped, file_system_of
from tornpage.bench.sizes import FULL, Sizes
from tornpage.pipeline.campaign.campaign import rows_of_shard
from tornpage.properties.contract import HarnessError
from tornpage.properties.explore.crashes.rows import Row, result_hash
from tornpage.properties.explore.crashes.shards import Shard
from tornpage.properties.interrupts import born_deaf
from tornpage.properties.program.case import Settings

__all__ = ["campaign_shard_s", "spark2_over_multiprocessing"]

_WORKERS = 2
_PROBED_STATES = 50
_ROUNDS_MIN = 2

Run = Callable[[Sequence[Shard]], list[Row]]


def campaign_shard_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Seconds of one shard of `spark2_over_multiprocessing` alone; one round."""
    started = perf_counter()
    rows_of_shard(_shards(sizes)[0])
    spent = perf_counter() - started
    return Figure("campaign_shard_s", spent, "s", (spent,), file_system_of(directory))


def spark2_over_multiprocessing(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Speed of a campaign in Spark tasks over that in processes, two of each.

    1 is equal, less is slower. Rounds run for about `seconds`. May raise Skipped.
    """
    ratios: list[float] = []
    shards = _shards(sizes)
    started = perf_counter()
    with _in_processes() as plain, _in_spark() as spark:
        while len(ratios) < _ROUNDS_MIN or perf_counter() - started < seconds:
            order = [plain, spark] if len(ratios) % 2 else [spark, plain]
            spent = {run: _timed(run, shards) for run in order}
            if spent[plain][1] != spent[spark][1]:
                raise HarnessError("Spark tasks and processes give different rows for the same shards")
            ratios.append(spent[plain][0] / spent[spark][0])
    return Figure("spark2_over_multiprocessing", median(ratios), "x", tuple(ratios), file_system_of(directory))


def _timed(run: Run, shards: Sequence[Shard]) -> tuple[float, str]:
    started = perf_counter()
    rows = run(shards)
    return perf_counter() - started, result_hash(rows)


@cache
def _shards(sizes: Sizes) -> tuple[Shard, ...]:
    """Return shards of about so many seconds each; each also has fixed costs."""
    probe = Shard(0, seed=0, states=_PROBED_STATES, settings=Settings())
    rows_of_shard(replace(probe, states=1))
    started = perf_counter()
    rows = rows_of_shard(probe)
    spent = perf_counter() - started
    exploring = sum(row["seconds"] for row in rows if row["kind"] == "history")
    counted = sum(row["states"] for row in rows if row["kind"] == "history")
    states = max(1, round((sizes.shard_s - (spent - exploring)) / exploring * counted))
    return tuple(Shard(number, seed=0, states=states, settings=Settings()) for number in range(sizes.shards))


def _warming() -> list[Shard]:
    return [Shard(number, seed=0, states=1, settings=Settings()) for number in range(2 * _WORKERS)]


def _be_quiet() -> None:
    """Discard what stores log about injected faults."""
    logging.getLogger("tornpage").addHandler(logging.NullHandler())


@contextmanager
def _in_processes() -> Iterator[Run]:
    with born_deaf():
        pool = multiprocessing.get_context("spawn").Pool(_WORKERS, _be_quiet)
    with pool:

        def run(shards: Sequence[Shard]) -> list[Row]:
            return [row for rows in pool.imap_unordered(rows_of_shard, shards) for row in rows]

        run(_warming())
        yield run


@contextmanager
def _in_spark() -> Iterator[Run]:
    from tornpage.pipeline.spark.jobs import Death, do_each
    from tornpage.pipeline.spark.session import SparkUnavailable, spark_session

    try:
        with spark_session("tornpage bench", master=f"local[{_WORKERS}]", short=True) as spark:

            def run(shards: Sequence[Shard]) -> list[Row]:
                found: list[Row] = []

                def keep(shard: Shard, answer: list[Row] | Death) -> None:
                    if isinstance(answer, Death):
                        raise HarnessError(f"the worker of shard {shard.number} died: {answer.how}")
                    found.extend(answer)

                do_each(spark, shards, rows_of_shard, keep)
                return found

            run(_warming())
            yield run
    except SparkUnavailable as error:
        raise Skipped(str(error)) from error
