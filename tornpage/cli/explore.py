"""`tornpage explore` and its verbs, one for each way to search for a broken guarantee.

Until 0.3.0 the group also accepts the former options that chose a way: `--kills 60` is `kills 60`.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from tornpage.cli import options
from tornpage.cli.document import Outcome, emit, refuse, say
from tornpage.outcomes import exploring
from tornpage.outcomes.exploring import Request
from tornpage.run.directory import prepare, write_run
from tornpage.run.history import append_run, prepare_history

__all__ = ["command"]

Command = TypeVar("Command", bound=Callable[..., Any])

_DEFAULT = "crashes"
_OPTION_OF = {
    "faults": "fault",
    "states_per_shard": "states-per-shard",
    "peer_mode": "peer-mode",
    "shrink": "shrink-seconds",
}
_FORMER = {
    "--kills": "kills",
    "--restarts": "restarts",
    "--recovery": "recovery",
    "--interleavings": "interleavings",
    "--target": "target",
}
"""The verb for each former option; the value of the option, if any, is the argument of the verb."""
_FLAGS = {"--recovery", "--interleavings"}
_NOTICE = "tornpage.explore.notice"


# ---- the group and its verbs -----------------------------------------------------------------------------------------


class _Verb(click.Command):
    """A verb that answers an option of another verb with the name of that verb."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name in _FORMER and not ctx.resilient_parsing:
                refuse(f"{error.option_name} and `explore {self.name}` are two ways to explore; give one of them")
            takers = [name for name, verb in command.commands.items() if error.option_name in _options_of(verb)]
            if not takers or ctx.resilient_parsing:
                raise
            names = ", ".join(f"`explore {name}`" for name in takers)
            refuse(f"{error.option_name} goes with {names}, not with `explore {self.name}`")


class _Verbs(options.Commands):
    """The verbs. Options without a verb belong to `crashes`; former options choose a verb."""

    command_class = _Verb

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        has_verb = bool(args) and not args[0].startswith("-")
        asks_for_help = bool(args) and args[0] in ctx.help_option_names
        if not has_verb and not asks_for_help and (args or not ctx.resilient_parsing):
            args, ctx.meta[_NOTICE] = _with_verb(args)
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            known = {each.value for each in found}
            below = self.commands[_DEFAULT].shell_complete(ctx, incomplete)
            found += [each for each in below if each.value not in known]
        return found


def _options_of(verb: click.Command) -> set[str]:
    return {name for parameter in verb.params for name in (*parameter.opts, *parameter.secondary_opts)}


def _with_verb(args: list[str]) -> tuple[list[str], str]:
    """Return arguments that begin with a verb, and the notice for a former option or ""."""
    former: dict[str, list[str]] = {}
    rest: list[str] = []
    left = iter(args)
    for argument in left:
        option, has_value, value = argument.partition("=")
        if option not in _FORMER:
            rest.append(argument)
        elif option in _FLAGS:
            former[option] = []
        elif has_value or (value := next(left, "")):
            former[option] = [value]
        else:
            refuse(f"{option} needs a value; give it as in `tornpage explore {_FORMER[option]} VALUE`")
    if not former:
        return [_DEFAULT, *rest], ""
    (option, values), *others = former.items()
    if others:
        refuse(f"{option} and {others[0][0]} are two ways to explore; give one of them")
    verb = _FORMER[option]
    notice = f"`explore {option}` is `explore {verb}` now; the next release removes the option"
    return [verb, *rest, *(["--", *values] if values else [])], notice


@click.group("explore", cls=_Verbs)
def command() -> None:
    """Search for a broken guarantee: crash the store, kill it, restart it, mix its threads.

    Without a verb it is `explore crashes`.

    \b
    tornpage explore --seconds 30             (the same as: tornpage explore crashes --seconds 30)
    tornpage explore --bug lying-flush        (must be broken)
    tornpage explore kills 200
    tornpage explore target 'cmd:./mystore --dir {dir}'   (your store: docs/test-your-store.md)
    """


def _carry_out(
    run: Callable[[Request], tuple[Outcome, str]],
    context: click.Context,
    *,
    out: str | None,
    as_json: bool,
    history: str | None = None,
    **asked: Any,
) -> None:
    """Run a verb, write its results to --out and --history, print them, and exit."""
    if notice := context.meta.get(_NOTICE):
        say(f"tornpage: {notice}")
    request = Request(out=out, **asked)
    prepare_history(history)
    started = datetime.now(UTC)
    if out is not None:
        prepare(out)
    outcome, text = run(request)
    if out is not None:
        write_run(Path(out), outcome)
    append_run(history, outcome, started=started)
    emit(outcome, as_json=as_json, text=text)


