"""Test that a peer opens the crash states of every short workload."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.exhaust import command
from tornpage.peers.exhausting import RESUME_FILE, exhaust_with_peer, peer_letters
from tornpage.peers.rocketmq.installing import Release
from tornpage.properties.explore.exhaustive.explored import Plan
from tornpage.properties.explore.exhaustive.resume import OtherPlan

PEER = ("--peer", "rocketmq:4.9.3")
PLAN = Plan(1, 1, disk="journal", operation_names=("put", "reput", "flush"), check_ops=0)


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(command, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_finished_workloads_are_kept(release: Release, tmp_path: Path) -> None:
    first = exhaust_with_peer(release, PLAN, out=tmp_path)
    assert (first.ops, first.workloads, first.again, first.own_workloads, first.is_cut) == (1, 4, 0, 0, False)
    assert 0 < first.images < first.states
    again = exhaust_with_peer(release, PLAN, out=tmp_path)
    assert (again.again, again.states, again.images) == (4, first.states, first.images)
    with (tmp_path / RESUME_FILE).open("a") as file:
        file.write('{"half')
    lines = (tmp_path / RESUME_FILE).read_text().splitlines()
    (tmp_path / RESUME_FILE).write_text("\n".join(lines[:3]) + "\n" + lines[-1])
    third = exhaust_with_peer(release, PLAN, out=tmp_path)
    assert (third.again, third.states) == (2, first.states)
    with pytest.raises(OtherPlan, match="another bound, peer or source"):
        exhaust_with_peer(release, PLAN, mode="quick", out=tmp_path)


def test_a_broken_promise_of_the_peer_is_a_result(release: Release) -> None:
    """The store under a planted bug leaves a queue file without its size, which Java refuses."""
    done = run(*PEER, "--ops", "1", "--letters", "put,reput", "--disk", "journal", "--bug", "size-not-synced", "--json")
    document = json.loads(done.stdout)
    (peer,) = document["peers"]
    assert document["figures"]["own_workloads_broken"] == 0 or done.exit_code == 1
    assert {row["number"] for row in peer["by_number"]} >= {7}
    row = next(row for row in peer["by_number"] if row["number"] == 7)
    assert row["operations"]
    assert row["token"].startswith("tp1-")


def test_operations_that_are_not_derived_are_left_out() -> None:
    names = peer_letters(Plan(1, 1))
    assert {"put", "reput", "close"} <= set(names)
    assert not {"clean", "forget", "delayed", "deliver"} & set(names)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--peer-mode", "quick"), "give --peer too"),
        ((*PEER, "--recovery", "0"), "--recovery is not for runs with --peer"),
        (("--peer", "rocketmq:9.9"), "is not a known version"),
    ],
)
def test_misuse_is_one_line(arguments: tuple[str, ...], line: str) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert line in done.stderr
