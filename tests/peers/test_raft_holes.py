"""Test the defects of DLedger 0.2.3.

These are the list, the same events on members of tornpage, and schedules that show them.
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli
from tornpage.outcomes import replication_holes
from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.rocketmq import installing
from tornpage.peers.rocketmq.installing import DLEDGER, REFERENCE, Release, installed
from tornpage.peers.rocketmq.raft_holes import RAFT_HOLES
from tornpage.peers.rocketmq.raft_lab import RaftLab
from tornpage.peers.rocketmq.raft_ours import figure_8, power_cut_of_a_follower
from tornpage.properties.contract import GuaranteeBroken

PAGE = Path(__file__).resolve().parents[2] / "docs" / "replication" / "dledger.md"


def test_every_defect_has_a_schedule_or_a_reason() -> None:
    assert list(RAFT_HOLES) == [f"L{number}" for number in range(1, 21)]
    for hole in RAFT_HOLES.values():
        assert (hole.schedule is None) == bool(hole.reason), hole.id
        assert hole.sentence
        assert hole.instead
    assert sum(hole.schedule is not None for hole in RAFT_HOLES.values()) == replication_holes.RAFT_DEFECTS


def test_the_page_has_every_defect() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.read_text().splitlines() if line.startswith("| L")]
    assert rows == list(RAFT_HOLES)


def test_an_acknowledged_entry_survives_here() -> None:
    assert power_cut_of_a_follower() == (
        "while the sync of the follower waits, 1 of 2 entries are committed; after the sync 2 are, and after the power "
        "cut and the kill the new leader has 2 of them"
    )
    with pytest.raises(GuaranteeBroken, match="have all committed entries durable"):
        power_cut_of_a_follower("LB01")


def test_an_entry_of_an_earlier_term_is_not_counted_here() -> None:
    assert "0 entries are committed" in figure_8()
    with pytest.raises(GuaranteeBroken, match="lacks committed entries"):
        figure_8("LB03")


def test_a_missing_release_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(version: str, component: object) -> Release:
        raise PeerUnavailable("rocketmq-dledger is not installed")

    monkeypatch.setattr(installing, "installed", missing)
    result = CliRunner().invoke(cli, ["bugs", "holes", "--raft", "--only", "L1", "--json"])
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert document["rows"][0]["result"] == "not run"


@pytest.mark.parametrize(
    ("row", "verdict", "code"),
    [
        ({"result": "shown", "why": "seen", "ours": "holds", "ours_holds": True}, "holds", 0),
        ({"result": "not seen", "why": "the schedule did not show it"}, "vacuous", 3),
        ({"result": "shown", "why": "seen", "ours": "lost", "ours_holds": False}, "broken", 1),
    ],
)
def test_a_verdict_follows_from_the_rows(
    row: dict[str, object], verdict: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "installed", lambda version, component: object())
    monkeypatch.setattr(replication_holes, "_shown", lambda hole, release, lab: row | {"seconds": 0.0, "schedule": []})
    result = CliRunner().invoke(cli, ["bugs", "holes", "--raft", "--only", "L1", "--json"])
    assert (result.exit_code, json.loads(result.stdout)["verdict"]) == (code, verdict)


@pytest.mark.parametrize("given", [["--only", "L99"], ["--hunt"], ["--replication"]])
def test_misuse_is_refused(given: list[str]) -> None:
    assert CliRunner().invoke(cli, ["bugs", "holes", "--raft", *given]).exit_code == 2


@pytest.mark.deep
@pytest.mark.parametrize("hole", ["L1", "L3", "L7"])
def test_a_schedule_shows_its_defect(hole: str) -> None:
    try:
        release = installed(REFERENCE, DLEDGER)
    except PeerUnavailable as missing:
        pytest.skip(str(missing))
    schedule = RAFT_HOLES[hole].schedule
    assert schedule is not None
    with RaftLab(release) as lab:
        assert schedule(lab), lab.events
    assert lab.events
