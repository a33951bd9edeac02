"""Test the pages of docs/: each command runs, or parses where it stands in prose.

The site builds.
"""

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import click
import pytest

from tests.test_docs_lists import FENCED, lines_of
from tornpage.cli.main import cli

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
STORE = REPOSITORY / "tests" / "data" / "golden" / "01-plain-ascii" / "store"
BLOCK = re.compile(r"(?:^Save this as `([^`]+)`:\n\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FOLDERS = (".", "adr", "consumers", "targets")
PAGES = sorted(page for folder in FOLDERS for page in (DOCS / folder).glob("*.md"))
SHOWN = [page for page in PAGES if page.parent.name != "adr" and "```console" in page.read_text()]
IN_PROSE = re.compile(r"`(tornpage [^`…]+)`")


@dataclass(frozen=True)
class Shown:
    """A command of a page, and the lines below it."""

    command: str
    printed: tuple[str, ...]


def commands_in(block: str) -> Iterator[Shown]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *printed = part.splitlines()
        yield Shown(command, tuple(printed))


def is_printed(line: str, output: list[str]) -> bool:
    """A line matches if it has these parts in order; `…` stands for any text."""
    pattern = ".*".join(map(re.escape, line.rstrip().split("…")))
    return any(re.fullmatch(pattern, other.rstrip()) for other in output)


def runs_as_shown(page: Path, directory: Path) -> None:
    """Run a page from top to bottom in one directory.

    `.venv` of a reader is the Python of the tests.
    """
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    environment = {"PATH": path, "HOME": str(directory), "PYTHONPATH": str(REPOSITORY)}  # this tree, installed or not
    for saved_as, language, block in BLOCK.findall(page.read_text()):
        if saved_as:
            (directory / saved_as).write_text(block)
        if language != "console":
            continue
        for shown in commands_in(block):
            if shown.command == ". .venv/bin/activate":
                continue
            run = subprocess.run(
                ["bash", "-c", shown.command],
                cwd=directory,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            told = f"{page.name}: {shown.command}\n{run.stdout}\n{run.stderr}"
            assert run.returncode in (0, 1, 3), told
            assert "Traceback" not in run.stderr, told
            for line in shown.printed:
                assert is_printed(line, run.stdout.splitlines()), f"{line!r} is not in what came from {told}"


@pytest.mark.slow
def test_the_tutorial_runs_word_for_word(tmp_path: Path) -> None:
    runs_as_shown(DOCS / "tutorial.md", tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("page", [page for page in SHOWN if page.stem != "tutorial"], ids=lambda page: page.stem)
def test_a_guide_runs_word_for_word(page: Path, tmp_path: Path) -> None:
    shutil.copytree(STORE, tmp_path / "broker-store")
    runs_as_shown(page, tmp_path)


RUN_ELSEWHERE = {"cluster.md": "pipeline/test_cluster_page.py", "test-your-store.md": "test_your_store_page.py"}
"""Pages with commands in other blocks, and the tests of these pages.

They need a cluster or an edit.
"""
SHAPE_PAGES = ("callers.md", "file.md", "key-value.md", "log.md", "queue.md", "shapes.md")
"""Pages of docs/targets whose commands tests/properties/foreign/test_shape_pages.py runs."""


def test_every_command_that_is_shown_is_run() -> None:
    """Each command is in a console block, an indented list, or a test of that page alone.

    tests/test_docs_lists.py runs the indented lists.
    """
    is_command = re.compile(rf"\s*tornpage ({'|'.join(cli.list_commands(click.Context(cli)))})\b")
    for page in PAGES:
        if page.parent.name == "targets" and page.name in SHAPE_PAGES:
            continue
        text = page.read_text()
        shown = [
            line
            for _, language, block in BLOCK.findall(text)
            if language not in ("console", "text")
            for line in block.splitlines()
            if is_command.match(line)
        ]
        if shown or page.name in RUN_ELSEWHERE:
            assert page.name in (REPOSITORY / "tests" / RUN_ELSEWHERE[page.name]).read_text(), shown
        listed = lines_of(page) if page.parent == DOCS else []
        rest = [line for line in FENCED.sub("", text).splitlines() if is_command.match(line)]
        assert [line.strip() for line in rest if not any(line.strip().startswith(one) for one in listed)] == [], page


def test_a_line_that_is_not_printed_is_missed() -> None:
    assert is_printed("verdict: …", ["a", "verdict: holds"])
    assert is_printed("a … c", ["a b c  "])
    assert not is_printed("verdict: holds", ["verdict: broken"])
    assert not is_printed("a … c", ["a b d"])


def lines_in_prose() -> list[tuple[str, str]]:
    return sorted(
        {(page.name, " ".join(line.split())) for page in PAGES for line in IN_PROSE.findall(page.read_text())}
    )


@pytest.mark.parametrize(("page", "line"), lines_in_prose())
def test_a_command_in_prose_is_there_with_its_options(page: str, line: str) -> None:
    """Prose names commands without all their arguments, or with letters for them."""
    command: click.Command = cli
    for word in takewhile(lambda word: not word.startswith("-"), line.split()[1:]):
        if isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            assert found is not None, word
            command = found
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert set(re.findall(r"(?<!\S)--[a-z-]+", line)) <= {*options, "--help"}


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("sphinx") is None, reason="Sphinx is not installed")
def test_the_site_builds_without_warnings_and_needs_no_network(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(tmp_path / "trees")]
    run = subprocess.run(
        [*command, str(DOCS), str(tmp_path / "site")], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    for page in (tmp_path / "site").rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img)\b[^>]*\b(?:src|href)=\"(https?:[^\"]+)\"", page.read_text())
        assert loaded == [], page.name
