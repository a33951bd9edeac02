"""Test the exchange of directories with DLedger, and the command that runs it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli
from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.rocketmq import installing, raft_exchange
from tornpage.peers.rocketmq.installing import DLEDGER, REFERENCE, Release, installed
from tornpage.peers.rocketmq.raft_exchange import RUNS, Exchanged, exchange


@pytest.fixture(scope="session")
def dledger() -> Release:
    """Return the installed DLedger; skip the test if there is none, or no Java."""
    try:
        return installed(REFERENCE, DLEDGER)
    except PeerUnavailable as missing:
        pytest.skip(str(missing))


@contextmanager
def replaced_exchange(monkeypatch: pytest.MonkeyPatch, *, differing: bool, skipped: int) -> Iterator[None]:
    """Let the command exchange nothing, and report this."""

    def exchanged(release: object, *, found: Exchanged, **others: object) -> None:
        found.skipped = skipped
        found.same("a run", "files", "a file", b"a" * 500, b"b" if differing else b"a" * 500)

    monkeypatch.setattr(installing, "installed", lambda version, component: None)
    monkeypatch.setattr(raft_exchange, "exchange", exchanged)
    yield


def ran(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(cli, ["peer", "raft", "--json", *arguments])
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.parametrize(
    ("differing", "skipped", "code", "verdict"),
    [(False, 5, 0, "holds"), (True, 5, 1, "broken"), (False, 0, 3, "vacuous")],
)
def test_a_difference_is_broken(
    differing: bool, skipped: int, code: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with replaced_exchange(monkeypatch, differing=differing, skipped=skipped):
        exit_code, document = ran()
    assert (exit_code, document["verdict"]) == (code, verdict)
    assert document["figures"]["comparisons"] == 1
    if differing:
        (finding,) = document["findings"]
        assert finding["sentence"] == "a run: a file differs"
        assert len(finding["expected"]) < 200


def test_a_missing_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(version: str, component: object) -> Release:
        raise PeerUnavailable("rocketmq-dledger 4.9.3 is not installed")

    monkeypatch.setattr(installing, "installed", missing)
    done = CliRunner().invoke(cli, ["peer", "raft"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "rocketmq-dledger 4.9.3 is not installed" in done.stderr


@pytest.mark.slow
def test_dledger_and_tornpage_write_one_directory(dledger: Release) -> None:
    found = Exchanged()
    exchange(dledger, entries=40, seed=11, found=found, names=("tornpage first",))
    assert not found.differences
    assert found.turns == 6
    assert found.compared["entries in DLedger"] > 20
    assert found.compared["entries in tornpage"] > 20
    assert found.compared["files"] > 20


@pytest.mark.deep
def test_every_run_has_equal_bytes(dledger: Release) -> None:
    found = Exchanged()
    exchange(dledger, entries=600, seed=5, found=found)
    assert not found.differences
    assert found.runs == len(RUNS)
    assert found.skipped > 0
    assert min(found.compared.values()) > 10
