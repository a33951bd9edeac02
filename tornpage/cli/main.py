"""The command line: find a command, run it, and exit with its code.

Each command parses its arguments, calls one function, and prints the result. Commands are imported when they are
called, so that `--help` and `doctor` stay fast.
"""

import importlib
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import Any

import click

from tornpage import __version__
from tornpage.cli.document import not_printed, say
from tornpage.cli.interrupts import INTERRUPTED, deaf_to_interrupts, leave_interrupted
from tornpage.cli.options import Commands

__all__ = ["cli", "main"]

_COMMANDS = {
    "ask": "ask a served node: put, get, status, roles",
    "audit": "check a store: commit log, queues and index (Spark only for very large ones)",
    "bench": "measure store, recovery, crash lab and simulator on this machine",
    "board": "test real stores against what they promise",
    "bugs": "list, show and score planted bugs; mutants; defects of RocketMQ",
    "campaign": "run explore over seed ranges in Spark tasks, results as Parquet",
    "check": "compare a store with the model, with Hypothesis machines",
    "completion": "print the script for TAB completion in a shell",
    "doctor": "print what this machine offers, and what is missing",
    "exhaust": "crash every short workload in every way within a bound",
    "explain": "explain a failing case as a page, or the code of a finding",
    "explore": "search for broken guarantees: crashes, kills, restarts, recovery, interleavings",
    "export": "write the messages of a store as text, JSON lines, CSV or Parquet",
    "faults": "run the store on real disks that are full, fail or cut writes short",
    "init": "write a skeleton that connects a store of yours",
    "inspect": "show the content of a store directory, changing nothing",
    "judge": "recover a copy of a crash image and rule on each guarantee",
    "peer": "install other implementations that open the same crash images",
    "promote": "keep a failing case as a regression test",
    "prove": "run every kind of check once, briefly (about a minute), and write a report",
    "replay": "repeat one failure, or judge all saved failures again",
    "report": "build the page of a run directory",
    "serve": "run a store as a master or a slave until a signal",
    "shrink": "reduce a failing case",
    "sim": "simulate the cost and the risk of flush and preallocation policies",
}
_PLACES = {"ask": "nodes.ask", "serve": "nodes.serve", "sim": "simulating.sim"}
"""The modules of commands that have another name than their command."""


@contextmanager
def _output_may_end() -> Iterator[None]:
    """Let help and version end well on a closed pipe, and with one line on a full disk."""
    try:
        yield
    except OSError as error:
        if not _is_stuck():
            raise  # the error came from another file
        raise click.exceptions.Exit(2 if not_printed(error) else 0) from None


def _is_stuck() -> bool:
    """Return whether standard output refuses another line; only a write shows a full disk."""
    try:
        os.write(1, b"\n")
    except OSError:
        return True
    return False


class _LazyGroup(Commands):
    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _output_may_end():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _output_may_end():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = importlib.import_module(f"tornpage.cli.{_PLACES.get(cmd_name, cmd_name)}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if near := get_close_matches(args[0], _COMMANDS, n=2):
                raise click.UsageError(f"{error.message} Did you mean {' or '.join(near)}?", ctx=error.ctx) from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tornpage")
def cli() -> None:
    """Crash-test message stores, inspect RocketMQ store directories, simulate flush policies.

    \b
    Exit codes: 0 holds, 1 a guarantee is broken, 2 misuse, 3 vacuous or unknown, 4 the harness failed,
    130 interrupted (partial results are kept).
    """


def main() -> None:
    """Run the command line. Exits with 130 after an unhandled interrupt, with 2 after misuse."""
    try:
        # stores opened by commands are under test: their warnings are provoked, and reported as findings
        logging.getLogger("tornpage").addHandler(logging.NullHandler())
        sys.exit(cli.main(prog_name="tornpage", standalone_mode=False))
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        leave_interrupted()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            leave_interrupted()
        raise
    except click.ClickException as error:
        with suppress(OSError):  # standard error may be closed
            error.show()
        sys.exit(error.exit_code)
    finally:
        deaf_to_interrupts()
