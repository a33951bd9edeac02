"""`tornpage sim`."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from tornpage import options
from tornpage.document import emit, refuse
from tornpage.simulations import DEFAULT_RATE, sim_run_outcome, sim_sweep_outcome

__all__ = ["command"]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@click.group("sim")
def command() -> None:
    """Simulate what flush and preallocation policies cost producers, and what a power loss would take."""


def _load_options(decorated: Decorated) -> Decorated:
    """Add the options that `run` and `sweep` share."""
    shared = [
        click.option("--messages", type=click.IntRange(min=1), default=None, help="End of the load (default 100000)."),
        click.option(
            "--seconds", type=click.FloatRange(min=0, min_open=True), default=None, help="Or: simulated time of it."
        ),
        click.option(
            "--size", type=click.IntRange(min=1), default=1024, show_default=True, help="Bytes of a record, smallest."
        ),
        click.option("--size-max", type=click.IntRange(min=1), default=None, help="Largest (default: all the same)."),
        click.option(
            "--file-size", type=click.IntRange(min=4096), default=16 << 20, show_default=True, help="Bytes of a file."
        ),
        click.option("--warm/--no-warm", default=False, help="warmMapedFileEnable: touch new files before use."),
        click.option("--think-us", type=click.FloatRange(min=0), default=None, help="Mean think time of --producers."),
        click.option("--out", type=click.Path(), default=None, help="Directory for the rows, as JSON lines."),
        options.seed_option,
        options.json_option,
    ]
    for option in reversed(shared):
        decorated = option(decorated)
    return decorated


@command.command("run")
@click.option(
    "--flush", type=click.Choice(["sync", "async"]), default="async", show_default=True, help="flushDiskType."
)
@click.option("--interval-ms", type=int, default=None, help="flushIntervalCommitLog of an async flush (500).")
@click.option("--least-pages", type=int, default=None, help="flushCommitLogLeastPages (4).")
@click.option("--thorough-ms", type=int, default=None, help="flushCommitLogThoroughInterval (10000).")
@click.option(
    "--allocation",
    type=click.Choice(["one-ahead", "on-demand"]),
    default="one-ahead",
    show_default=True,
    help="When the next file is made.",
)
@click.option(
    "--device", default="vm-ext4", show_default=True, metavar="PRESET", help="Which device; a wrong name lists them."
)
@click.option("--rate", type=float, default=None, help=f"Open load, messages/s ({DEFAULT_RATE:g}).")
@click.option("--producers", type=click.IntRange(1, 10_000), default=None, help="Instead: so many that wait in turn.")
@_load_options
def run_command(
    flush: str,
    interval_ms: int | None,
    least_pages: int | None,
    thorough_ms: int | None,
    allocation: str,
    device: str,
    rate: float | None,
    producers: int | None,
    as_json: bool,
    **load: Any,
) -> None:
    """Simulate one policy under one load.

    \b
    tornpage sim run --flush sync --rate 20000
    tornpage sim run --flush async --interval-ms 100 --device ebs-gp3 --seconds 60
    tornpage sim run --flush sync --device exponential-1ms --rate 1000     (a formula knows the answer)
    """
    if rate is not None and producers is not None:
        refuse("--rate is for producers that do not wait, --producers for such that do; choose one")
    outcome, text = sim_run_outcome(
        flush=flush,
        interval_ms=interval_ms,
        least_pages=least_pages,
        thorough_ms=thorough_ms,
        allocation=allocation,
        device=device,
        rate=DEFAULT_RATE if rate is None and producers is None else rate,
        producers=producers,
        **load,
    )
    emit(outcome, as_json=as_json, text=text)


@command.command("sweep")
@click.option("--flush", "flushes", type=click.Choice(["sync", "async"]), multiple=True, help="Again for more (both).")
@click.option("--interval-ms", "intervals_ms", type=int, multiple=True, help="flushIntervalCommitLog; again for more.")
@click.option("--least-pages", "least_pages", type=int, multiple=True, help="flushCommitLogLeastPages; again for more.")
@click.option("--thorough-ms", type=int, default=None, help="flushCommitLogThoroughInterval (10000).")
@click.option(
    "--allocation",
    "allocations",
    type=click.Choice(["one-ahead", "on-demand"]),
    multiple=True,
    help="Again for more (both).",
)
@click.option("--device", "devices", multiple=True, metavar="PRESET", help="Again for more (vm-ext4).")
@click.option("--rate", "rates", type=float, multiple=True, help="Messages/s; again for more (1000, 5000, 20000).")
@click.option("--producers", type=click.IntRange(1, 10_000), multiple=True, help="Also: closed loops of so many.")
@click.option("--master", default=None, help="Run the points in tasks of this Spark master; --out gets Parquet.")
@_load_options
def sweep_command(as_json: bool, **asked: Any) -> None:
    """Simulate every combination of the policies and loads named.

    \b
    tornpage sim sweep --out build/sweep
    tornpage sim sweep --flush async --interval-ms 10 --interval-ms 100 --interval-ms 500 --rate 20000
    tornpage sim sweep --master 'local[2]' --out build/sweep
    """
    outcome, text = sim_sweep_outcome(**asked)
    emit(outcome, as_json=as_json, text=text)
