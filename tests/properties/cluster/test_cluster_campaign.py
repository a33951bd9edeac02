"""Test campaigns of clusters: seeds, verdicts, planted bugs, programs, the command."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli
from tornpage.model.replication.operations import RunAll
from tornpage.properties.contract import Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.cluster.campaign import CANARY, ClusterPlan, explore_cluster
from tornpage.properties.explore.cluster.programs import all_programs
from tornpage.properties.planted import CLUSTER_REPRODUCERS
from tornpage.properties.program.cluster_case import ClusterCase, ClusterSettings

TWO = ClusterSettings()


def test_equal_seeds_give_equal_campaigns(tracker: DirtyTracker) -> None:
    first, second = (explore_cluster(ClusterPlan(TWO, seed=3, states=12), tracker=tracker) for _ in range(2))
    assert first.result_hash == second.result_hash
    assert first.canary == CANARY
    assert first.verdict in (Verdict.HOLDS, Verdict.VACUOUS)
    other = explore_cluster(ClusterPlan(TWO, seed=4, states=2), tracker=tracker)
    assert other.result_hash != first.result_hash


def test_a_short_campaign_is_vacuous(tracker: DirtyTracker) -> None:
    result = explore_cluster(ClusterPlan(TWO, states=1), tracker=tracker)
    assert result.verdict is Verdict.VACUOUS
    assert "log cut" in result.silent


def test_a_campaign_on_the_disk_kill_asks_for_no_lost_write(tracker: DirtyTracker) -> None:
    result = explore_cluster(ClusterPlan(ClusterSettings(disk="kill"), states=1), tracker=tracker)
    assert "log cut" in result.silent
    assert "writes lost" not in result.silent


@pytest.mark.deep
@pytest.mark.parametrize("bug", CLUSTER_REPRODUCERS)
def test_a_campaign_catches_it(bug: str, tracker: DirtyTracker) -> None:
    nodes = CLUSTER_REPRODUCERS[bug].settings.nodes
    plan = ClusterPlan(ClusterSettings(nodes=nodes, bug=bug), seed=1, states=4_000)
    assert explore_cluster(plan, tracker=tracker).verdict is Verdict.BROKEN


@pytest.mark.deep
@pytest.mark.parametrize("nodes", [2, 3])
def test_a_long_campaign_holds(nodes: int, tracker: DirtyTracker) -> None:
    result = explore_cluster(ClusterPlan(ClusterSettings(nodes=nodes), seed=5, states=3_000), tracker=tracker)
    assert result.verdict is Verdict.HOLDS, result.silent


def test_all_programs_of_one_operation(tracker: DirtyTracker) -> None:
    result = explore_cluster(ClusterPlan(TWO, length=1), tracker=tracker)
    assert result.tally.runs == len(list(all_programs(1)))
    assert not result.found


@pytest.mark.deep
def test_all_programs_of_two_operations_hold(tracker: DirtyTracker) -> None:
    assert explore_cluster(ClusterPlan(TWO, length=2), tracker=tracker).verdict is Verdict.HOLDS


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_finds_a_bug_and_its_token_replays() -> None:
    result = CliRunner().invoke(cli, ["explore", "cluster", "--bug", "RB08", "--states", "60", "--json"])
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["figures"]["states"] > 0
    token = document["findings"][0]["token"]
    assert token.startswith("tc1-")
    again = CliRunner().invoke(cli, ["replay", token])
    assert again.exit_code == 1
    assert "acknowledges more as durable" in again.stdout
    small = CliRunner().invoke(cli, ["shrink", token, "--seconds", "2", "--json"])
    assert small.exit_code == 1
    assert json.loads(small.stdout)["figures"]["operations"] <= document["figures"]["states"]


def test_a_case_is_told_on_a_page_and_kept_as_a_test(tmp_path: Path) -> None:
    token = CLUSTER_REPRODUCERS["RB01"].token()
    page = tmp_path / "page.html"
    told = CliRunner().invoke(cli, ["explain", token, "--out", str(page), "--json"])
    assert told.exit_code == 1, told.output
    assert json.loads(told.stdout)["findings"][0]["page"] == str(page)
    text = page.read_text(encoding="utf-8")
    for part in ("contract 15 is broken", "crash_node()", "node 1 to node 0", "ACK received", "down", "<svg", "RB01"):
        assert part in text, part
    kept = CliRunner().invoke(cli, ["promote", token, "--name", "kept", "--directory", str(tmp_path)])
    assert kept.exit_code == 0, kept.output
    names: dict[str, Any] = {}
    exec((tmp_path / "test_kept.py").read_text(encoding="utf-8"), names)
    tests = [test for name, test in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()


def test_a_page_is_written_for_a_shrunk_case(tmp_path: Path) -> None:
    small = CLUSTER_REPRODUCERS["RB08"]
    large = ClusterCase(small.settings, (*small.operations, RunAll(), RunAll()))
    page = tmp_path / "page.html"
    told = CliRunner().invoke(cli, ["explain", large.token(), "--seconds", "5", "--out", str(page)])
    assert told.exit_code == 1, told.output
    assert "3 operations became 1 in" in page.read_text(encoding="utf-8")


def test_a_case_that_holds_has_no_page(tmp_path: Path) -> None:
    token = CLUSTER_REPRODUCERS["RB02"].with_bug("").token()
    page = tmp_path / "page.html"
    assert CliRunner().invoke(cli, ["explain", token, "--out", str(page)]).exit_code == 0
    assert not page.exists()


def test_a_token_without_a_bug_holds() -> None:
    token = CLUSTER_REPRODUCERS["RB02"].token()
    assert CliRunner().invoke(cli, ["replay", token]).exit_code == 1
    shown = CliRunner().invoke(cli, ["bugs", "show", "RB02"])
    assert shown.exit_code == 0
    assert token in shown.stdout
    assert "1. run_all()" in shown.stdout


def test_a_changed_token_is_refused() -> None:
    assert CliRunner().invoke(cli, ["replay", "tc1-00000000-AAAA"]).exit_code == 2
