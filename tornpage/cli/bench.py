"""`tornpage bench`."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, NoReturn

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, emit, refuse
from tornpage.cli.progress import steps_progress
from tornpage.properties.judge.rulings import counted
from tornpage.run.directory import temporary_directory

if TYPE_CHECKING:
    from tornpage.bench.sizes import Sizes
    from tornpage.bench.suite import Failed, SuiteResult

__all__ = ["bench_outcome", "command"]

_JAVA, _SPARK = "java", "spark"
ROOMS = ("put", "read", "replication", "recover", "lab", "target", "sim", "audit", "campaign")


@click.command("bench")
@click.argument(
    "rooms",
    nargs=-1,
    type=click.Choice((*ROOMS, _JAVA, _SPARK)),
    metavar="[put|read|replication|recover|lab|target|sim|audit|campaign]... | java | spark",
)
@click.option("--directory", type=click.Path(), default=None, help="Directory for the stores (default: temporary).")
@click.option(
    "--seconds",
    type=options.Seconds(min=0.01),
    default=2.0,
    show_default=True,
    help="Approximate time for each figure.",
)
@click.option("--quick", is_flag=True, help="Audit a store of 128 MiB, not 1 GiB; campaign shards of 3 s.")
@click.option(
    "--shard-seconds",
    type=options.Seconds(min=0),
    default=None,
    help="Approximate length of campaign shards.  [default: 10]",
)
@click.option("--only", metavar="ROW", multiple=True, help="With java, spark: only this row; may be repeated.")
@click.option(
    "--page",
    type=click.Path(dir_okay=False),
    default=None,
    help="With java, spark: write the table into a page in Markdown.",
)
@click.option(
    "--store", type=click.Path(file_okay=False), default=None, help="With spark: read this store instead of a new one."
)
@click.option(
    "--megabytes",
    metavar="MB",
    type=click.IntRange(min=1),
    default=None,
    help="With spark: size of the log of the new store (3000).",
)
@click.option(
    "--rounds", type=click.IntRange(min=1), default=None, help="With spark: rounds of a query; the median counts (1)."
)
@options.json_option
def command(
    rooms: tuple[str, ...],
    directory: str | None,
    seconds: float,
    quick: bool,
    shard_seconds: float | None,
    only: tuple[str, ...],
    page: str | None,
    store: str | None,
    megabytes: int | None,
    rounds: int | None,
    as_json: bool,
) -> None:
    """Measure store, recovery, crash lab, simulator, audit and Spark. Removes its files.

    `java` measures our store beside a live RocketMQ 4.9.3, by turns (docs/java/bench.md). `spark` measures scans and
    audits of a store of 3 GB, with processor time and memory of all processes (docs/spark/measured.md). Neither is part
    of a run without rooms.

    \b
    tornpage bench
    tornpage bench put --directory /var/tmp --seconds 5 --json
    tornpage bench audit --quick
    tornpage bench campaign --shard-seconds 5
    tornpage bench java --only put_1024 --only sync_64
    tornpage bench spark --directory /var/tmp
    tornpage bench spark --store STORE --only by_topic_2 --rounds 5
    """
    if _SPARK in rooms:
        _on_spark(
            rooms,
            only,
            directory=directory,
            store=store,
            megabytes=megabytes,
            rounds=rounds,
            page=page,
            as_json=as_json,
        )
    for name, given in (("store", store), ("megabytes", megabytes), ("rounds", rounds)):
        if given is not None:
            refuse(f"--{name} belongs to `tornpage bench spark`; leave it out")
    if _JAVA in rooms:
        _beside_java(rooms, only, directory=directory, seconds=seconds, page=page, as_json=as_json)
    if only or page is not None:
        refuse(f"{'--only' if only else '--page'} belongs to `tornpage bench java` and `bench spark`; leave it out")
    from tornpage.bench.sizes import FULL, QUICK

    sizes = QUICK if quick else FULL
    if shard_seconds is not None:
        sizes = replace(sizes, shard_s=shard_seconds)
    outcome, text = bench_outcome(rooms, directory=directory, seconds=seconds, sizes=sizes)
    emit(outcome, as_json=as_json, text=text)


def _beside_java(
    rooms: Sequence[str],
    only: Sequence[str],
    *,
    directory: str | None,
    seconds: float,
    page: str | None,
    as_json: bool,
) -> NoReturn:
    """Measure beside RocketMQ, and end."""
    from tornpage.outcomes.java_bench import beside_java
    from tornpage.outcomes.live_pages import write_part

    if set(rooms) != {_JAVA}:
        refuse("java is measured alone; run the other rooms by a command of their own")
    place = os.path.abspath(directory or temporary_directory("name another --directory"))
    outcome, text, table = beside_java(only, place, seconds=seconds)
    if page is not None and not outcome.interrupted:
        again = " ".join(["tornpage bench java", *(f"--only {name}" for name in only), f"--seconds {seconds:g}"])
        write_part(page, "bench", f"`{again}`: {table}")
    emit(outcome, as_json=as_json, text=text)


def _on_spark(
    rooms: Sequence[str],
    only: Sequence[str],
    *,
    directory: str | None,
    store: str | None,
    megabytes: int | None,
    rounds: int | None,
    page: str | None,
    as_json: bool,
) -> NoReturn:
    """Measure scans and audits of a large store, and end."""
    from tornpage.outcomes.benches.spark import on_spark
    from tornpage.outcomes.live_pages import write_part

    if set(rooms) != {_SPARK}:
        refuse("spark is measured alone; run the other rooms by a command of their own")
    if store is not None and megabytes is not None:
        refuse("--megabytes is the size of a new store; leave it out with --store")
    place = os.path.abspath(directory or temporary_directory("name another --directory"))
    outcome, text, table = on_spark(
        only, place, store=store, log_bytes=(megabytes or 3000) * 1_000_000, rounds=rounds or 1
    )
    if page is not None and not outcome.interrupted:
        write_part(page, "bench spark", table)
    emit(outcome, as_json=as_json, text=text)


def bench_outcome(
    rooms: Sequence[str], *, directory: str | None, seconds: float, sizes: "Sizes | None" = None
) -> tuple[Outcome, str]:
    """Measure some rooms or all; return the outcome and its table.

    `sizes` is for tests.
    """
    from tornpage.bench.sizes import FULL
    from tornpage.bench.suite import SUITE, measure

    chosen = [room for room in ROOMS if room in rooms or not rooms]
    place = os.path.abspath(directory or temporary_directory("name another --directory"))
    if not os.path.isdir(place):
        refuse(f"{place} is no directory; name one that exists, on the disk to be measured")
    with steps_progress("measuring", total=len({one for room in chosen for one in SUITE[room]})) as show:
        result = measure(chosen, place, seconds=seconds, sizes=sizes or FULL, progress=show)
    failures = [_failure(each, place) for each in result.failed]
    is_harness = any(each.is_harness for each in result.failed)
    if failures and not (result.figures or is_harness or result.interrupted):
        refuse(failures[0]["sentence"])
    figures = {figure.name: figure.value for figure in result.figures}
    extra = {
        "directory": place,
        "machine": asdict(result.machine),
        "results": [asdict(figure) for figure in result.figures],
    }
    outcome = Outcome(
        "bench",
        "harness" if is_harness else None,
        figures,
        list(figures),
        [*result.findings, *failures],
        extra=extra,
        interrupted=result.interrupted,
        unwritten=bool(failures),
    )
    return outcome, _text(result, place, [*result.findings, *failures])


def _failure(failed: "Failed", place: str) -> dict[str, str]:
    if failed.is_harness:
        sentence = f"the harness failed in {failed.room}, at {failed.figure}: {failed.reason}"
        return {"code": "harness", "severity": "harness", "sentence": sentence}
    sentence = (
        f"bench {failed.room} ended at {failed.figure}: cannot measure in {place}: {failed.reason}; "
        "name another --directory"
    )
    return {"code": "no-store", "severity": "warning", "sentence": sentence}


def _text(result: "SuiteResult", place: str, findings: Sequence[Mapping[str, str]]) -> str:
    machine = result.machine
    lines = [
        f"{machine.processor}, {counted(machine.cores, 'core')}, {machine.kernel}, {machine.python}",
        f"{machine.file_system} at {place}",
        "",
        f"{'figure':<28}{'median':>14} {'unit':<10}{'lowest':>14}{'highest':>14}{'rounds':>8}",
    ]
    for figure in result.figures:
        low, high = _number(min(figure.rounds)), _number(max(figure.rounds))
        median = _number(figure.value)
        lines.append(f"{figure.name:<28}{median:>14} {figure.unit:<10}{low:>14}{high:>14}{len(figure.rounds):>8}")
    notes = [finding["sentence"] for finding in findings]
    if result.interrupted:
        notes.append("interrupted: the figures above are complete, the others were not measured")
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