_seconds_option = click.option(
    "--seconds", type=options.Seconds(min=0.1), default=None, help="Stop after this time (default 10)."
)
_states_option = click.option(
    "--states", type=click.IntRange(min=1), default=None, help="Stop after this many counted crash states."
)
_workers_option = click.option("--workers", type=click.IntRange(1, 1024), default=None, help="Number of processes (1).")
_failures_option = click.option(
    "--failures", type=click.IntRange(min=1), default=None, help="Stop after this many different failures (3)."
)
_directory_option = click.option(
    "--directory",
    type=click.Path(file_okay=False, exists=True),
    default=None,
    help="Directory for the stores (default: in memory).",
)
_file_bytes_option = click.option(
    "--file-bytes", metavar="BYTES", type=click.IntRange(1024, 1 << 20), default=None, help="Size of a log file (4096)."
)


# ---- crash states ----------------------------------------------------------------------------------------------------


@command.command("crashes", short_help="Crash states of recorded runs.")
@_states_option
@_seconds_option
@options.fault_option
@_workers_option
@options.strategy_option
@options.compiled_option
@_failures_option
@click.option(
    "--states-per-shard", type=click.IntRange(min=1), default=None, help="Counted crash states of a shard (1000)."
)
@click.option(
    "--file-bytes",
    metavar="BYTES",
    type=click.IntRange(1024, 1 << 20),
    default=None,
    help="Size of a log file (16384).",
)
@click.option("--verbose", is_flag=True, help="Also print the times, and the counts of all faults, rules and judges.")
@click.option(
    "--coverage-table",
    is_flag=True,
    help="Print the pairs of levels that runs have exercised (docs/tester/covering.md).",
)
@options.peer_run_options
@options.disk_option
@options.bug_option
@options.seed_option
@options.out_option
@options.history_option
@options.json_option
@click.pass_context
def _crashes(context: click.Context, /, **asked: Any) -> None:
    """Record runs of the store, crash them at every crash point, recover, and judge.

    \b
    tornpage explore crashes --seconds 30
    tornpage explore crashes --states 5000 --seed 7 --json
    tornpage explore crashes --states 20000 --workers 2 --coverage-table
    tornpage explore crashes --bug lying-flush        (must be broken)
    tornpage explore crashes --fault 'sync-lost: kind=log and nth=3' --fault no-space
    tornpage explore crashes --seconds 60 --history RUNS     (then: tornpage report --history RUNS)
    tornpage explore crashes --peer rocketmq:4.9.3 --states 1000 --workers 2
    tornpage explore crashes --peer rocketmq:4.9.3 --states 1000 --writer peer --disk journal
    """
    if asked["peer"] is None:
        for name in ("every", "writer", "peer_mode", "shrink"):
            if asked[name] is not None:
                refuse(f"--{_OPTION_OF.get(name, name)} is for runs with a peer; give --peer too")
        _carry_out(exploring.explore_crashes, context, **asked)
        return
    for name in ("faults", "strategy", "compiled", "failures", "states_per_shard", "coverage_table", "history"):
        if asked[name]:
            refuse(f"--{_OPTION_OF.get(name, name)} is not for runs with --peer; leave it out")
    _carry_out(exploring.explore_crashes_with_peer, context, **asked)


@command.command("target", short_help="Crash states of your store.")
@click.argument("target", metavar="SPEC")
@_states_option
@_seconds_option
@_failures_option
@click.option(
    "--answer-seconds",
    type=options.Seconds(min=0.1, max=3600),
    default=None,
    help="Longest time for an answer of the store (10).",
)
@options.start_option
@options.disk_option
@options.seed_option
@options.out_option
@options.json_option
@click.pass_context
def _target(context: click.Context, /, **asked: Any) -> None:
    """Crash your store: make crash states from its system calls, reopen it, and judge.

    SPEC is module:callable, path/file.py:callable, or 'cmd:./mystore --dir {dir}' (docs/test-your-store.md).

    \b
    tornpage explore target examples/toy_store.py:ToyStore --states 60
    tornpage explore target 'cmd:./mystore --dir {dir}' --seconds 60 --disk journal
    """
    _carry_out(exploring.explore_target, context, **asked)


@command.command("recovery", short_help="Crashes of the recovery itself.")
@options.disk_option
@options.bug_option
@options.seed_option
@options.out_option
@options.json_option
@click.pass_context
def _recovery(context: click.Context, /, **asked: Any) -> None:
    """Crash the recovery of sample stores at each file operation, recover again, and judge.

    \b
    tornpage explore recovery
    tornpage explore recovery --bug no-erase-after-cut --json        (must be broken)
    """
    _carry_out(exploring.explore_recovery, context, **asked)


# ---- real processes --------------------------------------------------------------------------------------------------


