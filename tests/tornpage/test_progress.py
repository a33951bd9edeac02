"""Test the bar of long commands: count, rate, time left; no bar and colour if unwanted."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tornpage.cli.progress import (
    bytes_progress,
    counted_progress,
    shrinking_progress,
    simulation_progress,
    states_progress,
    step_lines,
    steps_progress,
    tasks_progress,
    time_progress,
    told,
)

HOME = Path(__file__).parents[2]
BARS = """
import sys
from itertools import count
from tornpage.cli import progress
gone_s, looks = 0.0, count()
progress.monotonic = lambda: gone_s + next(looks) / 10_000
with progress.counted_progress("killing [b]", total=300, unit="writers") as show:
    for done in range(300):
        show(done, f"[red]{done}")
with progress.states_progress("exploring", total=3.0, unit="seconds") as show:
    show(0, 0.0)
with progress.time_progress("calibrating", seconds=200.0) as show:
    show("a slice", 20.0)
with progress.bytes_progress("inspecting") as show:
    show(3 << 20, 5 << 20)
    gone_s += 0.11
    show(4 << 20, 5 << 20)
with progress.simulation_progress(8e6) as show:
    gone_s += 0.11
    show(8_000_000, "")
    show(8_000_000, "rolls")
with progress.tasks_progress("auditing", "starting Spark") as show:
    show("reading", 0, 9, True)
    show("comparing", 2, 5, False)
tell = progress.step_lines("proving", [2.0, 40.0, 8.0])
tell("kills")
tell("check")
"""


@pytest.mark.parametrize(
    ("done", "total", "seconds", "line"),
    [
        (0, 300, 0.0, "0 of 300 writers"),
        (100, 300, 50.0, "100 of 300 writers, 2.0/s, 2 min left"),
        (1234, 5000, 1.0, "1,234 of 5,000 writers, 1,234/s, 3 s left"),
        (2, 10, 120.0, "2 of 10 writers, 1.0/min, 8 min left"),
        (1, 1000, 600.0, "1 of 1,000 writers, 0.1/min, 166.5 h left"),
        (7, None, 1.0, "7 writers, 7.0/s"),
        (12, 10, 1.0, "12 of 10 writers, 12/s, 0 s left"),
    ],
)
def test_a_line_tells_count_rate_and_time_left(done: float, total: float | None, seconds: float, line: str) -> None:
    assert told(done, total, "writers", seconds) == line


def test_the_time_left_is_that_of_the_clock_where_the_clock_ends_it() -> None:
    assert told(500, None, "states", 5.0, left_s=25.0) == "500 states, 100/s, 25 s left"


def test_nothing_is_said_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    with (
        counted_progress("a", total=3, unit="b") as counted,
        steps_progress("a", total=3) as step,
        states_progress("a", total=3, unit="states") as states,
        time_progress("a", seconds=3.0) as timed,
        shrinking_progress(seconds=3.0) as shrinking,
        bytes_progress("a") as read,
        simulation_progress(3.0) as sent,
        tasks_progress("a", "b") as tasks,
    ):
        counted(1, "x")
        step("x")
        states(1, 1.0)
        timed("x", 1.0)
        shrinking(1, 2, 3)
        read(1, 2)
        sent(1, "")
        tasks("x", 1, 2, True)
    assert capsys.readouterr() == ("", "")


def test_steps_are_told_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A run of minutes said nothing in a log of CI."""
    tell = step_lines("proving", [2.0, 40.0])
    tell("kills")
    tell("check")
    first, second = capsys.readouterr().err.splitlines()
    assert first == "proving: 0 of 2 steps, 42 s left  kills"
    assert second.startswith("proving: 1 of 2 steps, ")
    assert second.endswith(" left  check")


def on_a_terminal(program: str, **environment: str) -> str:
    """Return the output of a program to a terminal as its standard error."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-P", "-c", program]
    environment = {"TERM": "xterm-256color", "COLUMNS": "120", "PYTHONPATH": str(HOME), **environment}
    with subprocess.Popen(command, stderr=theirs, stdout=subprocess.PIPE, env=environment) as running:
        os.close(theirs)
        written = b""
        while piece := _read(ours):
            written += piece
        assert running.stdout is not None
        assert running.stdout.read() == b""
    os.close(ours)
    assert running.returncode == 0, written.decode()
    return written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""


@pytest.mark.parametrize("wish", [{}, {"NO_COLOR": "1"}], ids=["colour", "no colour"])
def test_a_terminal_gets_a_bar_in_colour_unless_none_is_wanted(wish: dict[str, str]) -> None:
    written = on_a_terminal(BARS, **wish)
    assert bool(re.search(r"\x1b\[[0-9;]*[34][0-9][0-9;]*m", written)) is not bool(wish)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", written)
    assert "killing [b]" in shown, "names are no markup"
    assert re.search(r"299 of 300 writers, [0-9,]+/s, 0 s left  \[red\]299", shown)
    assert "0 states, 3 s left" in shown
    assert "3 min left  a slice" in shown
    assert re.search(r"inspecting .* 4 of 5 MiB, [0-9.,]+/s, 0 s left", shown)
    assert re.search(r"simulating .* 8,000,000 of 8,000,000 messages, [0-9,]+/s, 0 s left", shown)
    assert re.search(r"simulating .* 8,000,000 messages  table rolls", shown), "tables take time of their own"
    assert "starting Spark" in shown
    assert "0 of 9 tasks  reading" in shown
    assert re.search(r"2 of 5 tasks so far, [0-9,.]+/s, 0 s left  comparing", shown), "a stage has a rate of its own"
    assert "proving: 0 of 3 steps, 50 s left  kills" in shown
    assert re.search(r"proving: 1 of 3 steps, [0-9,.]+/s, 4[01] s left  check", shown), "what was fast, will be fast"


def test_a_bar_makes_no_thread() -> None:
    """Commands fork."""
    program = (
        "import os\nfrom tornpage.cli import progress\n"
        "with progress.counted_progress('a', total=3, unit='b') as show:\n"
        "    show(1, '')\n    assert len(os.listdir('/proc/self/task')) == 1\n"
    )
    assert on_a_terminal(program)
