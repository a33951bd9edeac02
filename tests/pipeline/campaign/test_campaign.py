"""Test campaigns: equal rows in every process, and no run carried out twice."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tornpage.pipeline.campaign.campaign import CrashCampaign, prepare_output, rows_of_shard
from tornpage.pipeline.campaign.files import CampaignFiles, parquet_of, shared_place
from tornpage.pipeline.campaign.summary import CURVE_POINTS, Summary, _add_in_order, summary_of, summary_of_rows
from tornpage.pipeline.campaign.turns import run_serial
from tornpage.pipeline.rows.outputs import OutputTaken, whole
from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.campaign.replay import Failure, replay
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explore.crashes.campaign import Plan
from tornpage.properties.explore.crashes.explore import explore_seed
from tornpage.properties.explore.crashes.rows import Row, result_hash
from tornpage.properties.explore.crashes.rows import rows_of as shard_rows
from tornpage.properties.explore.crashes.shards import Shard, ShardRun, run_shard
from tornpage.properties.program.case import Case, Settings


def planned(count: int, *, states: int, seed: int, settings: Settings | None = None) -> list[Shard]:
    """Return `count` shards of this many states."""
    return [*Plan(settings or Settings(), seed=seed, states=count * states, shard_states=states).shards()]


SHARDS = planned(2, states=2, seed=3)


@cache
def rows_of(shard: Shard) -> list[Row]:
    """Return the rows of a shard, which is run once for all tests."""
    return rows_of_shard(shard)


@pytest.mark.slow
def test_shard_ends_with_its_own_row_and_a_canary() -> None:
    *histories, last = rows_of(SHARDS[0])
    assert {row["kind"] for row in histories} == {"history"}
    assert {row["verdict"] for row in histories} == {"holds"}
    assert sum(row["states"] for row in histories) >= 2
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


@pytest.mark.slow
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
    assert {"torn_page", "rule_put"} <= set(summary_of_rows([[*histories, last]]).silent("posix-strict"))


def run_here(shards: list[Shard], out: Path, *, keep_every_s: float = 0.0) -> None:
    """Run shards in this process, each run in a turn of its own."""
    pytest.importorskip("pyarrow")
    prepare_output(out, shards, resume=out.exists())
    with shared_place(out) as place:
        run_serial(CrashCampaign(), shards, place, keep_every_s=keep_every_s)
    assert not [*out.glob(".seen-*")]


@pytest.fixture
def explored(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make runs short; return their seeds as they are carried out.

    A run counts three states, and hits the first name that is still owed. So its row depends on all runs before it.
    """
    seeds: list[str] = []

    def short(
        seed: str, base: Settings, *, tally: Tally, owed: Callable[[], list[str]] = list, **options: Any
    ) -> Iterator[Failure | None]:
        if base.bug:  # the canary of the shard
            yield from explore_seed(seed, base, tally=tally, owed=owed, **options)
            return
        seeds.append(seed)
        left = owed()
        tally.states += 3
        tally.all_states += 4
        tally.hit[left[0]] += 1
        tally.images.add(seed.encode())
        tally.levels.append(f"left={len(left)}")

    monkeypatch.setattr("tornpage.properties.explore.crashes.shards.explore_seed", short)
    return seeds


