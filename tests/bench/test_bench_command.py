"""Test `tornpage bench`: its document, its table, its refusals."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import click
import pytest
from click.testing import CliRunner

from tornpage.bench import put
from tornpage.bench.figures import Figure
from tornpage.bench.sizes import TINY, Sizes
from tornpage.bench.suite import SUITE
from tornpage.cli.bench import ROOMS, bench_outcome
from tornpage.cli.main import cli
from tornpage.front import MessageStore
from tornpage.impl.errors import StoreError
from tornpage.properties.contract import HarnessError


def test_rooms_are_those_of_the_suite() -> None:
    assert tuple(SUITE) == ROOMS


@pytest.mark.slow
def test_the_document_has_every_figure_of_a_room_as_a_timing(tmp_path: Path) -> None:
    outcome, text = bench_outcome(["recover"], directory=str(tmp_path), seconds=0.01, sizes=TINY)
    document = json.loads(json.dumps(outcome.document()))
    names = ["crc_gb_per_s_1024", "judge_scan_gb_per_s_1024", "open_4gib_s", "recover_gb_per_s_1024"]
    assert sorted(document["figures"]) == names
    assert document["timings"] == names
    assert document["verdict"] is None
    assert outcome.exit_code == 0
    assert document["machine"]["file_system"]
    assert {result["file_system"] for result in document["results"]} == {document["machine"]["file_system"]}
    assert all(name in text for name in names)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["bench", "--directory", "/proc/nonexistent/place"],
        ["bench", "put", "--directory", "/etc/passwd"],
        ["bench", "put", "--directory", "/proc"],
    ],
    ids=["missing", "file", "not writable"],
)
def test_a_wrong_directory_is_one_line_and_exit_code_2(arguments: list[str]) -> None:
    run = CliRunner().invoke(cli, arguments)
    assert run.exit_code == 2
    assert run.output.count("\n") == 1
    assert run.output.startswith("tornpage: ")
    assert arguments[-1] in run.output


@pytest.mark.parametrize("arguments", [["bench", "sim"], ["sim", "validate"]])
def test_a_machine_without_room_for_temporary_files_is_one_line(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """On a full disk both ended with a traceback without a remedy."""

    def nowhere() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    run = CliRunner().invoke(cli, arguments)
    assert run.exit_code == 2
    assert run.output.startswith("tornpage: no temporary directory can be written; free some space there, or name a")
    assert run.output.count("\n") == 1


def test_a_store_that_dispatches_no_more_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed dispatch lags forever: a full disk made the bench hang."""

    def waits(seconds: float) -> None:
        raise AssertionError(f"waits {seconds} s more")

    monkeypatch.setattr(put, "sleep", waits)
    store = SimpleNamespace(dispatch_behind_bytes=100, dispatch_error="queue file: No space left on device")
    with pytest.raises(HarnessError, match="No space left"):
        put.wait_for_dispatch(cast(MessageStore, store))


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (HarnessError("odd"), 4, "the harness failed in read, at fails: odd"),
        (ConnectionRefusedError(), 4, "at fails: the Java process of Spark has ended"),
        (OSError(28, "No space left on device"), 2, "bench read ended at fails: cannot measure in"),
        (StoreError("no store there"), 2, "no store there; name another --directory"),
    ],
    ids=repr,
)
def test_a_room_that_fails_takes_no_figure_of_another_with_it(
    error: Exception, code: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the last of five rooms lost the figures of all of them."""

    def figure(directory: str, *, seconds: float, sizes: Sizes) -> Figure:
        return Figure("taken", 1.0, "GB/s", (1.0,), "ext4")

    def fails(directory: str, *, seconds: float, sizes: Sizes) -> Figure:
        raise error

    def never(directory: str, *, seconds: float, sizes: Sizes) -> Figure:
        raise AssertionError("the room ended before")

    suite = {"put": (figure,), "read": (fails, never), "recover": (replace_name(figure, "also"),)}
    monkeypatch.setattr("tornpage.bench.suite.SUITE", suite)
    outcome, text = bench_outcome(list(suite), directory=str(tmp_path), seconds=0.01)
    assert outcome.exit_code == code
    assert len(outcome.document()["results"]) == 2
    assert told in text
    assert text.count("at fails: ") == 1


def replace_name(measurement: Callable[..., Figure], name: str) -> Callable[..., Figure]:
    """Return a measurement with another name."""

    def other(directory: str, *, seconds: float, sizes: Sizes) -> Figure:
        return replace(measurement(directory, seconds=seconds, sizes=sizes), name=name)

    other.__name__ = name
    return other


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf"])
@pytest.mark.parametrize(
    "command",
    [
        ["bench", "sim", "--seconds"],
        ["bench", "sim", "--shard-seconds"],
        ["exhaust", "--seconds"],
        ["explore", "--seconds"],
        ["shrink", "tp1-x", "--seconds"],
        ["explain", "tp1-x", "--seconds"],
        ["bugs", "score", "--budget"],
        ["bugs", "score", "--shrink"],
        ["bugs", "holes", "--seconds"],
        ["sim", "calibrate", "--out", "/proc/nonexistent/file", "--seconds"],
        ["sim", "validate", "--seconds"],
    ],
)
def test_a_time_without_an_end_is_misuse(command: list[str], seconds: str) -> None:
    """A range of click accepts nan, and a measurement compared its time with it.

    It then ran forever or not at all.
    """
    run = CliRunner().invoke(cli, [*command, seconds])
    assert run.exit_code == 2
    assert "Invalid value" in run.output


@pytest.mark.parametrize("arguments", [["bench", "nothing"], ["bench", "--seconds", "0"]])
def test_misuse_is_exit_code_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(cli, arguments).exit_code == 2


def test_help_names_the_rooms() -> None:
    run = CliRunner().invoke(cli, ["bench", "--help"])
    assert run.exit_code == 0
    assert "[put|read|replication|recover|lab|target|sim|audit|campaign]" in click.unstyle(run.output)
