"""`tornpage bench`."""

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from tornpage import options
from tornpage.document import Outcome, emit, refuse
from tornpage.places import temporary_directory
from tornpage.progress import steps_progress

if TYPE_CHECKING:
    from bench.sizes import Sizes
    from bench.suite import SuiteResult

__all__ = ["bench_outcome", "command"]

ROOMS = ("put", "read", "recover", "lab", "sim", "audit", "campaign")


@click.command("bench")
@click.argument("rooms", nargs=-1, type=click.Choice(ROOMS), metavar="[put|read|recover|lab|sim|audit|campaign]...")
@click.option("--directory", type=click.Path(), default=None, help="Where stores are made (default: a temporary one).")
@click.option(
    "--seconds", type=options.Seconds(min=0.01), default=2.0, show_default=True, help="Time for each figure, about."
)
@click.option("--quick", is_flag=True, help="Audit a store of 128 MiB, not 1 GiB; campaign shards of 3 s.")
@click.option(
    "--shard-seconds",
    type=options.Seconds(min=0),
    default=None,
    help="Length of campaign shards, about.  [default: 10]",
)
@options.json_option
def command(
    rooms: tuple[str, ...],
    directory: str | None,
    seconds: float,
    quick: bool,
    shard_seconds: float | None,
    as_json: bool,
) -> None:
    """Measure the store, its recovery, the crash lab, the simulator, the audit and Spark; what is made is removed.

    \b
    tornpage bench
    tornpage bench put --directory /var/tmp --seconds 5 --json
    tornpage bench audit --quick
    tornpage bench campaign --shard-seconds 5
    """
    from bench.sizes import FULL, QUICK

    sizes = QUICK if quick else FULL
    if shard_seconds is not None:
        sizes = replace(sizes, shard_s=shard_seconds)
    outcome, text = bench_outcome(rooms, directory=directory, seconds=seconds, sizes=sizes)
    emit(outcome, as_json=as_json, text=text)


def bench_outcome(
    rooms: Sequence[str], *, directory: str | None, seconds: float, sizes: "Sizes | None" = None
) -> tuple[Outcome, str]:
    """Measure the rooms, or all of them; return the outcome and its table. `sizes` is for tests."""
    from bench.sizes import FULL
    from bench.suite import SUITE, measure
    from impl.errors import StoreError
    from properties.verdict import HarnessError

    chosen = [room for room in ROOMS if room in rooms or not rooms]
    place = os.path.abspath(directory or temporary_directory("name another --directory"))
    if not os.path.isdir(place):
        refuse(f"{place} is no directory; name one that exists, on the disk to be measured")
    try:
        with steps_progress("measuring", total=len({one for room in chosen for one in SUITE[room]})) as show:
            result = measure(chosen, place, seconds=seconds, sizes=sizes or FULL, progress=show)
    except StoreError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"cannot measure in {place}: {error.strerror or error}; name another --directory")
    except HarnessError as error:
        finding = {"code": "harness", "severity": "harness", "sentence": str(error)}
        return Outcome("bench", "harness", {}, findings=[finding]), f"the harness is at fault: {error}"
    figures = {figure.name: figure.value for figure in result.figures}
    extra = {
        "directory": place,
        "machine": asdict(result.machine),
        "results": [asdict(figure) for figure in result.figures],
    }
    outcome = Outcome(
        "bench", None, figures, list(figures), result.findings, extra=extra, interrupted=result.interrupted
    )
    return outcome, _text(result, place)


def _text(result: "SuiteResult", place: str) -> str:
    machine = result.machine
    lines = [
        f"{machine.processor}, {machine.cores} cores, {machine.kernel}, {machine.python}",
        f"{machine.file_system} at {place}",
        "",
        f"{'figure':<28}{'median':>14} {'unit':<10}{'lowest':>14}{'highest':>14}{'rounds':>8}",
    ]
    for figure in result.figures:
        low, high = _number(min(figure.rounds)), _number(max(figure.rounds))
        median = _number(figure.value)
        lines.append(f"{figure.name:<28}{median:>14} {figure.unit:<10}{low:>14}{high:>14}{len(figure.rounds):>8}")
    notes = [finding["sentence"] for finding in result.findings]
    if result.interrupted:
        notes.append("interrupted: the figures above are complete, the others were not taken")
    return "\n".join([*lines, *([""] if notes else []), *notes])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
