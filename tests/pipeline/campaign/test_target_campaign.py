"""Test campaigns of a foreign store: kept by shard, resumable, equal in Spark and here."""

import json
import os
import pickle
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from tests.properties.foreign.test_open_many import Log
from tornpage.cli.campaign import command
from tornpage.outcomes.targets import absolute_target
from tornpage.pipeline.campaign.files import CampaignFiles, parquet_of, shared_place
from tornpage.pipeline.campaign.targets import (
    TARGETS,
    TargetCampaign,
    TargetShard,
    explored_in,
    prepare_target_output,
    target_shards,
)
from tornpage.pipeline.campaign.turns import TurnRows, campaign, run_serial
from tornpage.pipeline.rows.outputs import OutputTaken
from tornpage.pipeline.spark.jobs import Death
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.explore.crashes.rows import Row
from tornpage.properties.explore.foreign.campaign import TargetPlan, TargetProgress, TargetResult, TargetTally
from tornpage.properties.program.case import Settings
from tornpage.render.explorations import target_outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOY = Path(__file__).parents[3] / "examples" / "toy_store.py"
PLAN = TargetPlan(Settings(target=f"{TOY}:ToyStore"), states=10)


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(command, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_each_lost_shard_is_a_finding() -> None:
    """Regression: a campaign with dead workers was `harness` without a finding."""
    result: TargetResult = CampaignResult(TargetTally(states=4, histories=1))
    result.faults += ["shard 1: its process ended", "shard 2: its process ended"]
    outcome, text = target_outcome(result, PLAN, command="tornpage campaign", out=None, verb="campaign")
    assert (outcome.verdict, outcome.exit_code) == ("harness", 4)
    said = [each["sentence"] for each in outcome.findings if each["severity"] == "harness"]
    assert said == result.faults
    assert all(sentence in text for sentence in said)


def run_here(shards: list[TargetShard], out: Path, *, keep_every_s: float = 60.0) -> None:
    """Run shards in this process."""
    prepare_target_output(out, shards, resume=out.exists())
    with shared_place(out) as place:
        run_serial(TargetCampaign(), shards, place, keep_every_s=keep_every_s)


@pytest.mark.slow
def test_an_interrupted_campaign_ends_with_the_hash_of_a_whole_one(tmp_path: Path) -> None:
    shards = target_shards(PLAN, shards=2, states_per_shard=10)
    out, whole = tmp_path / "run", tmp_path / "whole"
    run_here(shards[:1], out)
    first = out / "target-histories" / "part-shard-000000.parquet"
    kept = first.stat().st_mtime_ns
    run_here(shards, out)
    assert first.stat().st_mtime_ns == kept
    run_here(shards, whole)
    (resumed, lost), (uninterrupted, _) = (explored_in(each, shards, is_cut=True) for each in (out, whole))
    assert lost == []
    assert resumed.result_hash == uninterrupted.result_hash
    assert (resumed.tally.states, resumed.shards) == (20, 2)
    assert resumed.tally.lines() == uninterrupted.tally.lines()
    assert [each.failure.broken.contract for each in resumed.found] == [2]
    other = target_shards(replace(PLAN, seed=1), shards=1, states_per_shard=10)
    with pytest.raises(OutputTaken, match=r"another campaign of a store \(other seed\)"):
        prepare_target_output(out, other, resume=True)


REUSED = Path(__file__).parents[2] / "properties" / "foreign" / "test_open_many.py"


class HalfMade(Log):
    """Does not open again after a crash between the two files of its very first open."""

    def __init__(self, directory: str) -> None:
        begun, made = (Path(directory, name) for name in ("begun", "made"))
        if begun.exists() and not made.exists():
            raise OSError("half made")
        begun.touch()
        super().__init__(directory)
        made.touch()
        top = os.open(directory, os.O_RDONLY)
        os.fsync(top)
        os.close(top)


class Refuses(Log):
    """Does not open with some messages as the last one, for one of many reasons."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        drawn = zlib.crc32(json.dumps(self.lines[-1:]).encode())
        if self.lines and drawn % 6 == 0:
            raise OSError(f"reason {chr(97 + drawn // 6 % 26)}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    [
        replace(PLAN, states=40, start="first-answer", settings=replace(PLAN.settings, disk="kill")),
        replace(PLAN, states=40),
        TargetPlan(Settings(target=f"{__file__}:HalfMade"), states=90),
        TargetPlan(Settings(target=f"{__file__}:Refuses"), states=150),
        TargetPlan(Settings(target=f"{REUSED}:Carries"), states=40, seed=3),
    ],
    ids=["kills", "one failure", "the first open", "many failures", "reused processes"],
)
def test_a_shard_in_turns_has_the_rows_and_the_hash_of_a_shard_in_one_turn(plan: TargetPlan, tmp_path: Path) -> None:
    """Everything on which a later run depends is in the progress, and in the last page."""
    assert plan.states is not None
    kind, files = TargetCampaign(), CampaignFiles(tmp_path, TARGETS)
    (shard,) = target_shards(plan, shards=1, states_per_shard=plan.states)
    whole = turned(kind.turn(shard, TargetProgress(), lambda: False))
    before, is_last, turns = TargetProgress(), False, 0
    while not is_last:
        made = turned(kind.turn(shard, before, lambda: True))
        is_last, turns, content = made.is_last, turns + 1, parquet_of(made.rows, TARGETS)
        if is_last:
            files.keep_shard(0, before.runs, content)
        else:
            files.keep_page(0, before.runs, made.progress.runs, content)
            assert kind.progress(files, shard) == made.progress
            assert pickle.loads(pickle.dumps(made.progress)) == made.progress
        before = made.progress
    assert turns == whole.progress.runs > 1
    assert before == whole.progress
    assert [unmeasured(row) for row in files.rows([0])] == [unmeasured(row) for row in whole.rows]
    assert whole.rows[-1]["result_hash"] == before.result_hash
    assert not list((tmp_path / TARGETS.pages).iterdir())


def turned(made: TurnRows[TargetProgress] | Death) -> TurnRows[TargetProgress]:
    assert isinstance(made, TurnRows), made
    return made


def unmeasured(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "seconds"}


@pytest.mark.slow
def test_an_interrupt_inside_a_shard_keeps_the_turns_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: an interrupt lost all runs of a shard that was not complete."""
    shards = target_shards(PLAN, shards=2, states_per_shard=40)
    out, whole, kept = tmp_path / "run", tmp_path / "whole", list[tuple[int, ...]]()
    keep = CampaignFiles.keep_page

    def interrupted(files: CampaignFiles, shard: int, first: int, end: int, content: bytes) -> None:
        keep(files, shard, first, end, content)
        kept.append((shard, first, end))
        if len(kept) in (2, 3):
            raise KeyboardInterrupt

    monkeypatch.setattr(CampaignFiles, "keep_page", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run_here(shards, out, keep_every_s=0.0)
    run_here(shards, out, keep_every_s=0.0)
    assert kept[:3] == [(0, 0, 1), (0, 1, 2), (0, 2, 3)]
    assert len({*kept}) == len(kept)  # no run was kept twice
    run_here(shards, whole)
    (resumed, lost), (uninterrupted, _) = (explored_in(each, shards, is_cut=True) for each in (out, whole))
    assert lost == []
    assert resumed.result_hash == uninterrupted.result_hash
    assert resumed.tally.lines() == uninterrupted.tally.lines()
    assert [each.failure for each in resumed.found] == [each.failure for each in uninterrupted.found]


def made_files(out: Path, shards: int) -> CampaignFiles:
    """Write complete shards of one run each, without running them."""
    files = CampaignFiles(out, TARGETS)
    for shard in range(shards):
        run = TARGETS.row(kind="history", shard=shard, states=10, history=shard * 1_000_000, verdict="holds")
        end = TARGETS.row(kind="shard", shard=shard, verdict="holds", canary="c", result_hash=f"{shard:032x}")
        files.keep_shard(shard, 0, parquet_of([run, end], TARGETS))
    return files


def test_progress_counts_only_the_shards_that_were_asked_for(tmp_path: Path) -> None:
    """Regression: a resumed campaign with fewer shards than before showed 300 %."""
    made_files(tmp_path, 3)
    shown: list[tuple[int, int]] = []
    with shared_place(tmp_path) as place:
        shards = target_shards(PLAN, shards=1, states_per_shard=10)
        run_serial(TargetCampaign(), shards, place, progress=lambda states, done: shown.append((states, done)))
    assert shown == [(10, 1)]
    assert explored_in(tmp_path, shards, is_cut=True)[0].tally.states == 10


def test_the_ends_of_shards_are_read_without_their_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: `--resume` read all columns of all rows to know which shards are complete."""
    pq = pytest.importorskip("pyarrow.parquet")
    files = made_files(tmp_path, 2)
    files.keep_lost(2, TARGETS.row(kind="shard", shard=2, verdict="harness"))
    columns: list[list[str]] = []
    read = pq.read_table

    def noted(path: Path, **options: Any) -> Any:
        columns.append(options["columns"])
        return read(path, **options)

    monkeypatch.setattr(pq, "read_table", noted)
    assert files.complete() == {0, 1}
    assert columns == [["kind", "shard", "verdict"]] * 3


def test_the_result_of_many_shards_is_read_one_shard_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the rows of all shards were in memory at once."""
    files, opened, read = made_files(tmp_path, 5), list[int](), list[int]()
    rows, summed = CampaignFiles.rows, TargetTally.add

    def noted(files: CampaignFiles, shards: Iterable[int], columns: Sequence[str] | None = None) -> Iterator[Row]:
        for row in rows(files, shards, columns):
            opened.append(row["shard"])
            yield row

    def added(tally: TargetTally, other: TargetTally) -> None:
        read.append(len({*opened}))
        summed(tally, other)

    monkeypatch.setattr(CampaignFiles, "rows", noted)
    monkeypatch.setattr(TargetTally, "add", added)
    result, _ = explored_in(files.out, target_shards(PLAN, shards=5, states_per_shard=10), is_cut=True)
    assert (result.tally.states, result.tally.histories) == (50, 5)
    assert sorted({*read}) == [0, 1, 2, 3, 4, 5]  # the sum so far grows after each shard


@pytest.mark.slow
def test_a_plan_prints_the_cost_of_a_store_and_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: `--plan` was refused for a foreign store."""
    monkeypatch.setattr("tornpage.pipeline.campaign.cost.TRIAL_SECONDS_MAX", 1.0)
    monkeypatch.chdir(tmp_path)
    arguments = ("--target", PLAN.settings.target, "--from", "first-answer", "--shards", "100", "--plan", "--json")
    done = run(*arguments, "--states-per-shard", "1000", "--master", "spark://nowhere:1", "--cores", "50")
    figures = json.loads(done.stdout)["figures"]
    assert (figures["states"], figures["shards"], figures["cores"]) == (100_000, 100, 50)
    assert 0 <= figures["processor_s_min"] <= figures["processor_s"] <= figures["processor_s_max"]
    assert figures["state_ms"] > 0
    assert figures["trial_runs"] > 0
    assert figures["disk_bytes"] > 100 * 1000
    assert [*tmp_path.iterdir()] == []


def test_a_store_that_cannot_be_tried_has_no_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> Death:
        return Death("the process that forks those of the store has ended")

    monkeypatch.setattr(TargetCampaign, "turn", lost)
    done = run("--target", PLAN.settings.target, "--plan")
    assert (done.exit_code, "the process that forks those of the store has ended" in done.output) == (4, True)


def test_a_store_that_a_worker_does_not_see_loses_its_shard_only(tmp_path: Path) -> None:
    store = tmp_path / "toy.py"
    shutil.copy(TOY, store)
    plan = replace(PLAN, settings=Settings(target=f"{store}:ToyStore"), states=4)
    (shard,) = target_shards(plan, shards=1, states_per_shard=4)
    store.unlink()
    run_here([shard], tmp_path / "run")
    (row,) = CampaignFiles(tmp_path / "run", TARGETS).rows([0])
    assert (row["kind"], row["verdict"]) == ("shard", "harness")
    assert f"there is no file {store}" in row["sentence"]
    result, lost = explored_in(tmp_path / "run", [shard])
    assert (result.tally.states, len(lost)) == (0, 1)
    shutil.copy(TOY, store)
    run_here([shard], tmp_path / "run")
    result, lost = explored_in(tmp_path / "run", [shard], is_cut=True)
    assert (result.tally.states, lost) == (4, [])


@pytest.mark.slow
def test_spark_tasks_give_the_same_hash(spark: "SparkSession", tmp_path: Path) -> None:
    shards = target_shards(PLAN, shards=2, states_per_shard=10)
    prepare_target_output(tmp_path / "spark", shards, resume=False)
    with shared_place(tmp_path / "spark") as place:
        campaign(spark, TargetCampaign(), shards, place, keep_every_s=0.0)
    run_here(shards, tmp_path / "here")
    there, here = (explored_in(tmp_path / name, shards, is_cut=True) for name in ("spark", "here"))
    assert (there[1], here[1]) == ([], [])
    assert there[0].result_hash == here[0].result_hash
    assert there[0].tally.lines() == here[0].tally.lines()


@pytest.mark.slow
def test_the_command_shrinks_the_failures_of_all_shards(tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ("--target", PLAN.settings.target, "--shards", "1", "--states-per-shard", "8", "--engine", "serial",
                 "--out", str(out), "--json")  # fmt: skip
    document = json.loads(run(*arguments).stdout)
    assert (document["command"], document["verdict"], document["figures"]["shards"]) == ("campaign", "broken", 1)
    assert document["figures"]["states"] >= 8
    assert document["findings"][0]["token"].startswith("tp1-")
    assert len(document["result_hash"]) == 64
    refused = run(*arguments)
    assert (refused.exit_code, "continue with --resume" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--answer-seconds", "3"), "--answer-seconds is for a store of yours; give --target too"),
        (("--from", "open"), "--from is for a store of yours; give --target too"),
        (("--target", PLAN.settings.target, "--strategy", "random"), "--strategy is not for runs with --target"),
        (("--target", PLAN.settings.target, "--plan", "--out", "run"), "--out is not for --plan"),
        (("--target", PLAN.settings.target, "--cores", "2"), "--cores is for --plan"),
        (("--target", "nowhere.py:Store"), "there is no file nowhere.py"),
    ],
)
def test_misuse_is_one_line(arguments: tuple[str, ...], line: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert line in done.stderr


def test_paths_of_targets_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(TOY, tmp_path / "toy.py")
    (tmp_path / "store").write_text("#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)
    assert absolute_target("toy.py:ToyStore(pages=3)") == f"{tmp_path}/toy.py:ToyStore(pages=3)"
    assert absolute_target("cmd:./store --dir {dir}") == f"cmd:{tmp_path}/store --dir {{dir}}"
    assert absolute_target("cmd:cat {dir}") == "cmd:cat {dir}"
    assert absolute_target("module:open_store") == "module:open_store"
