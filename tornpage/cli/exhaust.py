"""`tornpage exhaust`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, at_fault, emit, refuse, say
from tornpage.cli.progress import states_progress
from tornpage.run.directory import prepare, write_run

if TYPE_CHECKING:
    from tornpage.peers.rocketmq.store import Mode
    from tornpage.properties.explore.exhaustive.explored import Plan
    from tornpage.properties.program.case import Disk

__all__ = ["command"]


@click.command("exhaust")
@click.option("--ops", type=click.IntRange(1, 8), default=2, show_default=True, help="Largest number of operations.")
@click.option(
    "--facts",
    type=click.IntRange(0, 8),
    default=1,
    show_default=True,
    help="Crash states in which all (or none) of the unsynced changes survive, except up to this many.",
)
@click.option(
    "--mode",
    type=click.Choice(["async", "sync", "pool"]),
    default="async",
    show_default=True,
    help="How the store makes puts durable.",
)
@click.option("--letters", default="", metavar="NAMES", help="Only these operations, separated by commas.")
@click.option(
    "--recovery", type=click.IntRange(0, 8), default=None, help="Crash each recovery too, with so many facts."
)
@click.option(
    "--file-bytes",
    metavar="BYTES",
    type=click.IntRange(1024, 4096),
    default=2048,
    show_default=True,
    help="Size of a log file.",
)
@click.option(
    "--check-ops",
    type=click.IntRange(0, 8),
    default=1,
    show_default=True,
    help="Brute-force check: number of operations.",
)
@click.option(
    "--check-facts", type=click.IntRange(0, 8), default=1, show_default=True, help="Brute-force check: facts."
)
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Number of processes.")
@click.option(
    "--seconds",
    type=options.Seconds(min=0.1),
    default=None,
    help="Stop after this time, and claim only finished lengths.",
)
@click.option(
    "--peer",
    metavar="NAME",
    default=None,
    help="Let another implementation open the crash images too: rocketmq:4.9.3 (`tornpage peer list`).",
)
@options.peer_mode_option
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
    peer: str | None,
    peer_mode: "Mode | None",
    disk: "Disk",
    bug: str,
    out: str | None,
    as_json: bool,
) -> None:
    """Crash every short workload at every crash point in every way within a bound, and judge.

    A fact is an unsynced change that a crash may lose: of a page, a size or a name (docs/exhaust.md).

    \b
    tornpage exhaust --ops 2 --facts 1
    tornpage exhaust --ops 3 --facts 1 --workers 2 --out out/exhaust    (continues where it was stopped)
    tornpage exhaust --ops 1 --facts 2 --recovery 1 --disk journal
    tornpage exhaust --bug lying-flush        (must be broken)
    tornpage exhaust --ops 2 --peer rocketmq:4.9.3 --out out/peer    (docs/peers.md)
    """
    from tornpage.outcomes.peers import exhaust_peer_outcome
    from tornpage.properties.explore.exhaustive.explored import Plan

    try:
        plan = Plan(
            ops,
            facts,
            mode=mode,  # type: ignore[arg-type]
            disk=disk,
            bug=bug,
            operation_names=tuple(filter(None, letters.split(","))),
            file_bytes=file_bytes,
            recovery_facts=-1 if recovery is None else recovery,
            check_ops=check_ops,
            check_facts=check_facts,
        )
    except ValueError as error:
        refuse(str(error))
    if peer_mode is not None and peer is None:
        refuse("--peer-mode is for runs with a peer; give --peer too")
    if peer is not None:
        if recovery is not None:
            refuse("--recovery is not for runs with --peer; leave it out")
        outcome, text = exhaust_peer_outcome(
            plan, peer, mode=peer_mode or "light", workers=workers, seconds=seconds, out=out
        )
    else:
        outcome, text = _run(plan, workers=workers, seconds=seconds, out=out)
    if out is not None:
        write_run(Path(out), outcome)
    emit(outcome, as_json=as_json, text=text)


def _run(plan: "Plan", *, workers: int, seconds: float | None, out: str | None) -> tuple[Outcome, str]:
    """Run a plan; return its outcome and its text. Finished workloads are kept in `out`."""
    from tornpage.properties.contract import HarnessError
    from tornpage.properties.explore.exhaustive.resume import OtherPlan, ResumeFile
    from tornpage.properties.explore.exhaustive.run import run_exhaust
    from tornpage.render.explorations import exhaust_outcome

    say(_command(plan, workers=workers, seconds=seconds))
    try:
        kept = None if out is None else ResumeFile(prepare(out), plan)
        with states_progress("exhausting", total=seconds, unit="seconds") as show:
            result = run_exhaust(
                plan,
                workers=workers,
                seconds=seconds,
                kept=kept,
                progress=lambda states, spent: show(states // 64 * 64, spent),
            )
    except HarnessError as error:
        return at_fault("exhaust", error)
    except OtherPlan as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot write results to {error.filename or out}: {error.strerror}; name another --out directory")
    return exhaust_outcome(result, out=out)


def _command(plan: "Plan", *, workers: int, seconds: float | None) -> str:
    words = [f"tornpage exhaust --ops {plan.ops} --facts {plan.facts} --disk {plan.disk} --mode {plan.mode}"]
    words += [f"--file-bytes {plan.file_bytes} --check-ops {plan.check_ops} --check-facts {plan.check_facts}"]
    words += [f"--letters {','.join(plan.operation_names)}"] if plan.operation_names else []
    words += [f"--recovery {plan.recovery_facts}"] if plan.recovery_facts >= 0 else []
    words += [f"--bug {plan.bug}"] if plan.bug else []
    words += [f"--workers {workers}"] if workers > 1 else []
    words += [f"--seconds {seconds:g}"] if seconds is not None else []
    return " ".join(words)
