"""Test completion in real shells, each set up as `completion --help` says.

bash and zsh run at a terminal; fish answers its own query.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
STORE = REPOSITORY / "tests" / "data" / "golden" / "01-plain-ascii" / "store"
ASKED = [
    ("tornpage repl", "tornpage replay "),
    ("tornpage sim val", "tornpage sim validate "),
    ("tornpage explore --strat", "tornpage explore --strategy "),
    ("tornpage explore --strategy c", "tornpage explore --strategy covering "),
    ("tornpage explore --bug lying", "tornpage explore --bug lying-flush "),
    ("tornpage explain CL_GA", "tornpage explain CL_GAP "),
    ("tornpage inspect store queue Topic", "tornpage inspect store queue TopicTest/0 "),
    ("tornpage replay case-4", "tornpage replay case-42.json "),
]
"""Lines, and the result of one TAB on each."""
SEVERAL = (
    "tornpage check --machine ",
    {"all", "commit-log", "put", "flush", "queue", "retention", "delay", "consumer", "failing-disk"},
)
ANSWER_S = 30.0


def need(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"there is no {shell} here")
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a `tornpage` on its path, a store, and a case for completion."""
    program = tmp_path / "bin" / "tornpage"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} -P -m tornpage "$@"\n')
    program.chmod(0o755)
    (tmp_path / "store").symlink_to(STORE)
    (tmp_path / "case-42.json").touch()
    (tmp_path / "other.json").touch()
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    path = f"{home / 'bin'}:/usr/bin:/bin"
    return {"PATH": path, "HOME": str(home), "TERM": "dumb", "LC_ALL": "C.UTF-8", "COLUMNS": "200", "LINES": "500"}


class Terminal:
    """A shell at a terminal: its input and its screen."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def shows(self, *wanted: str) -> str:
        """Return the screen once it shows all of `wanted`."""
        shown, end = "", time.monotonic() + ANSWER_S
        while not all(each in shown for each in wanted):
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{wanted} are not shown, but {shown!r}"
            piece = os.read(self._descriptor, 1 << 16).decode(errors="replace")
            shown += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x07", "", piece)
        return shown


@contextmanager
def at_a_terminal(home: Path, *command: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(home), cwd=home, start_new_session=True
    ) as shell:
        os.close(theirs)
        try:
            yield Terminal(ours)
        finally:
            shell.kill()
            os.close(ours)


@pytest.fixture
def bash(home: Path) -> Iterator[Terminal]:
    with at_a_terminal(home, need("bash"), "--norc", "--noprofile", "-i") as terminal:
        terminal.type("bind 'set enable-bracketed-paste off'; bind 'set completion-query-items 0'; PS1='> '\n")
        terminal.type('eval "$(tornpage completion bash)"; echo is $((20 + 3)) ready\n')
        terminal.shows("is 23 ready")
        yield terminal


@pytest.fixture
def zsh(home: Path) -> Iterator[Terminal]:
    need("zsh")
    functions = home / ".zfunc"
    functions.mkdir()
    script = [str(home / "bin" / "tornpage"), "completion", "zsh"]
    (functions / "_tornpage").write_bytes(subprocess.run(script, capture_output=True, check=True).stdout)
    with at_a_terminal(home, need("zsh"), "-f", "-i") as terminal:
        terminal.type("unsetopt zle_bracketed_paste; PS1='> '; LISTMAX=0\n")
        terminal.type("fpath=(~/.zfunc $fpath); autoload -U compinit; compinit -u -D; echo is $((20 + 3)) ready\n")
        terminal.shows("is 23 ready")
        yield terminal


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_one_tab_completes_what_is_plain(shell: str, request: pytest.FixtureRequest) -> None:
    terminal: Terminal = request.getfixturevalue(shell)
    for typed, completed in ASKED:
        terminal.type(f"{typed}\t")
        terminal.shows(completed)
        terminal.type("\x15")  # leaves the line


def test_the_second_tab_in_a_zsh_completes_as_the_first_did(zsh: Terminal) -> None:
    """A file of `fpath` used to register itself then, and offered nothing."""
    for _ in range(3):
        zsh.type("tornpage repl\t")
        zsh.shows("tornpage replay ")
        zsh.type("\x15")


@pytest.mark.parametrize(("shell", "tabs"), [("bash", "\t\t"), ("zsh", "\t")])
def test_several_are_listed(shell: str, tabs: str, request: pytest.FixtureRequest) -> None:
    terminal: Terminal = request.getfixturevalue(shell)
    typed, listed = SEVERAL
    terminal.type(f"{typed}{tabs}")
    terminal.shows(*listed)


@pytest.mark.parametrize(
    ("typed", "completed"), [*ASKED, ("tornpage bugs list --group ", "tornpage bugs list --group durability ")]
)
def test_fish_offers_what_is_plain(typed: str, completed: str, home: Path) -> None:
    assert of_fish(home, typed) == {completed.split()[-1]}


def test_fish_offers_several(home: Path) -> None:
    typed, listed = SEVERAL
    assert of_fish(home, typed) == listed


def of_fish(home: Path, typed: str) -> set[str]:
    """Return the offers of fish, from the file that it finds by itself."""
    fish = need("fish")
    completions = home / ".config" / "fish" / "completions"
    completions.mkdir(parents=True, exist_ok=True)
    script = [str(home / "bin" / "tornpage"), "completion", "fish"]
    (completions / "tornpage.fish").write_bytes(subprocess.run(script, capture_output=True, check=True).stdout)
    asked = subprocess.run(
        [fish, "-c", f"complete -C '{typed}'"],
        capture_output=True,
        text=True,
        check=True,
        env=environment(home),
        cwd=home,
    )
    assert asked.stderr == ""
    return {line.partition("\t")[0] for line in asked.stdout.splitlines()}
