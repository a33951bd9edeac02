"""Test the estimate of what a campaign costs."""

import math
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tornpage.pipeline.campaign.campaign import CrashCampaign
from tornpage.pipeline.campaign.cost import (
    Trial,
    cost_of,
    file_and_row_bytes,
    measured_trial,
    processor_seconds,
    state_cost,
)
from tornpage.pipeline.campaign.files import parquet_of
from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.explore.crashes.rows import Row, rows_of
from tornpage.properties.explore.crashes.shards import SeedRun, Shard, ShardRun
from tornpage.properties.program.case import Settings
from tornpage.render.campaign import cost_outcome

SHARD = Shard(0, seed=1, states=1000, settings=Settings())


def rows_of_runs(number: int) -> list[Row]:
    """Return the rows of a shard whose runs have long mixes, as real runs do."""
    run = ShardRun(SHARD, canary="lying-flush")
    for place in range(number):
        tally = Tally()
        tally.hit.update({f"fault_{name}": name + place for name in range(60)})
        run.histories.append(SeedRun(f"1:{place}", mix=f"{place} " + "factor=level " * 250, tally=tally))
    return rows_of(run)


def test_a_run_adds_bytes_though_the_row_of_the_shard_makes_a_file_smaller() -> None:
    """Regression: `--plan` printed -29 bytes for a row, and too small files with it."""
    pytest.importorskip("pyarrow")
    rows = rows_of_runs(8)
    assert len(parquet_of(rows)) < len(parquet_of(rows[:1]))  # what the estimate took for the cost of eight rows
    file_bytes, row_bytes = file_and_row_bytes(rows)
    assert row_bytes > 0
    assert file_bytes + 8 * row_bytes == pytest.approx(len(parquet_of(rows)))
    many = rows_of_runs(60)
    assert file_bytes + 60 * row_bytes == pytest.approx(len(parquet_of(many)), rel=0.2)
    assert file_and_row_bytes(rows_of_runs(1))[1] > 0


def runs_of(states: Sequence[int], *, repeated: Sequence[int] = ()) -> list[Row]:
    return [{"states": number, "repeated": place in repeated} for place, number in enumerate(states)]


def test_a_state_costs_what_later_runs_cost_and_the_first_run_is_that_of_the_shard() -> None:
    runs = runs_of([40, 100, 200, 0], repeated=[2])
    cost, spread = state_cost(runs, [4.0, 0.5, 2.0, 0.3])  # the repeated run took 1 s
    assert cost == pytest.approx(1.8 / 300 * 1.05)
    ratio = 1.8 / 300
    squares = (0.5 - 100 * ratio) ** 2 + (1.0 - 200 * ratio) ** 2 + 0.3**2
    assert spread == pytest.approx(math.sqrt(3 / 2 * squares) / 300 / ratio)
    alone, unknown = state_cost(runs_of([40]), [4.0])
    assert (alone, unknown) == pytest.approx((0.105, 1.0))
    assert state_cost([], []) == (0.0, 1.0)


@pytest.mark.slow
def test_a_trial_measures_a_shard() -> None:
    pytest.importorskip("pyarrow")
    trial = measured_trial(CrashCampaign(), SHARD, states=150)
    cost = cost_of(trial, shards=3, states_per_shard=1000, cores=2)
    assert trial.runs
    assert trial.row_bytes > 0
    assert trial.explored_s > 0
    assert 0 <= cost.processor_s_min <= cost.processor_s <= cost.processor_s_max
    assert cost.seconds == pytest.approx(cost.processor_s / 3 * 2)


def test_processor_time_is_that_of_all_processes_that_were_started() -> None:
    """A store of another program, or a peer, does most of its work in processes of its own."""
    spend = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    before = processor_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", spend], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        while_it_runs = processor_seconds() - before
        child.communicate("\n")
    assert while_it_runs > 0.25
    assert processor_seconds() - before > 0.25


def test_runs_that_are_never_repeated_have_no_share_of_repeats() -> None:
    spans, states = [4.0, 0.5, 1.0], [40, 100, 200]
    runs: list[Row] = [{"states": number} for number in states]
    assert state_cost(runs, spans)[0] == pytest.approx(1.5 / 300)
    assert state_cost(runs_of(states), spans)[0] == pytest.approx(1.5 / 300 * 1.05)


def test_one_shard_is_told_in_the_singular() -> None:
    """Regression: the plan said "1 shards on 1 cores"."""
    trial = Trial(states=1, runs=1, shard_s=1.0, explored_s=1.0, wall_s=2.0, file_bytes=900.0, row_bytes=90.0)
    cost = cost_of(trial, shards=1, states_per_shard=1, cores=1)
    _, text = cost_outcome(trial, cost, seed=0, keep_every_s=60.0)
    for told in (
        "1 counted crash state in 1 shard on 1 core\n",
        "(1 run and 1 shard)",
        "in 1 file\n",
        "of 1 state in 1 run,",
    ):
        assert told in text
