"""Test crashes inside the very first open: reported once and apart, or left out."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.properties.foreign.test_promises import Log
from tornpage.cli.main import cli
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.testing import assert_store_holds

pytestmark = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")


class Created(Log):
    """Never opens again after a crash inside its very first open."""

    def __init__(self, directory: str) -> None:
        header = Path(directory, "header")
        if header.exists() and header.read_bytes() != b"header\n":
            raise OSError("the header is damaged")
        if not header.exists():
            file = os.open(header, os.O_WRONLY | os.O_CREAT)
            os.write(file, b"hea")
            os.write(file, b"der\n")
            os.fsync(file)
            os.close(file)
        super().__init__(directory)


class CreatedForgets(Created):
    """Also forgets all lines past the fourth at an open."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self._lines = self._lines[:4]


def run(*arguments: str) -> tuple[Result, list[list[str]]]:
    found = CliRunner().invoke(cli, [*arguments, "--json"])
    return found, [finding.get("program", []) for finding in json.loads(found.stdout)["findings"]]


EXPLORE = ("explore", "target", "--states", "60", "--failures", "1", "--seed", "1")
CHECK = ("check", "--examples", "30", "--seed", "7", "--target")


@pytest.mark.slow
@pytest.mark.parametrize("command", [EXPLORE, CHECK], ids=["explore", "check"])
def test_failure_of_creation_is_found_once_and_the_search_goes_on(command: tuple[str, ...]) -> None:
    """Symptom: nothing but the creation was found in LMDB, bbolt, redb and DuckDB."""
    found, programs = run(*command, f"{__file__}:CreatedForgets")
    assert found.exit_code == 1, found.output
    assert [program[0].startswith("crash(") for program in programs].count(True) == 1
    assert any(program[0].startswith("put(") for program in programs)


@pytest.mark.slow
def test_crashes_of_creation_are_left_out() -> None:
    found, programs = run(*EXPLORE, f"{__file__}:Created")
    assert (found.exit_code, len(programs)) == (1, 1), found.output
    held, programs = run(*EXPLORE, f"{__file__}:Created", "--from", "first-answer")
    assert held.exit_code == 0, held.output


@pytest.mark.slow
def test_text_tells_the_creation_apart_and_last() -> None:
    told = CliRunner().invoke(cli, [*EXPLORE, f"{__file__}:CreatedForgets"]).stdout
    first, _, apart = told.partition("inside the very first open, while the store is created")
    assert first.startswith("contract 2 is broken")
    assert "contract 7 is broken" in apart
    assert "--from first-answer leaves such crashes out" in apart


@pytest.mark.slow
def test_assertion_takes_the_same_choice() -> None:
    with pytest.raises(AssertionError, match="contract 7 is broken"):
        assert_store_holds(Created, examples=30, seed=7)
    assert_store_holds(Created, examples=25, start="first-answer")


def test_from_needs_a_target() -> None:
    refused = CliRunner().invoke(cli, ["check", "--from", "first-answer"])
    assert (refused.exit_code, refused.stderr) == (2, "tornpage: --from goes with --target\n")
