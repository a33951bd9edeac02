"""Test `--help` of every command, also with a reader that stops early."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tornpage.cli.main import cli

HOME = Path(__file__).parents[2]
STORE = str(HOME / "tests" / "data" / "golden" / "01-plain-ascii" / "store")


def commands(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from commands(below, (*path, name))


@pytest.mark.parametrize("path", tuple(commands()), ids=" ".join)
def test_every_command_explains_itself_by_examples(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, [*path, "--help"], prog_name="tornpage")
    assert done.exit_code == 0
    lines = [line.strip() for line in done.stdout.splitlines()]
    examples = [line for line in lines if line.startswith(" ".join(["tornpage", *path]))]
    assert examples
    known: set[str] = {option for line in lines if line.startswith("-") for option in line.replace(",", " ").split()}
    for example in examples:
        used = {word.partition("=")[0] for word in shlex.split(example.split("   ")[0]) if word.startswith("--")}
        assert used <= {option for words in known for option in words.split("/")}, example


@pytest.mark.parametrize(
    "line",
    [
        ["--help"],
        ["--version"],
        ["explore", "--help"],
        ["inspect", STORE, "--all"],
        ["inspect", STORE, "--json"],
        ["audit", STORE, "--engine", "plain"],
        ["bugs", "list"],
        ["explain", "CL_GAP"],
        ["completion", "zsh"],
        ["sim", "run", "--messages", "1000"],
    ],
    ids=lambda line: " ".join(line[:2]),
)
def test_a_reader_that_has_enough_is_no_error(line: list[str]) -> None:
    """As with `| head` in the worst case: no byte is read."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "tornpage", *line],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HOME)},
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