@command.command("kills", short_help="Real writers, killed by SIGKILL.")
@click.argument("kills", metavar="[COUNT]", type=click.IntRange(min=1), default=200)
@click.option(
    "--kill-at",
    type=click.Choice(("step", "bytecode")),
    default=None,
    help="When to kill: at the start of a file operation (default), or at a bytecode of the store.",
)
@_workers_option
@click.option(
    "--together",
    type=click.IntRange(1, 25),
    default=None,
    help="Number of writers that one process runs and one SIGKILL ends (9). Steps only; each tenth program runs alone.",
)
@_directory_option
@_file_bytes_option
@options.bug_option
@options.seed_option
@options.out_option
@options.json_option
@click.pass_context
def _kills(context: click.Context, /, **asked: Any) -> None:
    """Kill COUNT (200) real writers by SIGKILL at random steps, recover, and judge.

    \b
    tornpage explore kills 200
    tornpage explore kills 2000 --workers 2 --kill-at bytecode
    """
    _carry_out(exploring.explore_kills, context, **asked)


@command.command("restarts", short_help="Real restarts by fresh processes.")
@click.argument("restarts", metavar="[COUNT]", type=click.IntRange(min=1), default=5)
@_directory_option
@_file_bytes_option
@options.bug_option
@options.seed_option
@options.out_option
@options.json_option
@click.pass_context
def _restarts(context: click.Context, /, **asked: Any) -> None:
    """Restart a store COUNT (5) times in fresh processes.

    One opener is refused, one is killed, and one serves the remaining messages.

    \b
    tornpage explore restarts 5
    tornpage explore restarts 2 --directory /var/tmp
    """
    _carry_out(exploring.explore_restarts, context, **asked)


# ---- damaged stores -------------------------------------------------------------------------------------------------


@command.command("damage", short_help="Stores with one damaged field.")
@click.argument("stores", metavar="STORE...", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False))
@click.option("--damages", type=click.IntRange(min=1), default=200, show_default=True, help="How many damages.")
@click.option("--workers", type=click.IntRange(1, 1024), default=None, help="Processes that work at the same time (1).")
@options.bug_option
@options.seed_option
@options.out_option
@options.json_option
@click.pass_context
def _damage(context: click.Context, /, **asked: Any) -> None:
    """Damage one field or file of a copy of each STORE, open it, read, put and judge.

    What is done is kept in the directory of --out; a second run with the same seed goes on there. What can be damaged
    is listed by `tornpage faults --list`.

    \b
    tornpage explore damage --damages 2000 --seed 1 STORE STORE
    tornpage explore damage --damages 20000 --workers 2 --out out/damage STORE
    tornpage explore damage --bug queue-offset-believed STORE        (must be broken)
    """
    _carry_out(exploring.explore_damage, context, **asked)


# ---- threads ---------------------------------------------------------------------------------------------------------


@command.command("interleavings", short_help="Threads in drawn orders.")
@click.option("--states", type=click.IntRange(min=1), default=None, help="Stop after this many interleavings.")
@_seconds_option
@options.bug_option
@options.seed_option
@options.out_option
@options.json_option
@click.pass_context
def _interleavings(context: click.Context, /, **asked: Any) -> None:
    """Run concurrent puts, dispatch, flushes, deletions and reads in drawn orders.

    \b
    tornpage explore interleavings --states 2000
    tornpage explore interleavings --seconds 60 --seed 7 --json
    tornpage explore interleavings --bug RMQ-B24        (must be broken)
    """
    _carry_out(exploring.explore_interleavings, context, **asked)


# ---- several nodes ---------------------------------------------------------------------------------------------------


def _case_campaign_options(command: Command) -> Command:
    """Add the options that campaigns on several processes share."""
    for option in (
        options.json_option,
        options.history_option,
        options.out_option,
        options.seed_option,
        options.bug_option,
        options.disk_option,
        _workers_option,
        _seconds_option,
        _states_option,
    ):
        command = option(command)
    return command


def _all_programs_option(longest: int) -> Callable[[Command], Command]:
    """Return --all-of for programs of up to `longest` operations."""
    return click.option(
        "--all-of",
        "length",
        metavar="K",
        type=click.IntRange(1, longest),
        default=None,
        help="Instead of drawn runs, run all programs of up to K operations (no limit of time unless --seconds).",
    )


@command.command("cluster", short_help="A master and its replicas.")
@click.option("--nodes", type=click.IntRange(2, 5), default=2, show_default=True, help="Nodes of a cluster.")
@_all_programs_option(6)
@_case_campaign_options
@click.pass_context
def _cluster(context: click.Context, /, **asked: Any) -> None:
    """Crash a master and its replicas, and the links between them.

    Restart, heal, and judge every copy.

    \b
    tornpage explore cluster --nodes 2 --seconds 60
    tornpage explore cluster --nodes 3 --states 2000 --seed 7 --json
    tornpage explore cluster --all-of 2
    tornpage explore cluster --bug RB09        (must be broken)
    """
    _carry_out(exploring.explore_cluster, context, **asked | {"length": asked["length"] or 0})


