"""Test that `tornpage bugs holes` lists without a search, and refuses senseless options."""

import json

from click.testing import CliRunner, Result

from tornpage.cli.main import cli
from tornpage.properties.score.holes import HOLES


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bugs", "holes", *arguments])


def test_the_list_is_a_document_too() -> None:
    result = run("--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert document["command"] == "bugs holes"
    assert [row["id"] for row in document["rows"]] == list(HOLES)


def test_some_can_be_asked_for() -> None:
    result = run("--only", "c14,H1")
    assert result.exit_code == 0
    assert "C14  " in result.stdout
    assert "2 holes in 2 paragraphs" in result.stdout


def test_misuse_is_refused() -> None:
    assert run("--only", "H13").exit_code == 2
    assert run("--out", "somewhere").exit_code == 2
    assert run("--hunt", "--seconds", "0").exit_code == 2