@pytest.mark.slow
def test_a_campaign_that_ends_inside_a_shard_continues_after_the_kept_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, explored: list[str]
) -> None:
    [shard] = planned(1, states=15, seed=4)
    whole = rows_of_shard(shard)
    runs = [row["seed"] for row in whole[:-1]]
    assert len({row["levels"] for row in whole[:-1]}) == len(runs) == 5
    explored.clear()
    keep = CampaignFiles.keep_page
    kept: list[int] = []

    def interrupted(files: CampaignFiles, *page: Any) -> None:
        keep(files, *page)
        kept.append(page[0])
        if len(kept) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(CampaignFiles, "keep_page", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_here([shard], tmp_path / "run")
    files = CampaignFiles(tmp_path / "run")
    assert files.complete() == set()
    assert files.shards() == []
    assert CrashCampaign().progress(files, shard).runs == 2
    assert {*explored} == {*runs[:2]}
    explored.clear()
    run_here([shard], tmp_path / "run")
    assert {*explored} == {*runs[2:]}
    assert result_hash(files.rows([0])) == result_hash(whole) == summary_of(files, [0]).result_hash
    assert not (tmp_path / "run/progress").exists()


@pytest.mark.slow
def test_a_campaign_interrupted_three_times_ends_with_the_hash_of_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, explored: list[str]
) -> None:
    shards = planned(3, states=15, seed=4)
    run_here(shards, tmp_path / "whole")
    whole = summary_of(CampaignFiles(tmp_path / "whole"), range(3))
    keep, left = CampaignFiles.keep_page, [1, 4, 3]
    explored.clear()

    def interrupted(files: CampaignFiles, *page: Any) -> None:
        keep(files, *page)
        if left:
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt

    monkeypatch.setattr(CampaignFiles, "keep_page", interrupted)
    while left:
        with pytest.raises(KeyboardInterrupt):
            run_here(shards, tmp_path / "run")
        left.pop(0)
    run_here(shards, tmp_path / "run")
    resumed = summary_of(CampaignFiles(tmp_path / "run"), range(3))
    assert resumed.result_hash == whole.result_hash
    assert resumed.totals["states"] == whole.totals["states"] == 45
    assert {*explored} == {f"4:{shard * 1_000_000 + number}" for shard in range(3) for number in range(5)}


@pytest.mark.slow
def test_complete_shards_are_not_run_again(tmp_path: Path, explored: list[str]) -> None:
    out, shards = tmp_path / "run", planned(2, states=6, seed=3)
    run_here(shards[:1], out, keep_every_s=60.0)
    assert {*explored} == {"3:0", "3:1"}
    explored.clear()
    run_here(shards, out, keep_every_s=60.0)
    assert {*explored} == {"3:1000000", "3:1000001"}
    expected = [row for shard in shards for row in rows_of_shard(shard)]
    assert summary_of(CampaignFiles(out), [0, 1]).result_hash == result_hash(expected)


def test_end_of_a_shard_lets_another_write_its_first_page(tmp_path: Path) -> None:
    """Regression: the folder of pages vanished while another worker made its page in it.

    The last turn of a shard removed the folder if it was empty.
    """
    pytest.importorskip("pyarrow")
    files, page = CampaignFiles(tmp_path), tmp_path / "progress/shard-000001-0000000-0000000.parquet"
    content = parquet_of([files.table.row(kind="shard")])
    with whole(page) as unfinished:
        files.keep_shard(0, 0, content)
        unfinished.write_bytes(content)
    assert page.exists()
    files.remove_empty_folder()
    assert page.exists()
    page.unlink()
    files.remove_empty_folder()
    assert not page.parent.exists()


def test_progress_of_pages_is_the_progress_of_the_runs(tmp_path: Path) -> None:
    """A resumed shard must know all failures, hits and counts of its kept runs."""
    pytest.importorskip("pyarrow")
    [shard] = planned(1, states=60, seed=5, settings=Settings(bug="lying-flush"))
    run = ShardRun(shard)
    with choose_tracker("auto") as tracker:
        run_shard(run, tracker=tracker, is_paused=lambda: True)
    assert run.paused
    assert len(run.histories) == 1
    assert run.breaks
    CampaignFiles(tmp_path).keep_page(0, 0, 1, parquet_of(shard_rows(run)))
    assert CrashCampaign().progress(CampaignFiles(tmp_path), shard) == run.progress()


@pytest.mark.slow
def test_pages_that_overlap_are_followed_from_the_first_run(tmp_path: Path) -> None:
    """A worker that counted as lost may still write its page, with other bounds."""
    pytest.importorskip("pyarrow")
    *histories, last = rows_of(SHARDS[0])
    rows = [{**histories[0], "seed": f"3:{number}"} for number in range(5)]
    page = {**last, "kind": "page"}
    files = CampaignFiles(tmp_path)
    for first, end in ((0, 2), (0, 3), (2, 3), (3, 4), (7, 9)):
        files.keep_page(0, first, end, parquet_of([*rows[first:end], page]))
    assert CrashCampaign().progress(files, SHARDS[0]).runs == 4
    files.keep_shard(0, 4, parquet_of([rows[4], last]))
    assert [row["seed"] for row in files.rows([0])] == ["3:0", "3:1", "3:2", "3:3", "3:4", ""]
    assert not list((tmp_path / "progress").iterdir())
    with pytest.raises(OutputTaken, match=r"lacks pages of shard 1 before run 2; use --resume"):
        files.keep_shard(1, 2, parquet_of([rows[4], last]))


