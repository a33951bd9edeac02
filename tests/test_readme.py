"""Run and check the README: example, commands, planted bug, names and links."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tornpage.bench.suite import SUITE
from tornpage.cli.main import cli
from tornpage.properties.promises import PROMISES

README = Path(__file__).resolve().parent.parent / "README.md"
TEXT = README.read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = sorted(
    {line for _, block in BLOCKS for line in block.splitlines() if line.startswith("tornpage ")}
    | set(re.findall(r"`(tornpage [^`]+)`", TEXT))
)
GUARANTEES = re.findall(r"^\| ([\d, ]+) \| .* \|$", TEXT, re.MULTILINE)


def parse(command: click.Command, name: str, arguments: list[str], parent: click.Context | None = None) -> None:
    """Parse as the command line does, and run nothing. Raises UsageError."""
    context = command.make_context(name, arguments, parent=parent)
    if isinstance(command, click.Group):
        below, subcommand, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert below is not None
        assert subcommand is not None
        parse(subcommand, below, rest, context)


def test_the_readme_is_short() -> None:
    assert len(TEXT.splitlines()) < 150


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_line_parses(line: str) -> None:
    parse(cli, "tornpage", shlex.split(line)[1:])


def test_there_are_command_lines() -> None:
    assert {"tornpage explore --bug lying-flush --seed 4", "tornpage bugs list"} <= set(COMMANDS)


def test_the_example_runs(tmp_path: Path) -> None:
    (example,) = [block for language, block in BLOCKS if language == "python"]
    (tmp_path / "example.py").write_text(example)
    run = subprocess.run(
        [sys.executable, "-P", "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    status, body, flushed, pulled, queried = run.stdout.splitlines()
    assert status == "PUT_OK 0 7F00000100002A9F0000000000000000"
    assert body == "b'one coffee'"
    assert flushed.startswith("FlushResult(durable=True, flushed_offset=")
    assert (pulled, queried) == ("FOUND [b'one coffee']", "[b'one coffee']")


@pytest.mark.slow
def test_the_planted_bug_is_caught_as_shown() -> None:
    (shown,) = [block for _, block in BLOCKS if block.startswith("contract ")]
    run = CliRunner().invoke(cli, ["explore", "--bug", "lying-flush", "--seed", "4"])
    assert run.exit_code == 1
    printed = run.output.splitlines()
    for line in shown.splitlines():
        assert any(other.startswith(line.removesuffix("…")) for other in printed), f"{line!r} is not in\n{run.output}"
    token = re.search(r"tp1-\S+", run.output)
    assert token is not None
    assert CliRunner().invoke(cli, ["replay", token[0]]).exit_code == 1


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (README.parent / "Makefile").read_text(), re.MULTILINE))
    shown = set(re.findall(r"^make ([a-z]+)$|`make ([a-z]+)`", TEXT, re.MULTILINE))
    named = {name for pair in shown for name in pair if name}
    assert {"prove", "test", "bench"} <= named <= targets


def test_every_guarantee_is_named() -> None:
    numbers = [int(number) for row in GUARANTEES for number in row.split(",")]
    assert numbers == list(PROMISES)


def test_figures_exist() -> None:
    measured = {measurement.__name__ for room in SUITE.values() for measurement in room}
    (table,) = re.findall(r"^\| figure \|.*?\n\n", TEXT, re.MULTILINE | re.DOTALL)
    shown = {name for row in table.strip().splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert shown
    assert shown <= measured


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
