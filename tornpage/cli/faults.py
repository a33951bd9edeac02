"""`tornpage faults`."""

from pathlib import Path

import click

from tornpage.cli import options
from tornpage.cli.document import at_fault, emit, refuse
from tornpage.cli.progress import steps_progress
from tornpage.run.directory import prepare, write_run

__all__ = ["command"]


def _known(ctx: click.Context, _: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names without repeats; refuse one that names no fault."""
    if ctx.resilient_parsing:  # completion in a shell
        return names
    from tornpage.properties.explore.real_faults.run import FAULTS

    for name in names:
        if name not in FAULTS:
            raise click.BadParameter(f"{name!r} is none of {', '.join(FAULTS)}")
    return tuple(dict.fromkeys(names))


@click.command("faults")
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
def command(only: tuple[str, ...], lists: bool, seed: int, out: str | None, as_json: bool) -> None:
    """Run the store in real processes on disks that are full, fail, or cut writes short.

    \b
    tornpage faults
    tornpage faults --only full-disk --only sync-eio --seed 7
    tornpage faults --list

    The disks are mounted in processes of the command and disappear with them. A fault that this machine does not allow
    is skipped with a reason; a run without any fault is vacuous. See docs/faults.md.
    """
    from tornpage.cli.aiming import aims_outcome
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
