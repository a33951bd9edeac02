"""Options that several commands share, and the progress line."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from properties.scoring.score import Progress as TrialsProgress

__all__ = [
    "bug_option",
    "disk_option",
    "history_option",
    "json_option",
    "operations_progress",
    "out_option",
    "seed_option",
    "shrinking_lines",
    "states_progress",
    "steps_progress",
    "strategy_option",
    "trials_progress",
]

_LINE_EVERY_S = 60.0
_SHRINKING_LINE_EVERY_S = 5.0
_SHOW_EVERY_S = 0.1

Command = TypeVar("Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Start of the draws."
)
disk_option = click.option(
    "--disk",
    type=click.Choice(["posix-strict", "journal", "kill"]),
    default="posix-strict",
    show_default=True,
    help="What a directory keeps without a barrier: any subset, a prefix, or (process kill) all.",
)
strategy_option = click.option(
    "--strategy",
    type=click.Choice(["random", "swarm"]),
    default=None,
    help="How histories are drawn: all from one mix of everything (random, the default), or each from its own.",
)
out_option = click.option(
    "--out", type=click.Path(file_okay=False), default=None, help="Directory for results and case files of failures."
)


history_option = click.option(
    "--history", type=click.Path(file_okay=False), default=None, help="Add this run to a dataset that Trends show."
)


def bug_option(command: Command) -> Command:
    """Add --bug, checked against the planted bugs."""

    def known(_: click.Context, __: click.Parameter, value: str) -> str:
        if value:
            from properties.planted import UnknownBug, components_of

            try:
                components_of(value)
            except UnknownBug as error:
                raise click.BadParameter(str(error)) from error
        return value

    return click.option("--bug", default="", callback=known, help="Plant a bug (`tornpage bugs list`).")(command)


@contextmanager
def operations_progress(what: str) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of operations; it shows them on a terminal and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda operations: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …") as status:

        def show(operations: int) -> None:
            if operations % 256 == 0:
                status.update(f"{what}: {operations:,} operations")

        yield show


@contextmanager
def steps_progress(what: str, *, total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function to call with the name of the next of `total` steps; a bar on a terminal, without a thread."""
    if not sys.stderr.isatty():
        yield lambda name: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(what, total=total)
        done = 0

        def show(name: str) -> None:
            nonlocal done
            bar.update(task, description=name, completed=done)
            bar.refresh()
            done += 1

        yield show


@contextmanager
def states_progress(what: str, *, total: float | None, unit: str) -> Iterator[Callable[[int, float], None]]:
    """Yield a function to call with (states, seconds); it draws a bar on a terminal and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda states, seconds: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[states]:,} states, {task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, states=0, rate=0.0)

        shown = 0.0

        def show(states: int, seconds: float) -> None:
            nonlocal shown
            if seconds - shown >= _SHOW_EVERY_S:
                shown = seconds
                done = seconds if unit == "seconds" else states
                bar.update(task, completed=done, states=states, rate=states / max(seconds, 1e-9))

        yield show


def shrinking_lines() -> Callable[[int, int, int, int], None]:
    """Return a function to call while failures are made small; it says every few seconds how far that is."""
    told = monotonic()

    def line(number: int, tries: int, operations: int, losses: int) -> None:
        nonlocal told
        if monotonic() - told >= _SHRINKING_LINE_EVERY_S:
            told = monotonic()
            left = f"{operations} operations, {losses} lost facts"
            click.echo(f"making failure {number} small: {tries:,} replays, {left} left", err=True)

    return line


@contextmanager
def trials_progress(what: str) -> Iterator[Callable[["TrialsProgress"], None]]:
    """Yield a function to call with how far trials are; a bar on a terminal, else a line each minute."""
    started = told = monotonic()

    def line(now: "TrialsProgress") -> None:
        nonlocal told
        if monotonic() - told >= _LINE_EVERY_S:
            told = monotonic()
            click.echo(f"{what}: {now.done:,} of {now.total:,} trials, {_left(now, told - started)}", err=True)

    if not sys.stderr.isatty():
        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(what, total=None, said="")

        def show(now: "TrialsProgress") -> None:
            said = f"{now.done:,}/{now.total:,} trials, {_left(now, monotonic() - started)}"
            bar.update(task, completed=now.done, total=now.total, said=said)
            bar.refresh()

        yield show


def _left(now: "TrialsProgress", spent_s: float) -> str:
    """Say how long it takes at the rate so far, and at most."""
    likely = [f"about {spent_s / now.new * (now.total - now.done) / 60:,.0f} min left"] if now.new else []
    at_most = [f"at most {now.seconds_left_max / 60:,.0f} min"] if now.seconds_left_max is not None else []
    return ", ".join([*likely, *at_most])
