"""`tornpage exhaust`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tornpage import options
from tornpage.document import emit, refuse
from tornpage.run_directory import write_run

if TYPE_CHECKING:
    from properties.disk.disk import Disk

__all__ = ["command"]


@click.command("exhaust")
@click.option("--ops", type=click.IntRange(1, 8), default=2, show_default=True, help="Most operations of a workload.")
@click.option(
    "--facts",
    type=click.IntRange(0, 8),
    default=1,
    show_default=True,
    help="So many facts differ at most from nothing, or from everything, that survives.",
)
@click.option(
    "--mode",
    type=click.Choice(["async", "sync", "pool"]),
    default="async",
    show_default=True,
    help="How the store makes puts durable.",
)
@click.option("--letters", default="", help="Of the alphabet only these, with commas between.")
@click.option(
    "--recovery", type=click.IntRange(0, 8), default=None, help="Crash each recovery too, within so many facts."
)
@click.option(
    "--file-bytes", type=click.IntRange(1024, 4096), default=2048, show_default=True, help="Size of a log file."
)
@click.option(
    "--check-ops",
    type=click.IntRange(0, 8),
    default=1,
    show_default=True,
    help="Check by brute force up to here.",
)
@click.option("--check-facts", type=click.IntRange(0, 8), default=1, show_default=True, help="The same, in facts.")
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes.")
@click.option(
    "--seconds", type=options.Seconds(min=0.1), default=None, help="Stop after this time; claim what was finished."
)
@options.disk_option
@options.bug_option
@options.out_option
@options.json_option
def command(
    ops: int,
    facts: int,
    mode: str,
    letters: str,
    recovery: int | None,
    file_bytes: int,
    check_ops: int,
    check_facts: int,
    workers: int,
    seconds: float | None,
    disk: "Disk",
    bug: str,
    out: str | None,
    as_json: bool,
) -> None:
    """Crash every short workload at every event in every way within a bound, recover, and judge.

    \b
    tornpage exhaust --ops 2 --facts 1
    tornpage exhaust --ops 3 --facts 1 --workers 2 --out out/exhaust    (goes on where it was stopped)
    tornpage exhaust --ops 1 --facts 2 --recovery 1 --disk journal
    tornpage exhaust --bug lying-flush        (must be broken)
    """
    from properties.explore.exhaustive.explored import Plan
    from tornpage.exhausting import exhaust_outcome

    try:
        plan = Plan(
            ops,
            facts,
            mode=mode,  # type: ignore[arg-type]
            disk=disk,
            bug=bug,
            letter_names=tuple(filter(None, letters.split(","))),
            file_bytes=file_bytes,
            recovery_facts=-1 if recovery is None else recovery,
            check_ops=check_ops,
            check_facts=check_facts,
        )
    except ValueError as error:
        refuse(str(error))
    outcome, text = exhaust_outcome(plan, workers=workers, seconds=seconds, out=out)
    if out is not None:
        write_run(Path(out), outcome)
    emit(outcome, as_json=as_json, text=text)
