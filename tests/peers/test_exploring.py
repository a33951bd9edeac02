"""Test runs of a live Java store on crash images of our store's histories."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.explore import command
from tornpage.peers.exploring import PeerExploration, PeerPlan, explore_with_peer
from tornpage.peers.judging import judge_with_peer
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Process
from tornpage.properties.judge.image import read_image
from tornpage.properties.judge.shape import SettingsOverride
from tornpage.properties.program.case import Settings
from tornpage.reports.results.intervals import interval

PEER = ("--peer", "rocketmq:4.9.3")


def explored(release: Release, settings: Settings, *, states: int, workers: int = 1) -> PeerExploration:
    return explore_with_peer(release, PeerPlan(settings, states=states, workers=workers))


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(command, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.mark.slow
def test_equal_seeds_give_equal_counts_with_any_number_of_workers(release: Release) -> None:
    first, second = (explored(release, Settings(disk="journal"), states=40, workers=count) for count in (1, 2))
    assert first.states == 40
    assert first.own_states == 0
    assert first.peer_broken == second.peer_broken
    assert first.peer_broken[7] == 0
    assert first.peer_broken[5] > 0
    assert first.by_flush == second.by_flush
    assert first.proven_legal > 0
    assert {number: example.ruling for number, example in first.examples.items()} == {
        number: example.ruling for number, example in second.examples.items()
    }


@pytest.mark.slow
def test_a_killed_process_leaves_what_java_opens(release: Release) -> None:
    found = explored(release, Settings(disk="kill"), states=30)
    assert (found.states, found.own_states) == (30, 0)
    assert found.peer_broken[1] == found.peer_broken[2] == found.peer_broken[7] == 0


@pytest.mark.slow
def test_size_that_is_not_durable_keeps_java_from_starting(release: Release) -> None:
    found = explored(release, Settings(disk="journal", bug="size-not-synced"), states=40)
    assert found.own_broken[7] > 0
    assert found.peer_broken[7] > 0


@pytest.mark.slow
def test_our_store_opens_crash_states_of_javas_own_writes(release: Release) -> None:
    """Java leaves short files. Our store opens all of them and keeps every record."""
    settings = Settings(disk="journal")
    found = explore_with_peer(release, PeerPlan(settings, states=16, every=40, writer="peer"))
    assert (found.states, found.own_states, found.lost) == (16, 0, [])
    assert found.proven_legal > 0


@pytest.mark.slow
def test_a_planted_bug_is_ours_and_not_the_peers(release: Release) -> None:
    found = explored(release, Settings(bug="lying-flush"), states=40)
    assert found.own_broken[2] > 0


@pytest.mark.slow
def test_the_first_images_are_kept_and_judged_again(release: Release, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path), "--shrink-seconds", "0")
    done = run("crashes", *PEER, "--states", "40", "--disk", "journal", *out, "--json")
    document = json.loads(done.stdout)
    assert (done.exit_code, document["verdict"], document["figures"]["states"]) == (0, "holds", 40)
    (peer,) = document["peers"]
    rows = {row["number"]: row for row in peer["by_number"]}
    assert 0 < rows[5]["low"] < rows[5]["share"] == rows[5]["states_broken"] / 40 < rows[5]["high"] < 1
    assert {path.name for path in (tmp_path / "images").iterdir()} == {f"contract-{number}" for number in rows}
    with Process(release) as process:
        override = SettingsOverride().with_numbers(maxHashSlotNum=50)
        found = judge_with_peer(process, read_image(tmp_path / "images" / "contract-5"), override=override)
    assert 5 in found.numbers("broken")
    text = run("crashes", *PEER, "--states", "5", *out).stdout
    assert "rocketmq:4.9.3: " in text
    assert text.endswith("verdict: holds\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("crashes", "--every", "3"), "give --peer too"),
        (("crashes", "--writer", "peer"), "give --peer too"),
        (("crashes", "--peer-mode", "quick"), "--peer-mode is for runs with a peer"),
        (("crashes", "--shrink-seconds", "5"), "--shrink-seconds is for runs with a peer"),
        (("crashes", *PEER, "--states-per-shard", "9"), "--states-per-shard is not for runs with --peer"),
        (("crashes", "--peer", "java"), "'java' is no peer; give rocketmq:VERSION"),
    ],
)
def test_misuse_is_one_line(arguments: tuple[str, ...], line: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert line in done.stderr


def test_the_interval_of_a_share() -> None:
    assert interval(0, 0) == (0.0, 1.0)
    low, high = interval(0, 100)
    assert (low, round(high, 4)) == (0.0, 0.037)
    assert [round(each, 4) for each in interval(50, 100)] == [0.4038, 0.5962]
