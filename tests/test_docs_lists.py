"""Run the commands of indented lists of a page; long ones get Ctrl-C.

tests/test_docs.py runs console blocks.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LISTED = re.compile(r"^    (tornpage \S.*?)(?:  .*)?$", re.MULTILINE)
ENOUGH_S = 12.0
"""After this time a command is at work and has read all its options; then it gets Ctrl-C."""
NOT_RUN = {"tornpage replay ti1-…": "it stands for a token that another run has printed"}


def lines_of(page: Path) -> list[str]:
    return LISTED.findall(FENCED.sub("", page.read_text()))


PAGES = [page for page in sorted(DOCS.glob("*.md")) if lines_of(page)]


def test_there_are_such_pages() -> None:
    assert {"exhaust", "holes", "interleaving", "scoreboard"} <= {page.stem for page in PAGES}
    assert NOT_RUN.keys() <= {line for page in PAGES for line in lines_of(page)}


@pytest.mark.deep
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_listed_command_runs(page: Path, tmp_path: Path) -> None:
    for line in lines_of(page):
        if line not in NOT_RUN:
            runs(line, tmp_path)


def runs(line: str, directory: Path) -> None:
    program, *arguments = shlex.split(line)
    assert program == "tornpage"
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "tornpage", *arguments],
        cwd=directory, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as command:  # fmt: skip
        is_long = False
        try:
            printed, said = command.communicate(timeout=ENOUGH_S)
        except subprocess.TimeoutExpired:
            is_long = True
            os.killpg(command.pid, signal.SIGINT)
            printed, said = command.communicate(timeout=120)
    told = f"{line}: {command.returncode}\n{printed}\n{said}"
    assert command.returncode in ((130, 0, 1, 3) if is_long else (0, 1, 3)), told
    assert "Traceback" not in said, told
