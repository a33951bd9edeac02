"""`tornpage bugs`."""

from pathlib import Path

import click

from tornpage.cli import options
from tornpage.cli.completing import bug_ids
from tornpage.cli.document import emit, refuse, say
from tornpage.cli.progress import steps_progress

__all__ = ["command"]


@click.group("bugs", cls=options.Commands)
def command() -> None:
    """Planted bugs: stores with one broken part, which the tests have to catch."""


@command.command("list")
@click.option("--group", type=click.Choice(["durability"]), default=None, help="Only bugs of this set.")
@options.json_option
def list_bugs(group: str | None, as_json: bool) -> None:
    """List planted bugs with contract number, origin, strategies and what is wrong.

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
    """Show one bug: broken guarantee, origin, minimal reproducer, time to the kill.

    \b
    tornpage bugs show RMQ-B13
    tornpage bugs show lying-flush --scores out/score
    """
    from tornpage.properties.bug_ids import UnknownBug, require_bugs

    try:
        require_bugs([bug_id])
    except UnknownBug as error:
        refuse(str(error))
    from tornpage.outcomes.bugs import show_outcome
    from tornpage.properties.planted import bug_of

    outcome, text = show_outcome(bug_of(bug_id), scores)
    emit(outcome, as_json=as_json, text=text)


@command.command("score")
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=bug_ids)
@click.option(
    "--trials",
    type=click.IntRange(1, 10_000),
    default=30,
    show_default=True,
    help="Trials of each bug with each strategy.",
)
@click.option(
    "--budget", type=options.Seconds(min=0.1), default=60.0, show_default=True, help="Longest time of a trial."
)
@click.option(
    "--clock",
    type=click.Choice(["wall", "cpu"]),
    default="wall",
    show_default=True,
    help="Clock for the seconds: wall clock, or processor time on a machine with other work.",
)
@click.option("--strategy", default="", metavar="NAMES", help="Strategies, separated by commas (default: all).")
@click.option("--group", type=click.Choice(["durability"]), default=None, help="Also the bugs of this set.")
@click.option("--workers", type=click.IntRange(1, 256), default=2, show_default=True, help="Trials in parallel.")
@click.option(
    "--shrink",
    type=options.Seconds(min=0),
    default=20.0,
    show_default=True,
    help="Time to shrink the shortest failure of a bug; 0: no shrinking.",
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
    """Measure how soon each strategy kills each planted bug, in many trials.

    A bug is killed when it breaks a guarantee that the store keeps without the bug. A trial ends with the kill or with
    its budget. Then the shortest failure of each bug is shrunk. With --out each finished trial is kept, and a second
    call runs the missing ones. docs/scoreboard.md explains the numbers.

    \b
    tornpage bugs score --out out/score                  (all: hours; can be resumed)
    tornpage bugs score lying-flush RMQ-B13 --trials 5
    tornpage bugs score --group durability --trials 3 --budget 20
    """
    from tornpage.properties.bug_ids import UnknownBug, require_bugs

    try:
        require_bugs(ids)
    except UnknownBug as error:
        refuse(str(error))
    from tornpage.outcomes.scoring import score_outcome
    from tornpage.properties.planted import bugs_named
    from tornpage.properties.score.plan import Plan
    from tornpage.properties.score.strategies import UnknownStrategy, strategies_named
    from tornpage.run.directory import prepare, temporary_directory, write_run

    try:
        bugs, strategies = bugs_named(ids, group or ""), strategies_named(strategy)
    except UnknownStrategy as error:
        refuse(str(error))
    directory = None if out is None else prepare(out)
    temporary_directory("name another one in TMPDIR")  # it has the socket of the process that forks trials
    again = f"tornpage bugs score {' '.join([*ids, *(['--group', group] if group else [])])}".rstrip()
    again += f" --trials {trials} --budget {budget:g} --clock {clock} --strategy {','.join(strategies)}"
    again += f" --shrink {shrink:g} --seed {seed}"
    say(again)  # the command with all defaults, before it can fail
    plan = Plan(tuple(bugs), tuple(strategies), trials, budget, "cpu" if clock == "cpu" else "wall", seed)
    outcome, text = score_outcome(plan, workers=workers, shrink_s=shrink, directory=directory, command=again)
    if directory is not None:
        write_run(directory, outcome)
    emit(outcome, as_json=as_json, text=text)


@command.command("mutate")
@click.argument("ids", nargs=-1, metavar="[MUTANT]...")
@click.option("--list", "only_list", is_flag=True, help="List the mutants and run nothing.")
@click.option(
    "--sample", type=click.IntRange(1, 100_000), default=400, show_default=True, help="Mutants drawn by --seed."
)
@click.option("--package", default="", metavar="NAMES", help="Only mutants of these packages, separated by commas.")
@click.option("--operator", default="", metavar="NAMES", help="Only mutants by these operators, separated by commas.")
@click.option(
    "--budget",
    type=options.Seconds(min=0.1),
    default=60.0,
    show_default=True,
    help="Longest processor time of one strategy on one mutant.",
)
@click.option("--strategy", default="", metavar="NAMES", help="Strategies, separated by commas (default: all).")
@click.option(
    "--everywhere",
    type=click.IntRange(0, 100_000),
    default=0,
    show_default=True,
    metavar="N",
    help="Try the first N mutants with every strategy, to compare the strategies.",
)
@click.option(
    "--reach",
    "reach_s",
    type=options.Seconds(min=0.0),
    default=30.0,
    show_default=True,
    help="Processor time of each strategy on the original store, to note the statements that it runs.",
)
@click.option(
    "--unit-tests",
    type=click.IntRange(0, 100_000),
    default=0,
    show_default=True,
    metavar="N",
    help="Run the unit tests of the changed package on the first N mutants.",
)
@click.option("--workers", type=click.IntRange(1, 256), default=2, show_default=True, help="Trials in parallel.")
@options.seed_option
@options.out_option
@options.json_option
def mutate(
    ids: tuple[str, ...],
    only_list: bool,
    sample: int,
    package: str,
    operator: str,
    budget: float,
    strategy: str,
    everywhere: int,
    reach_s: float,
    unit_tests: int,
    workers: int,
    seed: int,
    out: str | None,
    as_json: bool,
) -> None:
    """Change the store by machine, and measure which changes the strategies find.

    A mutant is the store with one change that no person chose. A sample is drawn in proportion to the packages of the
    store. Each mutant is tried with one strategy after the other until one kills it. Survivors are compared with the
    original in fixed runs. A survivor without a difference is presumed equivalent, and listed. With --out each
    finished trial is kept, and a second call runs the missing ones. docs/tester/mutants.md explains the numbers.

    \b
    tornpage bugs mutate --list --package recovery,log
    tornpage bugs mutate --sample 400 --seed 1 --out out/mutants        (hours; can be resumed)
    tornpage bugs mutate dispatch.derived:Derived.flush:removed-sync:1 --budget 20
    """
    from tornpage.outcomes.mutating import listed_outcome, mutate_outcome
    from tornpage.properties.mutation.campaign import MutationPlan
    from tornpage.properties.mutation.edits import OPERATORS
    from tornpage.properties.mutation.mutants import UnknownMutant, all_mutants, draw_sample, is_among, mutant_of
    from tornpage.properties.mutation.unit_tests import unit_test_folder
    from tornpage.properties.score.strategies import UnknownStrategy, strategies_named
    from tornpage.run.directory import prepare, temporary_directory, write_run

    try:
        strategies, chosen = strategies_named(strategy), tuple(mutant_of(each) for each in ids)
    except (UnknownMutant, UnknownStrategy) as error:
        refuse(str(error))
    operators, packages = options.names_of(operator), options.names_of(package)
    for each in operators:
        if each not in OPERATORS:
            refuse(f"no operator {each!r}; there are: {', '.join(OPERATORS)}")
    known = sorted({mutant.package for mutant in all_mutants()}) if packages else []
    for each in packages:
        if each not in known:
            refuse(f"no package {each!r} with mutants; there are: {', '.join(known)}")
    if ids and (packages or operators):
        refuse("--package and --operator choose a sample; give them without ids")
    if unit_tests and unit_test_folder() is None:
        refuse("--unit-tests needs a checkout of tornpage with the folder tests/impl")
    if only_list:
        listed = chosen or tuple(each for each in all_mutants() if is_among(each, packages, operators))
        outcome, text = listed_outcome(listed)
        emit(outcome, as_json=as_json, text=text)
    directory = None if out is None else prepare(out)
    temporary_directory("name another one in TMPDIR")  # it has the socket of the process that forks trials
    named = " ".join(ids) if ids else f"--sample {sample}"
    again = f"tornpage bugs mutate {named}"
    if packages:
        again += f" --package {','.join(packages)}"
    if operators:
        again += f" --operator {','.join(operators)!r}"
    again += f" --budget {budget:g} --strategy {','.join(strategies)}"
    again += f" --everywhere {everywhere} --reach {reach_s:g} --unit-tests {unit_tests} --seed {seed}"
    say(again)  # the command with all defaults, before it can fail
    mutants = chosen or draw_sample(sample, seed, packages=packages, operators=operators)
    plan = MutationPlan(mutants, strategies, budget, seed, everywhere, unit_tests)
    outcome, text = mutate_outcome(plan, reach_s=reach_s, workers=workers, directory=directory, command=again)
    if directory is not None:
        write_run(directory, outcome)
    emit(outcome, as_json=as_json, text=text)


@command.command("holes")
@click.option("--hunt", is_flag=True, help="Search for each hole that can be planted, one after the other.")
@click.option("--replication", is_flag=True, help="Show the defects of replication on the installed Java store.")
@click.option("--raft", is_flag=True, help="Show the defects of DLedger on installed Java members.")
@click.option("--only", default="", metavar="IDS", help="Ids separated by commas, such as H1,C3 (default: all).")
@click.option(
    "--seconds", type=options.Seconds(min=0.1), default=60.0, show_default=True, help="Time of each search of --hunt."
)
@options.seed_option
@options.out_option
@options.json_option
def holes(
    hunt: bool, replication: bool, raft: bool, only: str, seconds: float, seed: int, out: str | None, as_json: bool
) -> None:
    """List known crash defects (holes) of RocketMQ 4.9.3, or search for planted ones.

    With --out each result is kept as a file, and a successful search is not repeated. With --replication a schedule of
    network events shows each defect of replication on Java stores (docs/replication/holes.md); it needs Java and
    `tornpage peer install`, and takes some minutes. With --raft the schedules are kills, pauses and a power cut of
    members of DLedger 0.2.3 (docs/replication/dledger.md).

    \b
    tornpage bugs holes
    tornpage bugs holes --hunt --only H1,C3
    tornpage bugs holes --hunt --out out/holes    (all: up to an hour; can be resumed)
    tornpage bugs holes --replication --only R3,R15
    tornpage bugs holes --raft --only L1
    """
    if replication or raft:
        from tornpage.outcomes.replication_holes import (
            RAFT_DEFECTS,
            REPLICATION_DEFECTS,
            raft_holes_outcome,
            replication_holes_outcome,
        )

        if hunt or out is not None or (replication and raft):
            refuse("--replication and --raft go without each other, --hunt and --out")
        show, total = (raft_holes_outcome, RAFT_DEFECTS) if raft else (replication_holes_outcome, REPLICATION_DEFECTS)
        with steps_progress("showing", total=total, unit="defects") as show_step:
            outcome, text = show(only, progress=show_step)
        emit(outcome, as_json=as_json, text=text)
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
