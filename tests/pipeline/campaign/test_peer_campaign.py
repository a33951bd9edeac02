"""Test campaigns with a peer: kept by shard, resumable, equal in Spark and here."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.campaign import command
from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.exploring import PeerExploration, PeerPlan
from tornpage.peers.rocketmq.installing import REFERENCE, Release, installed
from tornpage.pipeline.campaign.files import CampaignFiles, parquet_of, shared_place
from tornpage.pipeline.campaign.peers import (
    PEERS,
    PeerCampaign,
    PeerProgress,
    PeerShard,
    explored_in,
    peer_shards,
    prepare_peer_output,
)
from tornpage.pipeline.campaign.turns import TurnRows, campaign, run_serial
from tornpage.pipeline.rows.outputs import OutputTaken
from tornpage.properties.program.case import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PEER = ("--peer", f"rocketmq:{REFERENCE}")
PLAN = PeerPlan(Settings(disk="journal"), states=12, every=20)


@pytest.fixture(scope="module")
def release() -> Release:
    try:
        return installed(REFERENCE)
    except PeerUnavailable as missing:
        pytest.skip(str(missing))


def counts(found: PeerExploration) -> tuple[object, ...]:
    return (found.states, found.distinct, found.histories, found.peer_states, found.own_states, found.peer_broken,
            found.by_flush, found.numbers_by_flush, sorted(found.examples), found.lost)  # fmt: skip


def run_here(shards: list[PeerShard], out: Path, *, keep_every_s: float = 60.0) -> None:
    """Run shards in this process."""
    out.mkdir(exist_ok=True)
    with shared_place(out) as place:
        run_serial(PeerCampaign(), shards, place, keep_every_s=keep_every_s)


def complete(out: Path) -> set[int]:
    return CampaignFiles(out, PEERS).complete()


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(command, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_a_campaign_goes_on_where_it_stopped(release: Release, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shards = peer_shards(release, PLAN, shards=2, states_per_shard=12)
    prepare_peer_output(out, shards[:1], resume=False)
    run_here(shards[:1], out)
    assert complete(out) == {0}
    first = explored_in(out, shards)
    assert (first.states, first.own_states) == (12, 0)
    kept = (out / PEERS.rows / "part-shard-000000.parquet").stat().st_mtime_ns
    prepare_peer_output(out, shards, resume=True)
    run_here(shards, out)
    both = explored_in(out, shards)
    assert complete(out) == {0, 1}
    assert both.states == 24
    assert (out / PEERS.rows / "part-shard-000000.parquet").stat().st_mtime_ns == kept
    assert counts(explored_in(out, shards[:1])) == counts(first)
    other = peer_shards(release, replace(PLAN, every=3), shards=1, states_per_shard=12)
    with pytest.raises(OutputTaken, match=r"another campaign with a peer \(other every\)"):
        prepare_peer_output(out, other, resume=True)
    with pytest.raises(OutputTaken, match="continue with --resume"):
        prepare_peer_output(out, shards, resume=False)
    (out / PEERS.rows / "part-shard-000001.parquet").write_bytes(b"torn")
    with pytest.raises(OutputTaken, match="remove it, and --resume runs it again"):
        complete(out)


@pytest.mark.slow
def test_a_shard_in_turns_has_the_counts_and_images_of_a_shard_in_one_turn(release: Release, tmp_path: Path) -> None:
    """Regression: a lost worker, or an interrupt, lost the whole shard."""
    plan, kind, files = replace(PLAN, every=40), PeerCampaign(), CampaignFiles(tmp_path / "run", PEERS)
    shards = peer_shards(release, plan, shards=1, states_per_shard=30)
    before, pages = PeerProgress(), 0
    while files.complete() == set():
        made = kind.turn(shards[0], before, lambda: True)
        assert isinstance(made, TurnRows)
        content = parquet_of(made.rows, PEERS)
        if made.is_last:
            files.keep_shard(0, before.runs, content)
        else:
            files.keep_page(0, before.runs, made.progress.runs, content)
            assert kind.progress(files, shards[0]) == made.progress
            pages += 1
        before = made.progress
    assert pages >= 1
    run_here(shards, tmp_path / "whole")
    assert counts(explored_in(tmp_path / "run", shards)) == counts(explored_in(tmp_path / "whole", shards))
    turned, whole = (explored_in(tmp_path / name, shards).examples for name in ("run", "whole"))
    assert turned == whole


def test_a_shard_without_a_peer_is_run_again(release: Release, tmp_path: Path) -> None:
    out = tmp_path / "run"
    gone = replace(release, java=str(tmp_path / "no-java"))
    broken = peer_shards(gone, PLAN, shards=1, states_per_shard=12)
    run_here(broken, out)
    found = explored_in(out, broken)
    assert (found.states, complete(out)) == (0, set())
    assert found.lost[0].startswith("shard 0: cannot start ")
    shards = peer_shards(release, PLAN, shards=1, states_per_shard=12)
    run_here(shards, out)
    assert (explored_in(out, shards).states, complete(out)) == (12, {0})


@pytest.mark.slow
def test_spark_tasks_give_the_same_rows(spark: "SparkSession", release: Release, tmp_path: Path) -> None:
    shards = peer_shards(release, PLAN, shards=2, states_per_shard=12)
    prepare_peer_output(tmp_path / "spark", shards, resume=False)
    with shared_place(tmp_path / "spark") as place:
        campaign(spark, PeerCampaign(), shards, place, keep_every_s=0.0)
    run_here(shards, tmp_path / "here")
    assert counts(explored_in(tmp_path / "spark", shards)) == counts(explored_in(tmp_path / "here", shards))


def test_states_of_a_shard_are_counted_to_its_limit(release: Release) -> None:
    (shard,) = peer_shards(release, PLAN, shards=1, states_per_shard=7)
    made = PeerCampaign().turn(shard, PeerProgress(), lambda: False)
    assert isinstance(made, TurnRows)
    assert sum(row["states"] for row in made.rows if row["kind"] == "history") == 7
    assert made.rows[-1]["kind"] == "shard"


def test_the_command_keeps_tables_and_images(release: Release, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = (*PEER, "--disk", "journal", "--every", "20", "--shards", "1", "--states-per-shard", "12",
                 "--engine", "serial", "--shrink-seconds", "0", "--out", str(out), "--json")  # fmt: skip
    document = json.loads(run(*arguments).stdout)
    assert (document["command"], document["verdict"], document["figures"]["states"]) == ("campaign", "holds", 12)
    rows = json.loads((out / "tables" / "peer-shares.json").read_text())["rows"]
    assert {row["number"] for row in rows} >= {0}
    assert sum(row["states"] for row in rows if row["number"] == 0) == 12
    refused = run(*arguments)
    assert (refused.exit_code, "continue with --resume" in refused.stderr) == (2, True)
    again = json.loads(run(*arguments, "--resume").stdout)
    same = {name: value for name, value in again["figures"].items() if name not in again["timings"]}
    assert same == {name: value for name, value in document["figures"].items() if name not in document["timings"]}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--writer", "peer"), "--writer is for runs with a peer"),
        (("--shrink-seconds", "3"), "--shrink-seconds is for runs with a peer"),
        ((*PEER, "--strategy", "random"), "--strategy is not for runs with --peer"),
        (("--peer", "rocketmq:1.0"), "is not a known version"),
    ],
)
def test_misuse_is_one_line(arguments: tuple[str, ...], line: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert line in done.stderr
