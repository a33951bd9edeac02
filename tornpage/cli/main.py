"""The command line: each command parses, calls one function, prints, and leaves with the exit code it earned.

Commands are loaded when they are called, so that `--help` and `doctor` stay quick.
"""

import importlib
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from tornpage import __version__
from tornpage.cli.document import not_printed, say
from tornpage.cli.interrupts import INTERRUPTED, deaf_to_interrupts, leave_interrupted

__all__ = ["cli", "main"]

_COMMANDS = {
    "audit": "check that log and consume queues of stores agree, on Spark",
    "bench": "measure the rooms of this machine",
    "bugs": "list the planted bugs",
    "campaign": "explore over seed ranges in Spark tasks, results as Parquet",
    "check": "compare store and model with Hypothesis machines",
    "completion": "print what makes a shell complete tornpage's commands",
    "doctor": "say what this machine offers",
    "exhaust": "crash every short workload in every way within a bound",
    "explain": "write a page that explains a failing case",
    "explore": "search for broken promises: crashes, kills, restarts, recovery, interleavings",
    "faults": "real faults of real disks: full, failing, cut short",
    "init": "write a skeleton that connects a store of yours",
    "inspect": "look into a store directory, changing nothing",
    "judge": "recover a copy of a crash image and judge it number by number",
    "promote": "keep a failing case as a regression test",
    "prove": "the main job: everything once, thin but real, with a report",
    "replay": "run one failure again, or judge all saved ones again",
    "report": "build the page of a run directory",
    "shrink": "make a failing case small",
    "sim": "simulate what flush and preallocation policies cost and risk",
}


@contextmanager
def _output_may_end() -> Iterator[None]:
    """Let help and version end well when nobody reads on, as behind `| head`, and in one line on a full disk."""
    try:
        yield
    except OSError as error:
        if not _is_stuck():
            raise  # another pipe broke, another disk is full
        raise click.exceptions.Exit(2 if not_printed(error) else 0) from None


def _is_stuck() -> bool:
    """Whether standard output takes nothing more; asked by one more line, as a disk is full only for who writes."""
    try:
        os.write(1, b"\n")
    except OSError:
        return True
    return False


class _LazyGroup(click.Group):
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
        command = importlib.import_module(f"tornpage.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(_COMMANDS.items()))


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tornpage")
def cli() -> None:
    """Prove message stores: a RocketMQ-compatible mmap store, its model, and disasters between them.

    \b
    Exit codes: 0 holds, 1 a guarantee is broken, 2 misuse, 3 vacuous or unknown, 4 the harness is at fault,
    130 interrupted (partial results are kept).
    """


def main() -> None:
    """Run the command line; an interrupt that no command handled ends with 130, misuse with click's 2."""
    try:
        # the stores that commands open are under test: what they warn of is provoked, and reported as findings
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
        with suppress(OSError):  # whoever has left does not want to know
            error.show()
        sys.exit(error.exit_code)
    finally:
        deaf_to_interrupts()
