"""`tornpage explore`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from tornpage.cli import options
from tornpage.cli.aiming import fault_option
from tornpage.cli.document import emit
from tornpage.outcomes.exploring import Request, asked_mode
from tornpage.run.directory import prepare, write_run
from tornpage.run.history import append_run, prepare_history

__all__ = ["command"]


@click.command("explore")
@click.option(
    "--states",
    type=click.IntRange(min=1),
    default=None,
    help="Stop after this many counted crash states, or interleavings.",
)
@click.option("--seconds", type=options.Seconds(min=0.1), default=None, help="Stop after this time (default 10).")
@click.option(
    "--kills", type=click.IntRange(min=1), default=None, help="Instead: kill this many real writers by SIGKILL."
)
@click.option(
    "--kill-at",
    type=click.Choice(("step", "bytecode")),
    default=None,
    help="Where --kills strikes: as a file operation begins (default), or a bytecode of the store.",
)
@click.option(
    "--restarts", type=click.IntRange(min=1), default=None, help="Instead: fresh processes hold a store in turn."
)
@click.option("--recovery", is_flag=True, help="Instead: crash recovery itself, of many shapes of store, everywhere.")
@click.option("--interleavings", is_flag=True, help="Instead: let the threads of a store meet in every order drawn.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, exists=True),
    default=None,
    help="Where --kills and --restarts work (default: in memory).",
)
@click.option(
    "--file-bytes", type=click.IntRange(1024, 1 << 20), default=None, help="Log file size (16384; 4096 with --kills)."
)
@fault_option
@click.option(
    "--workers", type=click.IntRange(1, 1024), default=None, help="Processes that explore at the same time (1)."
)
@options.strategy_option
@options.target_option
@options.answer_option
@click.option(
    "--failures", type=click.IntRange(min=1), default=None, help="Go on until so many different failures (3)."
)
@click.option(
    "--states-per-shard", type=click.IntRange(min=1), default=None, help="Counted crash states of a shard (1000)."
)
@options.disk_option
@options.bug_option
@options.seed_option
@options.out_option
@options.history_option
@options.json_option
@click.pass_context
def command(context: click.Context, /, out: str | None, history: str | None, as_json: bool, **asked: Any) -> None:
    """Record histories of the store, crash them at every event, recover, and judge.

    \b
    tornpage explore --seconds 30
    tornpage explore --states 5000 --seed 7 --json
    tornpage explore --states 20000 --workers 2 --strategy swarm
    tornpage explore --bug lying-flush        (must be broken)
    tornpage explore --fault 'sync-lost: kind=log and nth=3' --fault no-space
    tornpage explore --seconds 60 --history RUNS     (then: tornpage report --history RUNS)
    tornpage explore --kills 200              (real processes, SIGKILL at random steps)
    tornpage explore --kills 2000 --workers 2 --kill-at bytecode
    tornpage explore --restarts 5             (fresh processes: one is refused, one killed, one serves what was left)
    tornpage explore --recovery               (recovery itself, at each of its file operations)
    tornpage explore --interleavings --states 2000   (puts, dispatch, flushes, deletions and reads at once)
    tornpage explore --target 'cmd:./mystore --dir {dir}'   (a store of yours: docs/test-your-store.md)
    """
    mode = asked_mode(context)
    request = Request(out=out, **asked)
    prepare_history(history)
    started = datetime.now(UTC)
    if out is not None:
        prepare(out)
    outcome, text = mode.run(request)
    if out is not None:
        write_run(Path(out), outcome)
    append_run(history, outcome, started=started)
    emit(outcome, as_json=as_json, text=text)
