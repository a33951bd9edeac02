"""`tornpage explore`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tornpage import options
from tornpage.document import Outcome, emit, refuse
from tornpage.run_directory import prepare, write_run

if TYPE_CHECKING:
    from properties.recorder.disk import Disk

__all__ = ["campaign_outcome", "command"]


@click.command("explore")
@click.option(
    "--states",
    type=click.IntRange(min=1),
    default=None,
    help="Stop after this many counted crash states, or interleavings.",
)
@click.option("--seconds", type=click.FloatRange(min=0.1), default=None, help="Stop after this time (default 10).")
@click.option(
    "--kills", type=click.IntRange(min=1), default=None, help="Instead: kill this many real writers by SIGKILL."
)
@click.option("--recovery", is_flag=True, help="Instead: crash recovery itself, of many shapes of store, everywhere.")
@click.option("--interleavings", is_flag=True, help="Instead: let the threads of a store meet in every order drawn.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, exists=True),
    default=None,
    help="Where --kills works (default: in memory).",
)
@click.option(
    "--file-bytes", type=click.IntRange(1024, 1 << 20), default=None, help="Log file size (16384; 4096 with --kills)."
)
@options.disk_option
@options.bug_option
@options.seed_option
@options.out_option
@options.json_option
def command(
    states: int | None,
    seconds: float | None,
    kills: int | None,
    recovery: bool,
    interleavings: bool,
    directory: str | None,
    file_bytes: int | None,
    disk: "Disk",
    bug: str,
    seed: int,
    out: str | None,
    as_json: bool,
) -> None:
    """Record histories of the store, crash them at every event, recover, and judge.

    \b
    tornpage explore --seconds 30
    tornpage explore --states 5000 --seed 7 --json
    tornpage explore --bug lying-flush        (must be broken)
    tornpage explore --kills 200              (real processes, SIGKILL at random steps)
    tornpage explore --recovery               (recovery itself, at each of its file operations)
    tornpage explore --interleavings --states 2000   (puts, dispatch, flushes, deletions and reads at once)
    """
    if interleavings and (recovery or any(each is not None for each in (kills, directory, file_bytes))):
        refuse("--interleavings goes with --states, --seconds, --bug, --seed, --out and --json alone")
    if recovery and any(each is not None for each in (states, seconds, kills, directory, file_bytes)):
        refuse("--recovery crashes a fixed list of stores; give it with --disk, --bug, --seed, --out and --json alone")
    if kills is not None:
        from tornpage.kills import kill_outcome

        outcome, text = kill_outcome(kills, seed=seed, directory=directory, file_bytes=file_bytes or 4096, bug=bug)
    elif interleavings:
        from tornpage.interleavings import interleaving_outcome

        if out is not None:
            prepare(out)
        outcome, text = interleaving_outcome(states, seconds, bug=bug, seed=seed, out=out)
    elif recovery:
        from tornpage.recovery_crashes import recovery_outcome

        if out is not None:
            prepare(out)
        outcome, text = recovery_outcome(bug=bug, disk=disk, seed=seed)
    else:
        if directory is not None:
            refuse("--directory goes with --kills: recorded disks are in memory")
        if out is not None:
            prepare(out)
        outcome, text = campaign_outcome(
            states, seconds, file_bytes=file_bytes or 16384, disk=disk, bug=bug, seed=seed, out=out
        )
    if out is not None:
        write_run(Path(out), outcome)
    emit(outcome, as_json=as_json, text=text)


def campaign_outcome(
    states: int | None, seconds: float | None, *, file_bytes: int, disk: str, bug: str, seed: int, out: str | None
) -> tuple[Outcome, str]:
    """Run a campaign; return its outcome and its text."""
    from properties.campaign import run_campaign
    from properties.case import Settings
    from properties.recorder.dirty import choose_tracker
    from properties.verdict import HarnessError

    if states is None and seconds is None:
        seconds = 10.0
    settings = Settings(file_bytes=file_bytes, disk=disk, bug=bug)  # type: ignore[arg-type]
    unit = "seconds" if states is None else "states"
    until = f"--states {states}" if states is not None else f"--seconds {seconds:g}"
    planted = f" --bug {bug}" if bug else ""
    again = f"tornpage explore {until} --seed {seed} --disk {disk} --file-bytes {file_bytes}{planted}"
    click.echo(again, err=True)  # what runs now, defaults spelled out, before it can fail
    try:
        with (
            choose_tracker("auto") as tracker,
            options.states_progress("exploring", total=states or seconds, unit=unit) as show,
        ):
            result = run_campaign(settings, seed=seed, states=states, seconds=seconds, tracker=tracker, progress=show)
    except HarnessError as error:
        finding = {"code": "harness", "severity": "harness", "sentence": str(error)}
        return Outcome("explore", "harness", {}, findings=[finding], seed=seed), f"the harness is at fault: {error}"
    from tornpage.campaigns import outcome_of, text_of

    return outcome_of(result, seed=seed, out=out, command=again), text_of(result)