@command.command("consumers", short_help="A broker and the members of a consumer group.")
@click.option("--members", type=click.IntRange(2, 5), default=2, show_default=True, help="Members of the group.")
@_all_programs_option(10)
@click.option("--orderly", "is_orderly", is_flag=True, help="With --all-of: consume each queue in order.")
@_case_campaign_options
@click.pass_context
def _consumers(context: click.Context, /, **asked: Any) -> None:
    """Crash a broker, its consumers, and the network between them.

    Let members join, leave, hang and die; judge every delivery and every stored progress.

    \b
    tornpage explore consumers --seconds 60
    tornpage explore consumers --members 3 --states 2000 --seed 7 --json
    tornpage explore consumers --all-of 2
    tornpage explore consumers --bug CB01        (must be broken)
    """
    if asked["is_orderly"] and not asked["length"]:
        refuse("--orderly goes with --all-of; drawn runs have both kinds")
    if asked["length"] and asked["members"] != 2:
        refuse("--all-of runs two members; leave --members out")
    _carry_out(exploring.explore_consumers, context, **asked | {"length": asked["length"] or 0})


@command.command("raft", short_help="A Raft group: votes, entries, crashes.")
@click.option("--members", type=click.IntRange(1, 7), default=3, show_default=True, help="Members of a group.")
@click.option(
    "--all-of",
    "bound",
    metavar="E,P,C[,T]",
    type=options.Numbers(3, 4),
    default=None,
    help="Instead of drawn runs, search all schedules with up to E elections, P proposals, C crashes, T transfers.",
)
@click.option(
    "--judged",
    type=click.Choice(("all", "promises")),
    default="all",
    show_default=True,
    help="Compare each step of a member with the model as well, or judge only the promises of the group.",
)
@click.option("--store", "has_store", is_flag=True, help="Give all members of drawn runs a store, not those of some.")
@_case_campaign_options
@click.pass_context
def _raft(context: click.Context, /, **asked: Any) -> None:
    """Let members of a Raft group vote, append, crash and restart, and judge the group.

    Drawn runs have recorded disks and crash images. A search has logs in memory.

    \b
    tornpage explore raft --seconds 60
    tornpage explore raft --members 5 --states 20000 --workers 2 --json
    tornpage explore raft --store --seconds 60    (puts and reads of stores)
    tornpage explore raft --all-of 2,0,1          (2 elections, 0 proposals, 1 crash)
    tornpage explore raft --bug LB01              (must be broken)
    """
    if asked["has_store"] and asked["bound"]:
        refuse("--store goes with drawn runs; a search has logs in memory")
    _carry_out(exploring.explore_raft, context, **asked)


@command.command("pair", short_help="Two processes that replicate, killed.")
@click.argument("kills", metavar="KILLS", type=click.IntRange(min=1))
@click.option(
    "--role",
    type=click.Choice(["SYNC_MASTER", "ASYNC_MASTER"]),
    default="SYNC_MASTER",
    show_default=True,
    help="Role of the master. An ASYNC_MASTER may lose acknowledged messages at a promotion.",
)
@_directory_option
@options.seed_option
@options.out_option
@options.json_option
@click.pass_context
def _pair(context: click.Context, /, **asked: Any) -> None:
    """Run `tornpage serve` as master and slave, put, and kill either process with SIGKILL.

    After a kill the process starts again, or the slave is promoted. Every acknowledged message has to be there.

    \b
    tornpage explore pair 100 --seed 1
    tornpage explore pair 20 --role ASYNC_MASTER        (must be broken)
    """
    _carry_out(exploring.explore_pair, context, **asked)


@command.command("group", short_help="Processes of a Raft group, killed.")
@click.argument("kills", metavar="KILLS", type=click.IntRange(min=1))
@click.option("--members", type=click.IntRange(3, 7), default=3, show_default=True, help="Members of the group.")
@click.option(
    "--hang", "hangs", is_flag=True, help="Stop the leader with SIGSTOP instead; it goes on after the fail-over."
)
@click.option("--messages", is_flag=True, help="Put messages into a store instead of entries into a log.")
@_directory_option
@options.seed_option
@options.out_option
@options.json_option
@click.pass_context
def _group(context: click.Context, /, **asked: Any) -> None:
    """Run `tornpage serve` as a Raft group, append, and kill its leader KILLS times.

    After each fail-over the killed member starts again. Every acknowledged entry has to be in the logs of all members.
    The times from a kill to the next acknowledged entry are printed.

    \b
    tornpage explore group 100 --seed 1
    tornpage explore group 20 --hang
    tornpage explore group 20 --messages
    """
    _carry_out(exploring.explore_group, context, **asked)
