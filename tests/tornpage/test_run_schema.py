"""Compare the documents of commands with docs/schema/run.json, key by key."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.json_schema import definition, objections
from tests.tornpage.test_faults import BROKEN, HOLDS, OURS, SILENT, SKIPPED, report_of
from tornpage.cli.document import Outcome
from tornpage.cli.main import cli
from tornpage.properties.campaign.replay import replay, shrink
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explain.evidence import Witness
from tornpage.properties.explore.recovery.crashes import crash_recoveries
from tornpage.properties.explore.recovery.layouts import SAMPLE_LAYOUTS
from tornpage.properties.planted import REPRODUCERS, parts_of
from tornpage.render.counterexample import how_small
from tornpage.render.explorations import faults_outcome, recovery_outcome
from tornpage.run.directory import write_run

RUNS = {
    "explore": ("explore --bug lying-flush --states 200 --seed 3 --failures 1", 1),
    "exhaust": ("exhaust --bug lying-flush", 1),
    "check": ("check --bug larger-than-a-file --machine commit-log --seed 1", 1),
    "interleavings": ("explore interleavings --states 20 --seed 2", 3),
    "campaign": ("campaign --engine serial --shards 1 --states-per-shard 150 --bug lying-flush", 1),
}


def wrong_in(directory: Path) -> list[str]:
    """Return the schema errors of a run directory: of its document and its tables."""
    found = [*objections(json.loads((directory / "run.json").read_text()))]
    for path in sorted((directory / "tables").glob("*.json")):
        if path.stem in definition("")["$defs"]:
            found += objections(json.loads(path.read_text()), definition(path.stem), path.stem)
    return found


@pytest.mark.parametrize("name", RUNS)
def test_a_run_directory_is_as_the_schema_says(name: str, tmp_path: Path) -> None:
    command, exit_code = RUNS[name]
    result = CliRunner().invoke(cli, [*command.split(), "--out", str(tmp_path / "out")])
    assert result.exit_code == exit_code, result.output
    assert json.loads((tmp_path / "out" / "run.json").read_text())["findings"]
    assert not wrong_in(tmp_path / "out")


def test_real_faults_and_crashed_recoveries_are_as_the_schema_says(tmp_path: Path) -> None:
    stale_tail = [shape for shape in SAMPLE_LAYOUTS if shape.name == "stale tail"]
    recovery = crash_recoveries(stale_tail, components=parts_of("no-erase-after-cut"), samples=1)
    for outcome, _ in (
        faults_outcome(report_of(HOLDS, SKIPPED, BROKEN, SILENT, OURS), command="tornpage faults"),
        recovery_outcome(recovery, seed=0, command="again"),
    ):
        assert outcome.findings
        write_run(tmp_path, outcome)
        assert not wrong_in(tmp_path)


@pytest.mark.parametrize("bug", ["size-not-synced", "early-acknowledgement", "lying-flush", "erase-not-synced"])
def test_an_account_is_as_the_schema_says(bug: str) -> None:
    with choose_tracker("auto") as tracker:
        failure = replay(REPRODUCERS[bug], tracker=tracker, witness=Witness())
        assert failure is not None
        small = shrink(failure, tracker=tracker, tries_max=3, keep_evidence=True)
    account: dict[str, Any] | None = small.account()
    assert account is not None
    document = {**account, "version": "0", "shrinking": how_small(small, 3)}
    assert not [*objections(document, definition("account"), "account")]


def test_a_key_that_the_schema_does_not_know_is_an_objection(tmp_path: Path) -> None:
    finding = {"code": "harness", "severity": "harness", "sentence": "s", "whatever": 1}
    write_run(tmp_path, Outcome("explore", "harness", {}, findings=[finding]))
    assert wrong_in(tmp_path) == ["run.findings[0] has the unknown key whatever"]
