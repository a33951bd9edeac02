"""Options that several commands share."""

from collections.abc import Callable
from math import isfinite
from typing import Any, TypeVar

import click

from tornpage.cli.completing import bug_ids

__all__ = [
    "Seconds",
    "answer_option",
    "bug_option",
    "disk_option",
    "history_option",
    "json_option",
    "out_option",
    "redact_option",
    "seed_option",
    "start_option",
    "strategy_option",
    "target_option",
]

Command = TypeVar("Command", bound=Callable[..., Any])


class Seconds(click.FloatRange):
    """A time that ends. A range alone takes nan, which lies outside of nothing, and infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail as a range does."""
        seconds: float = super().convert(value, param, ctx)
        if not isfinite(seconds):
            self.fail(f"{seconds} has no end; give a number of seconds", param, ctx)
        return seconds


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
redact_option = click.option(
    "--redact",
    is_flag=True,
    help="For sharing: names and numbers stand for topics, keys, tags, groups, hosts, hashes (docs/inspect.md).",
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Start of the draws."
)
start_option = click.option(
    "--from",
    "start",
    type=click.Choice(["open", "first-answer"]),
    default="open",
    show_default=True,
    help="Where crashes of a store of yours begin: in its very first open, or after its answer.",
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


target_option = click.option(
    "--target",
    metavar="SPEC",
    default=None,
    help="Another store than ours: module:callable, path/file.py:callable, or 'cmd:./mystore --dir {dir}'.",
)
answer_option = click.option(
    "--answer-seconds",
    type=click.FloatRange(min=0.1, max=3600),
    default=None,
    help="With --target: how long it may take for an answer (10).",
)


def bug_option(command: Command) -> Command:
    """Add --bug, checked against the planted bugs."""

    def known(ctx: click.Context, _: click.Parameter, value: str) -> str:
        if value and not ctx.resilient_parsing:
            from tornpage.properties.planted import UnknownBug, parts_of

            try:
                parts_of(value)
            except UnknownBug as error:
                raise click.BadParameter(str(error)) from error
        return value

    return click.option(
        "--bug", default="", callback=known, shell_complete=bug_ids, help="Plant a bug (`tornpage bugs list`)."
    )(command)
