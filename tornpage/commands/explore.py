"""`tornpage explore`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tornpage import options
from tornpage.aiming import fault_option
from tornpage.document import Outcome, emit, refuse
from tornpage.history import append_run, prepare_history
from tornpage.progress import shrinking_lines, states_progress
from tornpage.run_directory import prepare, write_run
from tornpage.targets import answer_option, target_campaign_outcome, target_option, usable_settings

if TYPE_CHECKING:
    from properties.cases.case import AimFault
    from properties.exploring.mix import Strategy
    from properties.kills.child import KillMode
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
@target_option
@answer_option
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
def command(
    states: int | None,
    seconds: float | None,
    kills: int | None,
    kill_at: "KillMode | None",
    restarts: int | None,
    recovery: bool,
    interleavings: bool,
    directory: str | None,
    file_bytes: int | None,
    faults: "tuple[AimFault, ...]",
    workers: int | None,
    strategy: "Strategy | None",
    target: str | None,
    answer_seconds: float | None,
    failures: int | None,
    states_per_shard: int | None,
    disk: "Disk",
    bug: str,
    seed: int,
    out: str | None,
    history: str | None,
    as_json: bool,
) -> None:
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
    if target is not None:
        others = (kills, kill_at, restarts, directory, file_bytes, workers, strategy, states_per_shard, history)
        if faults or recovery or interleavings or any(each is not None for each in others):
            refuse("--target goes with --states, --seconds, --failures, --disk, --bug, --seed, --out and --json alone")
        if out is not None:
            prepare(out)
        settings = usable_settings(target, bug=bug, disk=disk, answer_seconds=answer_seconds)
        outcome, text = target_campaign_outcome(
            settings, seed=seed, states=states, seconds=seconds, failures_max=failures, out=out
        )
        if out is not None:
            write_run(Path(out), outcome)
        emit(outcome, as_json=as_json, text=text)
    if answer_seconds is not None:
        refuse("--answer-seconds goes with --target")
    if history is not None and (interleavings or recovery or kills is not None or restarts is not None):
        refuse("--history goes with crash campaigns: not with --kills, --restarts, --recovery or --interleavings")
    prepare_history(history)
    started = datetime.now(UTC)
    if faults and (interleavings or recovery or kills is not None):
        refuse("--fault goes with crash campaigns: not with --kills, --recovery or --interleavings")
    of_campaigns = (strategy, failures, states_per_shard)
    if (interleavings or recovery or kills or restarts) and any(each is not None for each in of_campaigns):
        refuse("--strategy, --failures and --states-per-shard go with crash campaigns alone")
    if (interleavings or recovery or restarts) and workers is not None:
        refuse("--workers goes with crash campaigns and --kills")
    if interleavings and (recovery or any(each is not None for each in (kills, directory, file_bytes))):
        refuse("--interleavings goes with --states, --seconds, --bug, --seed, --out and --json alone")
    if recovery and any(each is not None for each in (states, seconds, kills, directory, file_bytes)):
        refuse("--recovery crashes a fixed list of stores; give it with --disk, --bug, --seed, --out and --json alone")
    if kill_at is not None and kills is None:
        refuse("--kill-at goes with --kills")
    if restarts is not None:
        if recovery or interleavings or any(each is not None for each in (states, seconds, kills)):
            refuse("--restarts goes with --directory, --file-bytes, --bug, --seed, --out and --json alone")
        from tornpage.restarts import restart_outcome

        outcome, text = restart_outcome(
            restarts, seed=seed, directory=directory, file_bytes=file_bytes or 4096, bug=bug
        )
    elif kills is not None:
        from tornpage.kills import kill_outcome

        outcome, text = kill_outcome(
            kills,
            seed=seed,
            directory=directory,
            file_bytes=file_bytes or 4096,
            bug=bug,
            mode=kill_at or "step",
            workers=workers or 1,
        )
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
            refuse("--directory goes with --kills and --restarts: recorded disks are in memory")
        if out is not None:
            prepare(out)
        outcome, text = campaign_outcome(
            states,
            seconds,
            file_bytes=file_bytes or 16384,
            disk=disk,
            bug=bug,
            seed=seed,
            out=out,
            strategy=strategy or "random",
            workers=workers or 1,
            failures_max=failures,
            shard_states=states_per_shard,
            faults=faults,
        )
    if out is not None:
        write_run(Path(out), outcome)
    append_run(history, outcome, started=started)
    emit(outcome, as_json=as_json, text=text)


def campaign_outcome(
    states: int | None,
    seconds: float | None,
    *,
    file_bytes: int,
    disk: str,
    bug: str,
    seed: int,
    out: str | None,
    faults: "tuple[AimFault, ...]" = (),
    strategy: "Strategy" = "random",
    workers: int = 1,
    failures_max: int | None = None,
    shard_states: int | None = None,
) -> tuple[Outcome, str]:
    """Run a campaign, faults being aimed at the disk; return its outcome and its text."""
    from properties.cases.case import Settings
    from properties.exploring.campaign import Plan, run_campaign
    from properties.exploring.shards import FAILURES_MAX, SHARD_STATES
    from properties.recorder.dirty import choose_tracker
    from tornpage.campaigns import command_of, outcome_of, text_of

    if states is None and seconds is None:
        seconds = 10.0
    settings = Settings(file_bytes=file_bytes, disk=disk, bug=bug)  # type: ignore[arg-type]
    plan = Plan(
        settings,
        seed,
        states,
        seconds,
        strategy,
        workers,
        failures_max or FAILURES_MAX,
        shard_states or SHARD_STATES,
        faults,
    )
    again = command_of(plan)
    click.echo(again, err=True)  # what runs now, defaults spelled out, before it can fail
    unit = "seconds" if states is None else "states"
    with (
        choose_tracker("auto") as tracker,
        states_progress("exploring", total=states or seconds, unit=unit) as show,
    ):
        result = run_campaign(plan, tracker=tracker, progress=show, making_small=shrinking_lines())
    return outcome_of(result, plan=plan, out=out, command=again), text_of(result)
