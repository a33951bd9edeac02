"""Options that several commands share, and the progress line."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

__all__ = [
    "bug_option",
    "disk_option",
    "json_option",
    "operations_progress",
    "out_option",
    "seed_option",
    "states_progress",
    "steps_progress",
]

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
out_option = click.option(
    "--out", type=click.Path(file_okay=False), default=None, help="Directory for results and case files of failures."
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

        def show(states: int, seconds: float) -> None:
            if states % 64 == 0:
                done = seconds if unit == "seconds" else states
                bar.update(task, completed=done, states=states, rate=states / max(seconds, 1e-9))

        yield show
