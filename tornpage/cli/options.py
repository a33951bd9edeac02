"""Share options, and the group that suggests commands, between commands."""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from tornpage.cli.completing import bug_ids, fault_names

if TYPE_CHECKING:
    from tornpage.model.operations import AimFault

__all__ = [
    "DISKS",
    "Commands",
    "Finite",
    "Numbers",
    "Seconds",
    "Span",
    "answer_option",
    "broker_config_option",
    "bug_option",
    "compiled_option",
    "disk_option",
    "fault_option",
    "file_bytes_option",
    "history_option",
    "json_option",
    "names_of",
    "out_option",
    "peer_mode_option",
    "peer_option",
    "peer_run_options",
    "redact_option",
    "release_option",
    "require_stores",
    "seed_option",
    "slots_option",
    "start_option",
    "strategy_option",
    "target_option",
]

Command = TypeVar("Command", bound=Callable[..., Any])


class Commands(click.Group):
    """A group that answers a misspelt command with the nearest names."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raises UsageError with suggestions if there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], self.list_commands(ctx), n=3)
            if not near or args[0].startswith("-"):
                raise
            raise click.UsageError(f"No such command {args[0]!r}; did you mean {' or '.join(near)}?", ctx) from error


class Span(click.ParamType[float]):
    """A time with its unit: 10ms, 500us, 1.5s; the value is in ns."""

    name = "time"
    _UNITS: ClassVar = {"us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
    _FORM = re.compile(r"([0-9]*\.?[0-9]+)\s*(us|µs|ms|s)")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the nanoseconds. Fails without a unit, and for anything else."""
        if isinstance(value, float):
            return value
        found = self._FORM.fullmatch(str(value).strip())
        if found is None or not isfinite(float(found[1])):
            self.fail(f"{value!r} is no time with a unit; write it like 10ms, 500us or 1.5s", param, ctx)
        return float(found[1]) * self._UNITS[found[2]]


class Numbers(click.ParamType[tuple[int, ...]]):
    """A list of natural numbers, with commas between them."""

    name = "numbers"

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Read the list. A wrong one is a usage error."""
        if isinstance(value, tuple):
            return value
        words = str(value).split(",")
        if not self._least <= len(words) <= self._most or not all(each.strip().isdecimal() for each in words):
            self.fail(f"{value!r} is no list of {self._least} to {self._most} numbers, like 2,0,1", param, ctx)
        return tuple(map(int, words))


class Finite(click.FloatRange):
    """A finite number; `click.FloatRange` also accepts nan and infinity."""

    refusal = "is no finite number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Fails like a range outside its bounds, and for nan and infinity."""
        number: float = super().convert(value, param, ctx)
        if not isfinite(number):
            self.fail(f"{number} {self.refusal}", param, ctx)
        return number


class Seconds(Finite):
    """A finite number of seconds."""

    name = "seconds"
    refusal = "has no end; give a number of seconds"


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
redact_option = click.option(
    "--redact",
    is_flag=True,
    help="Replace topics, keys, tags, groups, hosts and hashes by made-up names, for sharing (docs/inspect.md).",
)
release_option = click.option(
    "--rocketmq-version",
    metavar="VERSION",
    default=None,
    help="The release that wrote the store. 4.8.0 and 4.9.0 parse properties of batches by another rule.",
)
broker_config_option = click.option(
    "--broker-config", type=click.Path(), default=None, help="The broker's settings, name=value lines."
)
file_bytes_option = click.option(
    "--file-bytes",
    metavar="BYTES",
    type=click.IntRange(1, 2**40 - 1),
    default=None,
    help="Size of a log file, if unclear.",
)
slots_option = click.option(
    "--slots", type=click.IntRange(min=1), default=None, help="Slots of an index file (maxHashSlotNum)."
)
seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all random draws."
)
start_option = click.option(
    "--from",
    "start",
    type=click.Choice(["open", "first-answer"]),
    default="open",
    show_default=True,
    help="Where crashes of a store of yours begin: in its very first open, or after its answer.",
)
DISKS = ("posix-strict", "journal", "ext4", "xfs", "btrfs", "kill")
"""Equal to those of `properties.program.case`, which commands import only when they run."""
disk_option = click.option(
    "--disk",
    type=click.Choice(DISKS),
    default="posix-strict",
    show_default=True,
    help="What a crash may leave: all that POSIX permits, all that three file systems have in common, what one of them "
    "leaves, or (process kill) everything.",
)
strategy_option = click.option(
    "--strategy",
    type=click.Choice(["random", "covering"]),
    default=None,
    help="How runs are drawn: from rows of a covering array (covering, the default), or by fixed weights (random).",
)
compiled_option = click.option(
    "--compiled",
    is_flag=True,
    help="Use the compiled loops, as stores in use do after 20,000 records (the lab uses their plain twins).",
)
out_option = click.option(
    "--out", type=click.Path(file_okay=False), default=None, help="Directory for run.json, tables and case files."
)

