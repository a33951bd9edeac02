"""`explore damage`: holds on a sound store, finds a planted bug, keeps what is done."""

import json
import logging
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.impl.damaged_logs import filled
from tornpage.cli.main import cli
from tornpage.properties.contract import Verdict
from tornpage.properties.explore.damage.campaign import CANARY, DamagePlan, run_damages
from tornpage.properties.explore.damage.trial import trials_of


@pytest.fixture
def store(tmp_path: Path) -> str:
    directory = tmp_path / "store"
    filled(directory, 30, queues=2)
    return str(directory)


@pytest.mark.slow
def test_it_holds_and_goes_on_where_it_was(store: str, tmp_path: Path) -> None:
    kept = tmp_path / "damages.jsonl"
    plan = DamagePlan((store,), seed=1, damages=60)
    first = run_damages(plan, keep=kept)
    assert (first.verdict, first.tally["damages"], first.canary) == (Verdict.HOLDS, 60, CANARY)
    lines = kept.read_text().splitlines()
    again = run_damages(plan, keep=kept)
    assert (again.result_hash, len(lines)) == (first.result_hash, 60)
    assert kept.read_text().splitlines() == lines


def test_log_level_is_restored(store: str) -> None:
    """Symptom: after a damage campaign the process logged no error of any store."""
    log = logging.getLogger("tornpage.store")
    level = log.level
    with trials_of(store, seed=1):
        assert log.level == logging.CRITICAL
    assert log.level == level


def test_it_finds_the_planted_bug(store: str) -> None:
    result = run_damages(DamagePlan((store,), seed=1, damages=150, bug=CANARY))
    assert result.verdict is Verdict.BROKEN
    assert {found.failure.contract for found in result.found} & {8, 17, 18}


@pytest.mark.slow
def test_it_reaches_files_made_ahead(store: str) -> None:
    result = run_damages(DamagePlan((store,), seed=1, damages=600, bug="files-ahead-are-damage"))
    assert result.verdict is Verdict.BROKEN
    assert {found.failure.change for found in result.found if found.failure.contract == 7} >= {"ahead"}
    assert all(found.failure.change == "ahead" for found in result.found)


@pytest.mark.slow
def test_the_command_writes_a_document(store: str, tmp_path: Path) -> None:
    arguments = ["explore", "damage", "--damages", "55", "--seed", "1", "--json", "--out", str(tmp_path / "out"), store]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert (document["verdict"], document["figures"]["damages"]) == ("holds", 55)
    assert (tmp_path / "out" / "damages.jsonl").exists()


def test_a_store_that_does_not_open_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["explore", "damage", "--damages", "5", str(tmp_path)])
    assert done.exit_code == 2, done.output


def test_what_is_damaged_is_listed() -> None:
    done = CliRunner().invoke(cli, ["faults", "--list"])
    assert done.exit_code == 0
    assert "queue_offset" in done.stdout
    assert "swapped" in done.stdout
