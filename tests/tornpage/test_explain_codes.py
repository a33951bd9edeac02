"""Test `tornpage explain CODE`: the meaning of a finding, from its page."""

import json

import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli
from tornpage.pipeline.audit.findings import CODES
from tornpage.render.finding_codes import finding_codes


@pytest.mark.parametrize("code", sorted({*CODES, "CL_BAD_RECORD", "FLOOR_UNREADABLE", "CP_MISSING"}))
def test_a_code_that_may_be_found_is_explained(code: str) -> None:
    ran = CliRunner().invoke(cli, ["explain", code])
    first, meaning, remedy, *_ = ran.output.splitlines()
    assert (ran.exit_code, first.partition(" ")[0]) == (0, code)
    assert len(meaning.strip()) > 10
    assert remedy.startswith("  remedy: ")


def test_the_document_has_the_fields() -> None:
    said = json.loads(CliRunner().invoke(cli, ["explain", "CL_GAP", "--json"]).output)
    assert {name: said[name] for name in ("code", "severity")} == {"code": "CL_GAP", "severity": "damage"}
    assert said["meaning"] == finding_codes()["CL_GAP"].meaning


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["CL_BAD_RECRD"], "there is no finding CL_BAD_RECRD; did you mean CL_BAD_RECORD"),
        (["NO_SUCH_THING_AT_ALL"], "there is no finding NO_SUCH_THING_AT_ALL"),
        (["CL_GAP", "--seconds", "3"], "--out and --seconds apply to a failing case"),
    ],
)
def test_what_is_no_code_is_refused(arguments: list[str], why: str) -> None:
    ran = CliRunner().invoke(cli, ["explain", *arguments])
    assert ran.exit_code == 2
    assert ran.output.startswith(f"tornpage: {why}")
