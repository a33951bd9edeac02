"""Test the page "RocketMQ under power loss" on written tables."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tornpage.cli.report import command
from tornpage.reports.errors import ReportError
from tornpage.reports.kinds import page_kind
from tornpage.reports.pages.power_loss_page import CAVEATS, build_power_loss_page
from tornpage.reports.results.power_loss import read_power_loss, version_key


def run_of(peer: str, disk: str, *, states: int = 100, own: int = 0, writer: str = "peer") -> dict[str, Any]:
    return {
        "peer": peer, "writer": writer, "disk": disk, "states": states, "histories": 3, "distinct": max(states - 1, 0),
        "proven_legal": 9, "own_states": own, "mode": "light", "seed": 0, "every": 2, "log_file_bytes": 16384,
    }  # fmt: skip


def shares_of(peer: str, disk: str, counts: dict[int, tuple[int, int]], writer: str = "peer") -> list[dict[str, Any]]:
    """Return the rows of both flush types, 50 states each."""
    names = {0: "any number", 2: "Floor", 7: "Starts"}
    return [
        {
            "peer": peer, "writer": writer, "disk": disk, "flush": flush, "number": number, "name": names[number],
            "broken": pair[place], "states": 50,
        }
        for number, pair in counts.items()
        for place, flush in enumerate(("async", "sync"))
    ]  # fmt: skip


def example_of(peer: str, disk: str, number: int, **changes: Any) -> dict[str, Any]:
    return {
        "peer": peer, "writer": "peer", "disk": disk, "flush": "sync", "number": number, "name": "Starts",
        "operations": ["put(topic='U')", "crash(back=5)"], "losses": 1, "due": 1, "peer_kept": None, "own_kept": 1,
        "sentence": f"{peer} does not go on", "expected": "", "found": "", "own_broken": "", "token": "tp1-x",
        "how": "1-minimal, after 9 tries",
    } | changes  # fmt: skip


def write_tables(
    directory: Path, runs: list[dict[str, Any]], shares: list[dict[str, Any]], examples: list[dict[str, Any]]
) -> None:
    (directory / "tables").mkdir(parents=True)
    caption = {"source": "crash states, tornpage 1", "seed": 0, "command": "tornpage campaign --peer"}
    for name, rows in (("peer-runs", runs), ("peer-shares", shares), ("peer-examples", examples)):
        (directory / "tables" / f"{name}.json").write_text(json.dumps({"rows": rows, "caption": caption}))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    old, new = "rocketmq:4.9.3", "rocketmq:5.3.1"
    write_tables(
        tmp_path / "a", [run_of(old, "journal", own=1)], shares_of(old, "journal", {0: (30, 25), 7: (30, 25)}),
        [example_of(old, "journal", 7)],
    )  # fmt: skip
    write_tables(
        tmp_path / "b", [run_of(new, "journal")],
        shares_of(new, "journal", {0: (2, 1), 2: (1, 1), 7: (1, 0)}),
        [example_of(new, "journal", 2, name="Floor"), example_of(new, "journal", 7, sentence="<script>bad")],
    )  # fmt: skip
    write_tables(
        tmp_path / "c", [run_of("rocketmq:4.9.8", "journal")],
        shares_of("rocketmq:4.9.8", "journal", {0: (30, 24), 7: (30, 24)}),
        [example_of("rocketmq:4.9.8", "journal", 7)],
    )  # fmt: skip
    return tmp_path


def test_shares_are_pooled_over_flush_types_and_sorted_by_version(directory: Path) -> None:
    found = read_power_loss(directory)
    assert [(row.peer, row.number, row.broken, row.states) for row in found.pooled("peer")] == [
        ("rocketmq:4.9.3", 0, 55, 100),
        ("rocketmq:4.9.3", 7, 55, 100),
        ("rocketmq:4.9.8", 0, 54, 100),
        ("rocketmq:4.9.8", 7, 54, 100),
        ("rocketmq:5.3.1", 0, 3, 100),
        ("rocketmq:5.3.1", 2, 2, 100),
        ("rocketmq:5.3.1", 7, 1, 100),
    ]
    assert found.pooled("ours") == []
    assert version_key("rocketmq:4.10.0") > version_key("rocketmq:4.9.8")


def test_the_page_has_the_shares_the_caveats_and_both_stores(directory: Path) -> None:
    text = build_power_loss_page(directory).read_text()
    assert "RocketMQ 4.9.3 breaks at least one number in 55.0% of 100 states on disk journal (45.2% to 64.4%)" in text
    assert "tornpage breaks one in 1 of all 300 states" in text
    assert all(caveat.replace("'", "&#39;") in text for caveat in CAVEATS)
    assert "rocketmq:4.9.3 does not go on" in text
    assert "1-minimal, after 9 tries" in text
    assert text.count("<svg") == 2
    assert "60.00%" in text
    assert "<script>bad" not in text


def test_of_other_versions_only_those_that_differ_are_shown(directory: Path) -> None:
    """4.9.8 breaks number 7 as often as the reference.

    5.3.1 breaks it less often, and number 2 in addition.
    """
    text = build_power_loss_page(directory).read_text()
    assert "rocketmq:4.9.8 does not go on" not in text
    assert "rocketmq:5.3.1, disk journal, sync flush: number 2 (Floor)" in text
    assert "rocketmq:5.3.1, disk journal, sync flush: number 7 (Starts)" in text


def test_two_runs_of_the_same_are_refused(directory: Path) -> None:
    write_tables(directory / "d", [run_of("rocketmq:4.9.3", "journal")], [], [])
    with pytest.raises(ReportError, match=r"is a second run of rocketmq:4\.9\.3 on disk journal"):
        read_power_loss(directory)


def test_malformed_tables_are_one_line(directory: Path) -> None:
    (directory / "a" / "tables" / "peer-shares.json").write_text('{"rows": [{"peer": 7}]}')
    done = CliRunner().invoke(command, [str(directory)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "peer-shares.json" in done.stderr


def test_the_command_writes_the_page_of_one_run_or_many(
    directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for place in (directory, directory / "a"):
        done = CliRunner().invoke(command, [str(place), "--json"])
        assert done.exit_code == 0, done.stderr
        assert json.loads(done.stdout)["path"] == str(place / "index.html")
    empty = tmp_path_factory.mktemp("none")
    with pytest.raises(ReportError, match="no run directory"):
        page_kind(empty)
    write_tables(empty / "x", [run_of("rocketmq:4.9.3", "kill", states=0)], [], [])
    done = CliRunner().invoke(command, [str(empty)])
    assert done.exit_code == 2
    assert "has no run with a crash state" in done.stderr
