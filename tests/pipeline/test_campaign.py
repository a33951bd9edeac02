"""Test campaigns: equal rows in every process, failures as rows, and no shard run twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tornpage.pipeline.campaign.campaign import (
    _write,
    complete_shards,
    prepare_output,
    read_rows,
    rows_of_shard,
    run_serial,
    silent_in,
)
from tornpage.pipeline.rows.outputs import OutputTaken
from tornpage.properties.campaign.replay import Failure, replay
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.crashes.campaign import Plan
from tornpage.properties.explore.crashes.explore import explore_seed
from tornpage.properties.explore.crashes.rows import Row, result_hash
from tornpage.properties.explore.crashes.shards import Shard
from tornpage.properties.program.case import Case, Settings


def planned(count: int, *, states: int, seed: int, settings: Settings | None = None) -> list[Shard]:
    """Return `count` shards of this many states."""
    return [*Plan(settings or Settings(), seed=seed, states=count * states, shard_states=states).shards()]


SHARDS = planned(2, states=30, seed=3)


@cache
def rows_of(shard: Shard) -> list[Row]:
    """Return the rows of a shard, which is run once for all tests."""
    return rows_of_shard(shard)


@pytest.mark.slow
def test_shard_ends_with_its_own_row_and_a_canary() -> None:
    *histories, last = rows_of(SHARDS[0])
    assert {row["kind"] for row in histories} == {"history"}
    assert {row["verdict"] for row in histories} == {"holds"}
    assert sum(row["states"] for row in histories) >= 30
    assert (last["kind"], last["verdict"], last["canary"]) == ("shard", "holds", "lying-flush")
    assert [row["seed"] for row in histories] == [f"3:{number}" for number in range(len(histories))]


@pytest.mark.slow
def test_result_hash_is_free_of_order_and_time_and_of_nothing_else() -> None:
    rows = rows_of(SHARDS[1])
    shuffled = [{**row, "seconds": 0.0} for row in rows]
    random.Random(1).shuffle(shuffled)
    assert result_hash(shuffled) == result_hash(rows)
    shuffled[0]["all_states"] += 1
    assert result_hash(shuffled) != result_hash(rows)


def test_failing_history_is_a_row_with_a_token_that_replays() -> None:
    [shard] = planned(1, states=300, seed=5, settings=Settings(bug="lying-flush"))
    broken = [row for row in rows_of_shard(shard) if row["verdict"] == "broken"]
    assert broken
    with choose_tracker("auto") as tracker:
        failure = replay(Case.from_token(broken[0]["token"]), tracker=tracker)
    assert failure is not None
    assert (failure.broken.contract, failure.broken.sentence) == (broken[0]["contract"], broken[0]["sentence"])


def test_fault_of_the_harness_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(seed: str, base: Settings, **options: Any) -> Iterator[Failure | None]:
        if base.bug:  # the canary of the shard
            return explore_seed(seed, base, **options)
        raise RuntimeError("tooling")

    monkeypatch.setattr("tornpage.properties.explore.crashes.shards.explore_seed", fails)
    *histories, last = rows_of_shard(SHARDS[0])
    assert {row["verdict"] for row in histories} == {"harness"}
    assert histories[0]["sentence"] == "RuntimeError: tooling"
    assert (last["kind"], last["canary"]) == ("shard", "lying-flush")
    assert {"torn_page", "rule_put"} <= set(silent_in([*histories, last], "posix-strict"))


def test_complete_shards_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    run: list[int] = []

    def counted(shard: Shard) -> list[Row]:
        run.append(shard.number)
        return rows_of(shard)

    monkeypatch.setattr("tornpage.pipeline.campaign.campaign.rows_of_shard", counted)
    prepare_output(tmp_path, SHARDS, resume=False)
    run_serial(SHARDS[:1], tmp_path)
    rows = run_serial(SHARDS, tmp_path)
    assert run == [0, 1]
    assert result_hash(rows) == result_hash([row for shard in SHARDS for row in rows_of(shard)])


def test_output_of_another_campaign_is_refused(tmp_path: Path) -> None:
    prepare_output(tmp_path / "run", SHARDS, resume=False)
    with pytest.raises(OutputTaken, match="--resume"):
        prepare_output(tmp_path / "run", SHARDS, resume=False)
    prepare_output(tmp_path / "run", SHARDS, resume=True)
    with pytest.raises(OutputTaken, match="other seed"):
        prepare_output(tmp_path / "run", planned(2, states=300, seed=6), resume=True)
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "file").touch()
    with pytest.raises(OutputTaken, match="has no campaign"):
        prepare_output(tmp_path / "else", SHARDS, resume=True)


@pytest.mark.parametrize("what", ["cut", "empty", "other columns", "no Parquet"])
def test_a_damaged_file_of_rows_is_refused_in_a_line(tmp_path: Path, what: str) -> None:
    """A power loss may leave a file without its bytes; resuming ended in a traceback."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "histories/part-shard-000000.parquet"
    _write(rows_of(SHARDS[0]), path)
    assert complete_shards(tmp_path) == {0}
    whole = path.read_bytes()
    if what == "other columns":
        pq.write_table(pa.table({"shard": ["zero"]}), path)
    else:
        path.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "no Parquet": b"{}"}[what])
    for ask in (lambda: complete_shards(tmp_path), lambda: read_rows(tmp_path, SHARDS)):
        with pytest.raises(OutputTaken, match=r"part-shard-000000\.parquet cannot be read: .*; remove it"):
            ask()
    path.unlink()
    assert complete_shards(tmp_path) == set()
