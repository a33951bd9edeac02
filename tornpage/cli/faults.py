"""`tornpage faults`."""

from pathlib import Path
from typing import Literal

import click

from tornpage.cli import options
from tornpage.cli.document import at_fault, emit, refuse
from tornpage.cli.progress import steps_progress
from tornpage.run.directory import prepare, write_run

__all__ = ["command"]


def _known(ctx: click.Context, _: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names without repeats; refuse one that names no fault."""
    if ctx.resilient_parsing or not names:  # in a shell, or without a name: nothing to check
        return names
    from tornpage.properties.explore.real_faults.run import FAULTS

    for name in names:
        if name not in FAULTS:
            raise click.BadParameter(f"{name!r} is none of {', '.join(FAULTS)}")
    return tuple(dict.fromkeys(names))


@click.group("faults", cls=options.Commands, invoke_without_command=True)
@click.option("--only", metavar="NAME", multiple=True, callback=_known, help="Only this fault; can be repeated.")
@click.option(
    "--list",
    "lists",
    is_flag=True,
    help="Instead, list the I/O fault rules of `explore crashes --fault` and the damages of `explore damage`.",
)
@options.seed_option
@options.out_option
@options.json_option
@click.pass_context
def command(ctx: click.Context, only: tuple[str, ...], lists: bool, seed: int, out: str | None, as_json: bool) -> None:
    """Run the store in real processes on disks that are full, fail, or cut writes short.

    \b
    tornpage faults
    tornpage faults --only full-disk --only sync-eio --seed 7
    tornpage faults --list
    tornpage faults disk --filesystem ext4

    The disks are mounted in processes of the command and disappear with them. A fault that this machine does not allow
    is skipped with a reason; a run without any fault is vacuous. See docs/faults.md.
    """
    if ctx.invoked_subcommand is not None:
        if only or lists or out is not None or as_json:
            refuse(f"give the options after `{ctx.invoked_subcommand}`")
        return
    from tornpage.outcomes.fault_rules import aims_outcome
    from tornpage.properties.contract import HarnessError
    from tornpage.properties.explore.real_faults.run import FAULTS, run_faults
    from tornpage.render.explorations import faults_outcome

    if lists:
        if only or out is not None:
            refuse("--list goes with --json alone")
        outcome, text = aims_outcome()
        emit(outcome, as_json=as_json, text=text)
    if out is not None:
        prepare(out)
    again = " ".join(["tornpage faults", *(f"--only {name}" for name in only), f"--seed {seed}"])
    try:
        with steps_progress("faults", total=len(only or FAULTS)) as show:
            report = run_faults(only, seed=seed, progress=show)
        outcome, text = faults_outcome(report, command=again)
    except HarnessError as error:
        outcome, text = at_fault("faults", error, seed=seed)
    if out is not None:
        write_run(Path(out), outcome)
    emit(outcome, as_json=as_json, text=text)


@command.command("disk")
@click.option(
    "--filesystem",
    type=click.Choice(["ext4", "xfs", "btrfs"]),
    required=True,
    help="The file system to measure. Its mkfs has to be installed.",
)
@click.option(
    "--workloads", type=click.IntRange(min=1), default=50, show_default=True, help="Number of recorded workloads."
)
@click.option(
    "--states", type=click.IntRange(min=1), default=10, show_default=True, help="Power losses of each workload."
)
@options.seed_option
@options.out_option
@options.json_option
def disk(
    filesystem: Literal["ext4", "xfs", "btrfs"],
    workloads: int,
    states: int,
    seed: int,
    out: str | None,
    as_json: bool,
) -> None:
    """Compare what a file system leaves after power losses with the crash model.

    \b
    tornpage faults disk --filesystem ext4
    tornpage faults disk --filesystem btrfs --workloads 200 --states 10 --seed 7 --out out/btrfs

    The file system is made in memory and mounted over a block device that records each write. Small workloads run on
    it. Writes that no flush covers are lost, kept or torn, and the file system is mounted again. Every tree that it
    leaves has to be legal. See docs/disks/measured.md. Without the privilege to mount, the run is skipped with a reason
    and is vacuous.
    """
    from tornpage.properties.contract import HarnessError
    from tornpage.properties.explore.real_faults.file_systems.measure import measure
    from tornpage.render.file_systems import measured_outcome

    if out is not None:
        prepare(out)
    again = f"tornpage faults disk --filesystem {filesystem} --workloads {workloads} --states {states} --seed {seed}"
    try:
        with steps_progress("workloads", total=workloads) as show:
            measured = measure(filesystem, workloads=workloads, states=states, seed=seed, progress=show)
        outcome, text = measured_outcome(measured, command=again)
    except HarnessError as error:
        outcome, text = at_fault("faults disk", error, seed=seed)
    if out is not None:
        write_run(Path(out), outcome)
    emit(outcome, as_json=as_json, text=text)
