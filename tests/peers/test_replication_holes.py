"""Test the defects of replication in 4.9.3: the list, and schedules that show them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli
from tornpage.outcomes import replication_holes
from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.rocketmq import installing
from tornpage.peers.rocketmq.ha_holes import REPLICATION_HOLES
from tornpage.peers.rocketmq.ha_lab import HaLab
from tornpage.peers.rocketmq.installing import Release

PAGE = Path(__file__).resolve().parents[2] / "docs" / "replication" / "holes.md"


def test_every_defect_has_a_schedule_or_a_reason() -> None:
    assert list(REPLICATION_HOLES) == [f"R{number}" for number in range(1, 33)]
    for hole in REPLICATION_HOLES.values():
        assert (hole.schedule is None) == bool(hole.reason), hole.id
        assert hole.sentence
        assert hole.instead
    assert sum(hole.schedule is not None for hole in REPLICATION_HOLES.values()) == 27


def test_the_page_has_every_defect() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.read_text().splitlines() if line.startswith("| R")]
    assert rows == list(REPLICATION_HOLES)


def test_an_unknown_defect_is_refused() -> None:
    result = CliRunner().invoke(cli, ["bugs", "holes", "--replication", "--only", "R99"])
    assert result.exit_code == 2


def test_a_missing_release_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(version: str) -> Release:
        raise PeerUnavailable(f"RocketMQ {version} is not installed")

    monkeypatch.setattr(installing, "installed", missing)
    result = CliRunner().invoke(cli, ["bugs", "holes", "--replication", "--only", "R8", "--json"])
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert document["verdict"] == "unknown"
    assert document["rows"][0]["result"] == "not run"


def test_a_schedule_that_shows_nothing_is_vacuous(monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(hole: object, release: object, lab: object) -> dict[str, object]:
        return {"result": "not seen", "why": "the schedule did not show it", "seconds": 0.0, "schedule": []}

    monkeypatch.setattr(installing, "installed", lambda version: None)
    monkeypatch.setattr(replication_holes, "_shown", ran)
    monkeypatch.setattr(replication_holes, "_AT_ONCE", 1)
    result = CliRunner().invoke(cli, ["bugs", "holes", "--replication", "--only", "R8,R12", "--json"])
    document = json.loads(result.stdout)
    assert document["verdict"] in ("vacuous", "unknown")
    assert result.exit_code == 3


@pytest.mark.deep
@pytest.mark.parametrize("hole", ["R3", "R8", "R9", "R18", "R28"])
def test_a_schedule_shows_its_defect(hole: str, release: Release) -> None:
    schedule = REPLICATION_HOLES[hole].schedule
    assert schedule is not None
    with HaLab(release) as lab:
        assert schedule(lab), lab.events
    assert lab.events