def some_rows(shards: int) -> list[list[Row]]:
    """Return rows of shards made from two that were run."""
    given = [rows_of(shard) for shard in SHARDS]
    made = []
    for number in range(shards):
        rows = [{**row, "shard": number} for row in given[number % 2]]
        rows[0]["images_hash"] = f"{number % 3:064x}"
        made.append(rows)
    return made


@pytest.mark.slow
def test_merged_summaries_are_the_summary_of_all() -> None:
    shards = some_rows(7)
    whole = summary_of_rows(shards)
    merged = Summary()
    for part in (shards[:1], shards[1:5], [], shards[5:]):
        merged.merge(pickle.loads(pickle.dumps(summary_of_rows(part))))  # as from a Spark task
    for name in ("totals", "verdicts", "counts", "canaries", "digests", "curve", "shard_seconds", "last_shard"):
        assert getattr(merged, name) == getattr(whole, name)
    assert merged.levels.exercised() == whole.levels.exercised()
    assert merged.discovery() == whole.discovery()
    assert whole.result_hash == result_hash([row for rows in shards for row in rows])
    assert whole.discovery()[-1]["states"] == whole.totals["states"]
    assert whole.discovery()[-1]["distinct_images"] < whole.totals["images"]


@pytest.mark.slow
def test_a_summary_ends_with_the_shard_with_enough_failures() -> None:
    shards = some_rows(5)
    for number, rows in enumerate(shards[1:], 1):
        rows[0] |= {"verdict": "broken", "contract": number, "sentence": f"sentence {number}", "token": "tp1-"}
    whole = summary_of_rows(shards, 2)
    assert (whole.last_shard, len(whole.broken)) == (2, 2)
    merged = Summary()
    parts = {(0, 1): shards[:2], (2, 3, 4): shards[2:]}
    for numbers, some in parts.items():
        _add_in_order(merged, summary_of_rows(some, 3), GivenFiles(shards), numbers, 2)
    assert merged.digests == whole.digests


class GivenFiles(CampaignFiles):
    """Files with given rows."""

    def __init__(self, shards: list[list[Row]]) -> None:
        super().__init__(Path("given"))
        self._given = shards

    def rows(self, shards: Iterable[int], columns: Sequence[str] | None = None) -> Iterator[Row]:
        for number in shards:
            yield from self._given[number]


def test_the_discovery_curve_of_many_runs_has_some_points() -> None:
    run = rows_of(SHARDS[0])[0]
    rows = [
        {**run, "seed": f"3:{n}", "states": 1, "images": 2, "images_hash": f"{n // 2:016x}" + 48 * "0"}
        for n in range(2 * CURVE_POINTS + 10)
    ]
    curve = summary_of_rows([[*rows, rows_of(SHARDS[0])[-1]]]).discovery()
    assert len(curve) <= CURVE_POINTS
    assert curve[-1] == {"states": len(rows), "distinct_images": len(rows), "distinct_recovered": run["recovered"]}
    assert curve == sorted(curve, key=lambda point: point["states"])


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
    files = CampaignFiles(tmp_path)
    files.keep_shard(0, 0, parquet_of(rows_of(SHARDS[0])))
    assert files.complete() == {0}
    whole = path.read_bytes()
    if what == "other columns":
        pq.write_table(pa.table({"shard": ["zero"]}), path)
    else:
        path.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "no Parquet": b"{}"}[what])
    for ask in (files.complete, lambda: [*files.rows([0])]):
        with pytest.raises(OutputTaken, match=r"part-shard-000000\.parquet cannot be read: .*; remove it"):
            ask()
    path.unlink()
    assert files.complete() == set()
