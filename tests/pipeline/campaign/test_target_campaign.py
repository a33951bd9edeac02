"""Test campaigns of a foreign store: kept by shard, resumable, equal in Spark and here."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.campaign import command
from tornpage.outcomes.targets import absolute_target
from tornpage.pipeline.campaign.targets import (
    explored_in,
    prepare_target_output,
    run_target_shard,
    run_targets_serial,
    target_campaign,
    target_shards,
)
from tornpage.pipeline.rows.outputs import OutputTaken
from tornpage.properties.campaign.result import CampaignResult
from tornpage.properties.explore.foreign.campaign import TargetPlan, TargetResult, TargetTally
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


@pytest.mark.slow
def test_an_interrupted_campaign_ends_with_the_hash_of_a_whole_one(tmp_path: Path) -> None:
    shards = target_shards(PLAN, shards=2, states_per_shard=10)
    out, whole = tmp_path / "run", tmp_path / "whole"
    prepare_target_output(out, shards[:1], resume=False)
    run_targets_serial(shards[:1], out)
    first = out / "target-histories" / "part-shard-000000.parquet"
    kept = first.stat().st_mtime_ns
    prepare_target_output(out, shards, resume=True)
    run_targets_serial(shards, out)
    assert first.stat().st_mtime_ns == kept
    run_targets_serial(shards, whole)
    (resumed, lost), (uninterrupted, _) = (explored_in(each, shards, is_cut=True) for each in (out, whole))
    assert lost == []
    assert resumed.result_hash == uninterrupted.result_hash
    assert (resumed.tally.states, resumed.shards) == (20, 2)
    assert resumed.tally.lines() == uninterrupted.tally.lines()
    assert [each.failure.broken.contract for each in resumed.found] == [2]
    other = target_shards(replace(PLAN, seed=1), shards=1, states_per_shard=10)
    with pytest.raises(OutputTaken, match=r"another campaign of a store \(other seed\)"):
        prepare_target_output(out, other, resume=True)


def test_a_store_that_a_worker_does_not_see_loses_its_shard_only(tmp_path: Path) -> None:
    store = tmp_path / "toy.py"
    shutil.copy(TOY, store)
    plan = replace(PLAN, settings=Settings(target=f"{store}:ToyStore"), states=4)
    (shard,) = target_shards(plan, shards=1, states_per_shard=4)
    store.unlink()
    rows = run_target_shard(shard)
    assert [(row["kind"], row["verdict"]) for row in rows] == [("shard", "harness")]
    assert f"there is no file {store}" in rows[0]["sentence"]
    run_targets_serial([shard], tmp_path / "run")
    result, lost = explored_in(tmp_path / "run", [shard])
    assert (result.tally.states, len(lost)) == (0, 1)
    shutil.copy(TOY, store)
    run_targets_serial([shard], tmp_path / "run")
    result, lost = explored_in(tmp_path / "run", [shard], is_cut=True)
    assert (result.tally.states, lost) == (4, [])


@pytest.mark.slow
def test_spark_tasks_give_the_same_hash(spark: "SparkSession", tmp_path: Path) -> None:
    shards = target_shards(PLAN, shards=2, states_per_shard=10)
    target_campaign(spark, shards, tmp_path / "spark")
    run_targets_serial(shards, tmp_path / "here")
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
        (("--target", PLAN.settings.target, "--plan"), "--plan is not for runs with --target"),
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
