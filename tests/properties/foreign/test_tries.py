"""Test that `replay` repeats a case of a foreign store and prints the failed tries."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.properties.foreign.test_promises import Log
from tornpage.cli.main import cli
from tornpage.model.operations import Close, Open, Put
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.program.case import Case, Settings

pytestmark = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
COUNTER = "TORNPAGE_TEST_COUNTER"


class FailsSometimes(Log):
    """Loses its lines in every third process.

    A file outside its directory counts the processes.
    """

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        counter = Path(os.environ[COUNTER])
        number = int(counter.read_text()) + 1
        counter.write_text(str(number))
        if number % 3 == 0:
            self._lines = []


def test_replay_tells_how_often_a_failure_showed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "count").write_text("0")
    monkeypatch.setenv(COUNTER, str(tmp_path / "count"))
    case = Case(Settings(target=f"{__file__}:FailsSometimes"), (Put(body_bytes=8), Close(), Open()))
    found = CliRunner().invoke(cli, ["replay", case.token(), "--json"])
    assert found.exit_code == 1, found.output
    figures = json.loads(found.stdout)["figures"]
    assert (figures["tries"], figures["shown"]) == (5, 1), "two processes for each try: the sixth fails"
    (tmp_path / "count").write_text("0")
    told = CliRunner().invoke(cli, ["replay", case.token(), "--tries", "6"])
    assert "the failure showed in 2 of 6 tries" in told.stdout


def test_failure_that_never_shows_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "count").write_text("0")
    monkeypatch.setenv(COUNTER, str(tmp_path / "count"))
    case = Case(Settings(target=f"{__file__}:FailsSometimes"), (Put(body_bytes=8),))
    held = CliRunner().invoke(cli, ["replay", case.token(), "--tries", "4"])
    assert (held.exit_code, held.stdout.splitlines()[0]) == (0, "every guarantee holds in 4 tries")
