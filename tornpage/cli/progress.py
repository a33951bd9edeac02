"""Show the progress of long commands: a bar on standard error with count, rate, time left.

The bar has no thread, since commands fork. It is drawn when the work reports progress. Without a terminal there are
lines for the steps of `prove` and for very long steps only.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from tornpage.cli.document import say
from tornpage.properties.judge.rulings import counted

if TYPE_CHECKING:
    from rich.progress import Progress

    from tornpage.properties.score.score import Progress as TrialsProgress

__all__ = [
    "bytes_progress",
    "counted_progress",
    "shrinking_lines",
    "shrinking_progress",
    "simulation_progress",
    "states_progress",
    "step_lines",
    "steps_progress",
    "tasks_progress",
    "time_progress",
    "told",
    "trials_progress",
]

_LINE_EVERY_S = 60.0
_SHRINKING_LINE_EVERY_S = 5.0
_SHOW_EVERY_S = 0.1
_TRUSTED_S = 10.0
"""Weight, in seconds, of the known lengths of steps against the measured ones."""
_MIB = 1 << 20
_NAME_MAX = 40
"""Characters of the name of the current step."""


def told(done: float, total: float | None, unit: str, seconds: float, *, left_s: float | None = None) -> str:
    """Return the text next to a bar: count, rate, and time left.

    The time left follows from the rate unless it is given as `left_s`.
    """
    parts = [f"{done:,.0f} of {total:,.0f} {unit}" if total is not None else f"{done:,.0f} {unit}"]
    rate = done / seconds if seconds > 0 else 0.0
    if rate > 0:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min")
    if left_s is None and total is not None and rate > 0:
        left_s = max(total - done, 0) / rate
    if left_s is not None:
        parts.append(f"{_time(left_s)} left")
    return ", ".join(parts)


@contextmanager
def counted_progress(what: str, *, total: float | None, unit: str) -> Iterator[Callable[[float, str], None]]:
    """Yield a function to call with the number of finished items and the current name."""
    with _bar(what, total) as draw:
        yield lambda done, name: draw(done, lambda seconds: told(done, total, unit, seconds), name)


@contextmanager
def bytes_progress(what: str) -> Iterator[Callable[..., None]]:
    """Yield a function to call with bytes read, total bytes, and the current name."""
    with _bar(what, None) as draw:

        def show(read_bytes: int, total_bytes: int, name: str = "") -> None:
            read, total = read_bytes / _MIB, total_bytes / _MIB
            draw(read, lambda seconds: told(read, total, "MiB", seconds), name, total)

        yield show


@contextmanager
def tasks_progress(what: str, first: str) -> Iterator[Callable[[str, int, int, bool], None]]:
    """Yield a function to call with a stage, its finished and known tasks, and a flag.

    The flag states whether the known tasks are all tasks. Each stage has its own rate; `first` is the name before the
    first stage. Only one thread may call the function.
    """
    with _bar(what, None) as draw:
        stage, since = first, monotonic()
        draw(0, lambda _: "", first)

        def show(name: str, done: int, known: int, is_all: bool) -> None:
            nonlocal stage, since
            if name != stage:
                stage, since = name, monotonic()
            unit = "tasks" if is_all else "tasks so far"
            draw(done, lambda _: told(done, known, unit, monotonic() - since), name, known)

        yield show


@contextmanager
def steps_progress(what: str, *, total: int, unit: str = "steps") -> Iterator[Callable[[str], None]]:
    """Yield a function to call with the name of the next of `total` steps."""
    done = -1
    with counted_progress(what, total=total, unit=unit) as draw:

        def show(name: str) -> None:
            nonlocal done
            done += 1
            draw(done, name)

        yield show


@contextmanager
def simulation_progress(messages: float) -> Iterator[Callable[[int, str], None]]:
    """Yield a function to call with the number of sent messages and the current table.

    The name of the table is empty while messages are sent. The time of tables is independent of the messages.
    """
    with _bar("simulating", messages) as draw:

        def show(sent: int, table: str) -> None:
            draw(
                sent,
                lambda seconds: counted(sent, "message") if table else told(sent, messages, "messages", seconds),
                table and f"table {table}",
            )

        yield show


@contextmanager
def states_progress(what: str, *, total: float | None, unit: str) -> Iterator[Callable[[int, float], None]]:
    """Yield a function to call with (states, seconds).

    `total` is in seconds if `unit` is "seconds".
    """
    with _bar(what, total) as draw:

        def show(states: int, seconds: float) -> None:
            if unit == "seconds":
                left_s = None if total is None else max(total - seconds, 0.0)
                draw(seconds, lambda _: told(states, None, "states", seconds, left_s=left_s), "")
            else:
                draw(states, lambda _: told(states, total, "states", seconds), "")

        yield show


@contextmanager
def time_progress(what: str, *, seconds: float) -> Iterator[Callable[[str, float], None]]:
    """Yield a function to call with the current step and the elapsed part of `seconds`."""
    with _bar(what, seconds) as draw:
        yield lambda name, gone: draw(gone, lambda _: f"{_time(max(seconds - gone, 0.0))} left", name)


@contextmanager
def trials_progress(what: str) -> Iterator[Callable[["TrialsProgress"], None]]:
    """Yield a function to call with the progress of trials.

    It draws a bar on a terminal, and prints a line a minute elsewhere.
    """
    started = last = monotonic()

    def line(now: "TrialsProgress") -> None:
        nonlocal last
        if monotonic() - last >= _LINE_EVERY_S:
            last = monotonic()
            say(f"{what}: {_of_trials(now, last - started)}")

    if not sys.stderr.isatty():
        yield line
        return
    with _bar(what, None) as draw:
        yield lambda now: draw(now.done, lambda seconds: _of_trials(now, seconds), "", now.total)


def step_lines(what: str, usual_s: Sequence[float]) -> Callable[[str], None]:
    """Return a function to call with the name of the next step; steps have their own bars.

    It prints a line at each step, also without a terminal. The time left follows from the usual seconds of the steps,
    and from the measured time of the earlier ones.
    """
    started, done = monotonic(), 0

    def line(name: str) -> None:
        nonlocal done
        gone = monotonic() - started
        slower = (gone + _TRUSTED_S) / (sum(usual_s[:done]) + _TRUSTED_S)
        said = told(done, len(usual_s), "steps", gone, left_s=sum(usual_s[done:]) * slower)
        say(f"{what}: {said}  {name}")
        done += 1

    return line


def shrinking_lines() -> Callable[[int, int, int, int], None]:
    """Return a function to call while failures are shrunk; it prints a line every few seconds."""
    last = monotonic()

    def line(number: int, tries: int, operations: int, losses: int) -> None:
        nonlocal last
        if monotonic() - last >= _SHRINKING_LINE_EVERY_S:
            last = monotonic()
            left = f"{counted(operations, 'operation')}, {counted(losses, 'lost write')}"
            say(f"shrinking failure {number}: {counted(tries, 'replay')}, {left} left")

    return line


@contextmanager
def shrinking_progress(*, seconds: float) -> Iterator[Callable[[int, int, int], None]]:
    """Yield a function to call after each replay of a search of up to `seconds`."""
    with _bar("shrinking", seconds) as draw:
        started = monotonic()

        def show(tries: int, operations: int, losses: int) -> None:
            gone = monotonic() - started
            so_far = f"{counted(operations, 'operation')} and {counted(losses, 'lost write')}"
            draw(gone, lambda _: told(tries, None, "replays", gone, left_s=max(seconds - gone, 0.0)), so_far)

        yield show


def _of_trials(now: "TrialsProgress", seconds: float) -> str:
    """Return count and time left, at the rate of this run's trials and at most."""
    likely = [f"about {_time(seconds / now.new * (now.total - now.done))} left"] if now.new else []
    at_most = [f"at most {_time(now.seconds_left_max)}"] if now.seconds_left_max is not None else []
    return ", ".join([f"{now.done:,} of {counted(now.total, 'trial')}", *likely, *at_most])


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


@contextmanager
def _bar(what: str, total: float | None) -> Iterator[Callable[..., None]]:
    """Yield a function that draws place, text and name, at most ten times a second.

    The text is a function of the elapsed seconds.
    """
    if not sys.stderr.isatty():
        yield lambda place, text, name, total=None: None
        return
    with _display() as display:
        task = display.add_task(what, total=total, said="")
        display.refresh()
        started = drawn = monotonic()
        drawn_name: str | None = None

        def draw(place: float, text: Callable[[float], str], name: str, total: float | None = total) -> None:
            nonlocal drawn, drawn_name
            now = monotonic()
            if now - drawn < _SHOW_EVERY_S and name == drawn_name:
                return
            drawn, drawn_name = now, name
            said = "  ".join(filter(None, (text(now - started), name[:_NAME_MAX])))
            display.update(task, completed=place, total=total, said=said)
            display.refresh()

        yield draw


def _display() -> "Progress":
    """Return the display on standard error, in the style of the terminal and NO_COLOR."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[said]}", markup=False),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
