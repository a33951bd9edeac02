"""`tornpage check`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, at_fault, emit, refuse
from tornpage.cli.progress import counted_progress, shrinking_lines
from tornpage.outcomes.targets import fixed_settings, usable_settings
from tornpage.run.directory import prepare, write_run

if TYPE_CHECKING:
    from tornpage.properties.program.case import Settings

__all__ = ["check_outcome", "command"]

HUNT_EXAMPLES = 10_000
"""Most examples of a search for a planted bug."""


@click.command("check")
@click.option(
    "--examples",
    type=click.IntRange(min=1),
    default=None,
    help=f"Runs of the machines (default: by profile; with --bug up to {HUNT_EXAMPLES:,}, until it is found).",
)
@click.option(
    "--machine",
    type=click.Choice(["all", "commit-log", "put", "flush", "queue", "retention", "delay", "consumer", "failing-disk"]),
    default="all",
    show_default=True,
    help="The machine; with all they take turns.",
)
@click.option(
    "--profile", type=click.Choice(["quick", "deep"]), default="quick", show_default=True, help="Number of examples."
)
@options.target_option
@options.answer_option
@click.option(
    "--disk",
    type=click.Choice([disk for disk in options.DISKS if disk != "kill"]),
    default=None,
    help="With --target: what a crash may leave (posix-strict).",
)
@options.start_option
@options.bug_option
@options.seed_option
@options.out_option
@options.json_option
def command(
    examples: int | None,
    machine: str,
    profile: str,
    target: str | None,
    answer_seconds: float | None,
    disk: str | None,
    start: str,
    bug: str,
    seed: int,
    out: str | None,
    as_json: bool,
) -> None:
    """Run store and model in lockstep with Hypothesis machines, and compare every answer.

    \b
    tornpage check --seed 3
    tornpage check --machine put --bug RMQ-B76   (must be broken)
    tornpage check --target mymodule:open_store  (your store: docs/test-your-store.md)
    tornpage check --target 'cmd:./mystore --dir {dir}'
    """
    if out is not None:
        prepare(out)
    if target is None:
        if answer_seconds is not None or disk is not None:
            refuse("--answer-seconds and --disk go with --target")
        if start != "open":
            refuse("--from goes with --target")
        machines = () if machine == "all" else (machine,)
        outcome, text = check_outcome(examples, profile=profile, bug=bug, seed=seed, out=out, machines=machines)
    else:
        if machine != "all":
            refuse("--machine applies to tornpage's store; a target has its own machine")
        settings = usable_settings(target, bug=bug, disk=disk, answer_seconds=answer_seconds)
        outcome, text = check_outcome(
            examples,
            profile=profile,
            bug=bug,
            seed=seed,
            out=out,
            machines=("target",),
            settings=settings,
            from_first_answer=start == "first-answer",
        )
    if out is not None:
        write_run(Path(out), outcome)
    emit(outcome, as_json=as_json, text=text)


def check_outcome(
    examples: int | None,
    *,
    profile: str,
    bug: str,
    seed: int,
    out: str | None,
    machines: tuple[str, ...] = (),
    settings: "Settings | None" = None,
    from_first_answer: bool = False,
) -> tuple[Outcome, str]:
    """Run some machines or all; return their outcome and its text.

    `settings` are the settings of a target, None for tornpage's store. `from_first_answer` leaves out crashes inside
    its very first open.
    """
    from functools import partial
    from time import perf_counter

    from tornpage.properties.contract import HarnessError
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.foreign.campaign import SHRINK_SECONDS
    from tornpage.properties.explore.machines.check import MACHINES, PROFILES, TARGET_PROFILES, check
    from tornpage.render.explorations import machines_outcome

    count, steps = (TARGET_PROFILES if settings else PROFILES)[profile]
    count = examples or (HUNT_EXAMPLES if bug else count)
    started = perf_counter()
    try:
        with (
            choose_tracker("auto") as tracker,
            counted_progress("checking", total=count, unit="examples") as show,
        ):
            result = check(
                bug=bug,
                examples=count,
                steps=steps,
                start_seed=seed,
                tracker=tracker,
                machines=machines or tuple(MACHINES),
                progress=lambda done: show(done, ""),
                making_small=partial(shrinking_lines(), 1),
                shrink_seconds=SHRINK_SECONDS if settings else None,
                fixed=fixed_settings(settings) if settings else None,
                from_first_answer=from_first_answer,
            )
    except HarnessError as error:
        return at_fault("check", error, seed=seed)
    spent = perf_counter() - started
    return machines_outcome(result, asked=count, seconds=spent, seed=seed, out=out, settings=settings)
