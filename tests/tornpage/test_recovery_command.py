"""Test `tornpage explore recovery` for users: a row per sample, findings, one-line errors."""

import json

import pytest
from click.testing import CliRunner

from tornpage.cli.explore import command
from tornpage.properties.explore.recovery.crashes import crash_recoveries
from tornpage.properties.explore.recovery.layouts import SAMPLE_LAYOUTS
from tornpage.properties.planted import parts_of
from tornpage.render.explorations import recovery_outcome

FEW = [shape for shape in SAMPLE_LAYOUTS if shape.name in ("one file", "stale tail", "damaged")]


def test_the_outcome_has_a_row_per_shape() -> None:
    report = crash_recoveries(FEW, samples=2, losses=1)
    outcome, _ = recovery_outcome(report, seed=3, command="again")
    assert (outcome.verdict, outcome.exit_code, outcome.findings) == ("holds", 0, [])
    rows = outcome.document()["shapes"]
    assert [(row["shape"], row["opens"], row["verdict"]) for row in rows] == [
        (shape.name, shape.mode, "holds") for shape in FEW
    ]
    assert outcome.figures["kills"] == sum(row["kills"] for row in rows) == 6
    assert outcome.tables["recovery"]["rows"] == rows
    assert json.dumps(outcome.document())
    lines = recovery_outcome(report, seed=0, command="")[1].splitlines()
    assert len(lines) == 3 + len(FEW)
    assert lines[-1] == "verdict: holds"


def test_a_bug_is_told_with_shape_file_and_offset() -> None:
    report = crash_recoveries(FEW[1:2], components=parts_of("no-erase-after-cut"), samples=1)
    outcome, _ = recovery_outcome(report, seed=0, command="again")
    assert (outcome.verdict, outcome.exit_code) == ("broken", 1)
    finding = next(each for each in outcome.findings if each["code"] == "contract-3")
    assert (finding["shape"], finding["file"]) == ("stale tail", f"commitlog/{0:020d}")
    assert isinstance(finding["offset"], int)
    assert "stale tail: contract-3 is broken" in recovery_outcome(report, seed=0, command="")[1]


@pytest.mark.parametrize("also", [("--states", "3"), ("--workers", "3"), ("--file-bytes", "4096")])
def test_what_goes_with_other_campaigns_is_refused(also: tuple[str, str]) -> None:
    done = CliRunner().invoke(command, ["recovery", *also])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "not with `explore recovery`" in done.stderr


@pytest.mark.deep
def test_the_command_crashes_every_shape_everywhere() -> None:
    done = CliRunner().invoke(command, ["recovery", "--json"])
    said = json.loads(done.stdout)
    assert (said["verdict"], done.exit_code) == ("holds", 0)
    assert said["figures"]["shapes"] == len(SAMPLE_LAYOUTS)
    assert said["figures"]["kills"] == said["figures"]["recovery_operations"] > 400