history_option = click.option(
    "--history",
    type=click.Path(file_okay=False),
    default=None,
    help="Add this run to the dataset of `report --history`.",
)


target_option = click.option(
    "--target",
    metavar="SPEC",
    default=None,
    help="Your store: module:callable, path/file.py:callable, or 'cmd:./mystore --dir {dir}'.",
)
peer_option = click.option(
    "--peer",
    "peers",
    metavar="NAME",
    multiple=True,
    help="Another implementation that opens the same images: rocketmq:4.9.3 (`tornpage peer list`).",
)
peer_mode_option = click.option(
    "--peer-mode",
    type=click.Choice(["light", "quick", "stock"]),
    default=None,
    help="With --peer: how the peer opens and closes an image (light).",
)
answer_option = click.option(
    "--answer-seconds",
    type=Seconds(min=0.1, max=3600),
    default=None,
    help="With --target: longest time for an answer (10).",
)


_VERBS_OF_BUGS = {"replication": "cluster", "consumers": "consumers", "raft": "raft"}
"""The verb of `explore` that can plant the bugs of a module of `properties.planted`."""


def bug_option(command: Command) -> Command:
    """Add --bug, checked against the planted bugs and against what the command runs."""

    def known(ctx: click.Context, _: click.Parameter, value: str) -> str:
        if value and not ctx.resilient_parsing:
            from tornpage.properties.bug_ids import UnknownBug, module_of_bug, require_bugs

            try:
                require_bugs([value])
            except UnknownBug as error:
                raise click.BadParameter(str(error)) from error
            verb = _VERBS_OF_BUGS.get(module_of_bug(value))
            if verb is not None and ctx.info_name not in (verb, "check"):
                raise click.BadParameter(
                    f"no run of `{ctx.info_name}` has the part that {value} breaks; "
                    f"`tornpage explore {verb} --bug {value}` plants it"
                )
        return value

    return click.option(
        "--bug",
        metavar="ID",
        default="",
        callback=known,
        shell_complete=bug_ids,
        help="Plant a bug (`tornpage bugs list`).",
    )(command)


def fault_option(command: Command) -> Command:
    """Add --fault, which passes `faults`, a tuple of fault operations, to the command."""

    def parsed(ctx: click.Context, _: click.Parameter, texts: tuple[str, ...]) -> "tuple[AimFault, ...]":
        if ctx.resilient_parsing:  # completion in a shell
            return ()
        from tornpage.properties.program.fault_language import BadFaultRule, fault_rule_of

        try:
            return tuple(dict.fromkeys(fault_rule_of(text) for text in texts))
        except BadFaultRule as error:
            raise click.BadParameter(str(error)) from error

    return click.option(
        "--fault",
        "faults",
        metavar="FAULT",
        multiple=True,
        callback=parsed,
        shell_complete=fault_names,
        help="I/O fault rule, such as 'sync-lost: kind=log and nth=3'; can be repeated (`tornpage faults --list`).",
    )(command)


def peer_run_options(command: Command) -> Command:
    """Add the options of a run in which a peer opens the same crash images."""
    for option in (
        click.option(
            "--shrink-seconds",
            "shrink",
            type=Seconds(min=0),
            default=None,
            help="With --peer and --out: time to shrink each counterexample of the peer (20); 0 leaves them out.",
        ),
        peer_mode_option,
        click.option(
            "--writer",
            type=click.Choice(["ours", "peer"]),
            default=None,
            help="With --peer: crash histories of our store, or of the peer, recorded live (ours).",
        ),
        click.option(
            "--every", type=click.IntRange(min=1), default=None, help="With --peer: take every n-th crash point (10)."
        ),
        click.option(
            "--peer",
            metavar="NAME",
            default=None,
            help="Let another implementation open the crash images too: rocketmq:4.9.3 (`tornpage peer list`).",
        ),
    ):
        command = option(command)
    return command


def names_of(text: str) -> tuple[str, ...]:
    """Return the names of a list with commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def require_stores(paths: Iterable[str]) -> None:
    """Refuse a path that is no store directory, before a command loads what reads stores."""
    from tornpage.cli.document import refuse
    from tornpage.properties.decode.opening import InspectError, store_directory

    for path in paths:
        try:
            store_directory(path)
        except InspectError as error:
            refuse(str(error))
