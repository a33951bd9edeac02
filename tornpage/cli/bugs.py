"""`tornpage bugs`."""

from pathlib import Path

import click

from tornpage.cli import options
from tornpage.cli.completing import bug_ids
from tornpage.cli.document import emit, refuse, say
from tornpage.cli.progress import steps_progress

__all__ = ["command"]


@click.group("bugs")
def command() -> None:
    """Planted bugs: the store with one part broken, to prove that the tester notices."""


@command.command("list")
@click.option("--group", type=click.Choice(["durability"]), default=None, help="Those of a named set alone.")
@options.json_option
def list_bugs(group: str | None, as_json: bool) -> None:
    """List them: id, contract number, where it comes from, which strategies may see it, what is wrong.

    \b
    tornpage bugs list
    tornpage bugs list --group durability --json
    """
    from tornpage.outcomes.bugs import list_outcome

    outcome, text = list_outcome(group or "")
    emit(outcome, as_json=as_json, text=text)


@command.command("show")
@click.argument("bug_id", metavar="ID", shell_complete=bug_ids)
@click.option(
    "--scores",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="A directory of `bugs score --out`.",
)
@options.json_option
def show(bug_id: str, scores: Path | None, as_json: bool) -> None:
    """Tell of one bug: the promise it breaks, where it comes from, and how fast it is killed.

    \b
    tornpage bugs show RMQ-B13
    tornpage bugs show lying-flush --scores out/score
    """
    from tornpage.outcomes.bugs import show_outcome
    from tornpage.properties.planted import UnknownBug, bug_of

    try:
        bug = bug_of(bug_id)
    except UnknownBug as error:
        refuse(str(error))
    outcome, text = show_outcome(bug, scores)
    emit(outcome, as_json=as_json, text=text)


@command.command("score")
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=bug_ids)
@click.option("--trials", type=click.IntRange(1, 10_000), default=30, show_default=True, help="Of each with each.")
@click.option(
    "--budget", type=options.Seconds(min=0.1), default=60.0, show_default=True, help="Seconds of a trial at most."
)
@click.option(
    "--clock",
    type=click.Choice(["wall", "cpu"]),
    default="wall",
    show_default=True,
    help="Which seconds: of the wall, or of the processor, on a machine with other work.",
)
@click.option("--strategy", default="", help="Names with commas between (default: all).")
@click.option("--group", type=click.Choice(["durability"]), default=None, help="Bugs of a named set, besides IDS.")
@click.option("--workers", type=click.IntRange(1, 256), default=2, show_default=True, help="Trials at once.")
@click.option(
    "--shrink",
    type=options.Seconds(min=0),
    default=20.0,
    show_default=True,
    help="Seconds to make the shortest failure of a bug small; 0: it is left as it was met.",
)
@options.seed_option
@options.out_option
@options.json_option
def score(
    ids: tuple[str, ...],
    trials: int,
    budget: float,
    clock: str,
    strategy: str,
    group: str | None,
    workers: int,
    shrink: float,
    seed: int,
    out: str | None,
    as_json: bool,
) -> None:
    """Hunt each planted bug with each strategy, many times, and tell how soon it is killed.

    Killed is what breaks a promise that the store keeps without the bug. A trial ends with the kill or with its budget.
    Then the shortest failure of each bug is made small. With --out each trial is kept as it ends, and a second call
    does what is missing; docs/scoreboard.md says what the numbers mean.

    \b
    tornpage bugs score --out out/score                  (all: hours, to be resumed)
    tornpage bugs score lying-flush RMQ-B13 --trials 5
    tornpage bugs score --group durability --trials 3 --budget 20
    """
    from tornpage.outcomes.scoring import score_outcome
    from tornpage.properties.planted import UnknownBug, bugs_named
    from tornpage.properties.score.plan import Plan
    from tornpage.properties.score.strategies import UnknownStrategy, strategies_named
    from tornpage.run.directory import prepare, temporary_directory, write_run

    try:
        bugs, strategies = bugs_named(ids, group or ""), strategies_named(strategy)
    except (UnknownBug, UnknownStrategy) as error:
        refuse(str(error))
    directory = None if out is None else prepare(out)
    temporary_directory("name another one in TMPDIR")  # trials are forked by a process that is spoken to through it
    again = f"tornpage bugs score {' '.join([*ids, *(['--group', group] if group else [])])}".rstrip()
    again += f" --trials {trials} --budget {budget:g} --clock {clock} --strategy {','.join(strategies)}"
    again += f" --shrink {shrink:g} --seed {seed}"
    say(again)  # what runs now, defaults spelled out, before it can fail
    plan = Plan(tuple(bugs), tuple(strategies), trials, budget, "cpu" if clock == "cpu" else "wall", seed)
    outcome, text = score_outcome(plan, workers=workers, shrink_s=shrink, directory=directory, command=again)
    if directory is not None:
        write_run(directory, outcome)
    emit(outcome, as_json=as_json, text=text)


@command.command("holes")
@click.option("--hunt", is_flag=True, help="Hunt each hole that can be planted, one after the other.")
@click.option("--only", default="", help="Ids with commas between, as H1,C3 (default: all).")
@click.option(
    "--seconds", type=options.Seconds(min=0.1), default=60.0, show_default=True, help="For each hunt, with --hunt."
)
@options.seed_option
@options.out_option
@options.json_option
def holes(hunt: bool, only: str, seconds: float, seed: int, out: str | None, as_json: bool) -> None:
    """List the holes of RocketMQ 4.9.3, or hunt them in a store that has them.

    With --out each result is kept as a file, and a hunt that found its hole is not made again.

    \b
    tornpage bugs holes
    tornpage bugs holes --hunt --only H1,C3
    tornpage bugs holes --hunt --out out/holes    (all: up to an hour, to be resumed)
    """
    from tornpage.outcomes.holes import hunt_outcome, list_outcome
    from tornpage.properties.score.holes import UnknownHole, holes_named

    try:
        wanted = holes_named(only)
    except UnknownHole as error:
        refuse(str(error))
    if not hunt:
        if out is not None:
            refuse("--out goes with --hunt")
        outcome, text = list_outcome(wanted)
    else:
        with steps_progress("hunting", total=sum(hole.is_hosted for hole in wanted)) as show_step:
            outcome, text = hunt_outcome(wanted, seconds=seconds, seed=seed, out=out, progress=show_step)
    emit(outcome, as_json=as_json, text=text)
