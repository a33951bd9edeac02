"""`tornpage sim`, with `sim frontier` and `sim experiment`."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tornpage.cli import options
from tornpage.cli.document import emit, refuse
from tornpage.outcomes.calibrating import sim_calibrate_outcome
from tornpage.outcomes.experiments import chosen, device_named, experiments_outcome, list_outcome
from tornpage.outcomes.simulation_points import DEVICE_MODES, FLUSH_KINDS
from tornpage.outcomes.simulations import sim_run_outcome, sim_sweep_outcome

__all__ = ["command", "experiment_command", "frontier_command"]


# ---- frontier and experiments ----------------------------------------------------------------------------------------


_device_option = click.option(
    "--device", default="vm-ext4", show_default=True, metavar="PRESET", help="Which device; a wrong name lists them."
)
_effort_option = click.option(
    "--effort",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=1.0,
    show_default=True,
    help="Share of the messages and crashes to simulate; below 1 captions are rougher.",
)
_out_option = click.option(
    "--out",
    type=click.Path(file_okay=False),
    default=None,
    help="Directory for the tables; `tornpage report` draws it.",
)


@click.command("experiment")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Every experiment, some minutes.")
@click.option("--list", "only_list", is_flag=True, help="Tell the names and what each one asks, and end.")
@_device_option
@_effort_option
@_out_option
@options.seed_option
@options.json_option
def experiment_command(
    names: tuple[str, ...],
    everything: bool,
    only_list: bool,
    device: str,
    effort: float,
    out: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Carry out named experiments: a question, its answer from a simulation, and the rows behind it.

    \b
    tornpage sim experiment --list
    tornpage sim experiment knee
    tornpage sim experiment least-pages pool --device ebs-gp3 --out build/sim
    tornpage sim experiment --all --out build/sim && tornpage report build/sim
    """
    if only_list:
        outcome, text = list_outcome()
    else:
        experiments = chosen(names, everything=everything)
        outcome, text = experiments_outcome(
            "sim experiment", experiments, device=device_named(device), seed=seed, effort=effort, out=out
        )
    emit(outcome, as_json=as_json, text=text)


@click.command("frontier")
@click.option(
    "--crashes", type=click.IntRange(1, 10_000), default=24, show_default=True, help="Power losses for each policy."
)
@click.option(
    "--kills", type=click.IntRange(0, 1_000), default=2, show_default=True, help="Processes to kill for each."
)
@click.option(
    "--directory", type=click.Path(), default=None, help="Where stores of killed processes are (a temporary one)."
)
@_device_option
@_effort_option
@_out_option
@options.seed_option
@options.json_option
def frontier_command(
    crashes: int,
    kills: int,
    directory: str | None,
    device: str,
    effort: float,
    out: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Which latency buys which safety? Simulated policies, and what crashes really took from the store under them.

    \b
    tornpage sim frontier --out build/frontier && tornpage report build/frontier
    tornpage sim frontier --kills 10 --directory /var/tmp
    tornpage sim frontier --kills 0     (power losses only: equal seeds give equal results)
    """
    from tornpage.bench.crashes.frontier import crash_frontier

    if directory is not None and not os.path.isdir(directory):
        refuse(f"{directory!r} is no directory; name one that exists")
    if directory is not None and kills and not os.access(directory, os.W_OK | os.X_OK):
        refuse(f"{directory} cannot be written to; name another --directory")
    experiment = crash_frontier(crashes=crashes, kills=kills, directory=directory)
    outcome, text = experiments_outcome(
        "sim frontier",
        [experiment],
        device=device_named(device),
        seed=seed,
        effort=effort,
        out=out,
        again=lambda _: f"sim frontier --crashes {crashes} --kills {kills}",
        elsewhere="name another --directory",
    )
    emit(outcome, as_json=as_json, text=text)


# ---- sim -------------------------------------------------------------------------------------------------------------


DEFAULT_RATE = 10_000.0
CRASH_MS_MAX = 1e12
DEFAULT_RATES = (1_000.0, 5_000.0, 20_000.0)
FLUSH_HELP = "flushDiskType; woken: asynchronous with flushCommitLogTimed=false."

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
        click.option(
            "--device-mode",
            type=click.Choice(DEVICE_MODES),
            default=None,
            help="Of a calibration: how bytes came to the file (mmap).",
        ),
        click.option("--any-machine", is_flag=True, help="Take a calibration of another machine, too."),
        click.option("--warm/--no-warm", default=False, help="warmMapedFileEnable: touch new files before use."),
        click.option("--pool", type=int, default=None, help="transientStorePoolSize: put into so many buffers."),
        click.option("--commit-interval-ms", type=int, default=None, help="commitIntervalCommitLog of --pool (200)."),
        click.option("--commit-least-pages", type=int, default=None, help="commitCommitLogLeastPages (4)."),
        click.option("--commit-thorough-ms", type=int, default=None, help="commitCommitLogThoroughInterval (200)."),
        click.option("--fast-fail/--no-fast-fail", default=False, help="fastFailIfNoBufferInStorePool."),
        click.option("--replica-us", type=float, default=None, help="SYNC_MASTER: the slave answers after so long."),
        click.option("--writeback/--no-writeback", default=False, help="Have the kernel write dirty pages by itself."),
        click.option("--wake-ms", type=int, default=None, help="dirty_writeback_centisecs of it, in ms (5000)."),
        click.option("--expire-ms", type=int, default=None, help="dirty_expire_centisecs, in ms (30000)."),
        click.option("--background-mib", type=int, default=None, help="Dirty MiB above which it hurries (2365)."),
        click.option("--burst-ms", type=float, default=None, help="Bursts at --rate, of so many ms each,"),
        click.option("--rest-ms", type=float, default=None, help="with so many ms between two,"),
        click.option("--rest-rate", type=float, default=None, help="at this rate, messages/s (0)."),
        click.option("--think-us", type=click.FloatRange(min=0), default=None, help="Mean think time of --producers."),
        click.option("--out", type=click.Path(), default=None, help="Directory for the rows, as JSON lines."),
        options.seed_option,
        options.json_option,
    ]
    for option in reversed(shared):
        decorated = option(decorated)
    return decorated


@command.command("run")
@click.option("--flush", type=click.Choice(FLUSH_KINDS), default=None, help=f"{FLUSH_HELP} (async)")
@click.option("--interval-ms", type=int, default=None, help="flushIntervalCommitLog of an async flush (500).")
@click.option("--least-pages", type=int, default=None, help="flushCommitLogLeastPages (4).")
@click.option("--thorough-ms", type=int, default=None, help="flushCommitLogThoroughInterval (10000).")
@click.option(
    "--allocation",
    type=click.Choice(["one-ahead", "on-demand"]),
    default=None,
    help="When the next file is made (one-ahead).",
)
@click.option(
    "--device",
    default="vm-ext4",
    show_default=True,
    metavar="PRESET|FILE",
    help="Which device, or a calibration; a wrong name lists the presets.",
)
@click.option("--rate", type=float, default=None, help=f"Open load, messages/s ({DEFAULT_RATE:g}).")
@click.option("--producers", type=click.IntRange(1, 10_000), default=None, help="Instead: so many that wait in turn.")
@click.option("--broker-config", type=click.Path(), default=None, help="The broker's settings, name=value lines.")
@click.option("--crashes", type=click.IntRange(0, 1_000_000), default=0, help="Crash at so many moments of the load.")
@click.option("--crash-at-ms", type=float, multiple=True, help="Crash at this moment too; again for more.")
@_load_options
def run_command(
    flush: str | None,
    interval_ms: int | None,
    least_pages: int | None,
    allocation: str | None,
    device: str,
    rate: float | None,
    producers: int | None,
    crashes: int,
    crash_at_ms: tuple[float, ...],
    out: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Simulate one policy under one load.

    \b
    tornpage sim run --flush sync --rate 20000
    tornpage sim run --flush async --interval-ms 100 --device ebs-gp3 --seconds 60
    tornpage sim run --pool 5 --rate 50000 --crashes 1000
    tornpage sim run --broker-config broker.conf --rate 20000 --burst-ms 50 --rest-ms 200
    tornpage sim run --flush sync --device exponential-1ms --rate 1000     (a formula knows the answer)
    tornpage sim run --flush sync --device disk.calibration                (this disk, by `sim calibrate`)
    """
    if rate is not None and producers is not None:
        refuse("--rate is for producers that do not wait, --producers for such that do; choose one")
    if asked["broker_config"] is not None:
        policy = (flush, interval_ms, least_pages, asked["thorough_ms"], allocation, asked["pool"])
        if any(value is not None for value in policy) or asked["warm"]:
            refuse("--broker-config says which policies to follow; leave the options for them out")
    if any(not 0 <= at < CRASH_MS_MAX for at in crash_at_ms):
        refuse(f"--crash-at-ms has to lie between 0 and {CRASH_MS_MAX:g}")
    asked |= {
        "flushes": [flush or "async"],
        "intervals_ms": _given(interval_ms),
        "least_pages": _given(least_pages),
        "allocations": [allocation or "one-ahead"],
        "devices": [device],
        "rates": [DEFAULT_RATE] if rate is None and producers is None else _given(rate),
        "producers": _given(producers),
    }
    outcome, text = sim_run_outcome(asked=asked, crashes=crashes, crash_at_ms=crash_at_ms, out=out)
    emit(outcome, as_json=as_json, text=text)


def _given(value: float | None) -> list[float]:
    return [] if value is None else [value]


@command.command("sweep")
@click.option("--flush", "flushes", type=click.Choice(FLUSH_KINDS), multiple=True, help="Again for more (sync, async).")
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
@click.option("--device", "devices", multiple=True, metavar="PRESET|FILE", help="Again for more (vm-ext4).")
@click.option("--rate", "rates", type=float, multiple=True, help="Messages/s; again for more (1000, 5000, 20000).")
@click.option("--producers", type=click.IntRange(1, 10_000), multiple=True, help="Also: closed loops of so many.")
@click.option("--master", default=None, help="Run the points in tasks of this Spark master; --out gets Parquet.")
@click.option("--resume", is_flag=True, help="Go on in the --out of a --master: skip the points that are done.")
@_load_options
def sweep_command(master: str | None, resume: bool, out: str | None, as_json: bool, **asked: Any) -> None:
    """Simulate every combination of the policies and loads named.

    \b
    tornpage sim sweep --out build/sweep
    tornpage sim sweep --flush async --interval-ms 10 --interval-ms 100 --interval-ms 500 --rate 20000
    tornpage sim sweep --flush async --flush woken --pool 5 --rate 20000
    tornpage sim sweep --master 'local[2]' --out build/sweep
    tornpage sim sweep --master 'local[2]' --out build/sweep --resume
    """
    if resume and (master is None or out is None):
        refuse("--resume goes with --master and the --out directory of the sweep to go on with")
    asked |= {
        "flushes": asked["flushes"] or ["sync", "async"],
        "allocations": asked["allocations"] or ["one-ahead", "on-demand"],
        "devices": asked["devices"] or ["vm-ext4"],
        "rates": asked["rates"] or ([] if asked["producers"] else DEFAULT_RATES),
    }
    outcome, text = sim_sweep_outcome(asked=asked, out=out, master=master, resume=resume)
    emit(outcome, as_json=as_json, text=text)


@command.command("calibrate")
@click.argument("directory", type=click.Path(), default=".")
@click.option(
    "--seconds",
    type=options.Seconds(min=0, min_open=True, max=86_400),
    default=None,
    help="How long to measure, two rounds at least (60 for each mode).",
)
@click.option("--mode", "modes", type=click.Choice(DEVICE_MODES), multiple=True, help="Again for more (both).")
@click.option("--out", type=click.Path(), required=True, metavar="FILE", help="Where the calibration goes.")
@click.option("--real-time", is_flag=True, help="Run before other processes, to measure the disk of a busy machine.")
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
@options.seed_option
@options.json_option
def calibrate_command(
    directory: str,
    seconds: float | None,
    modes: tuple[str, ...],
    out: str,
    real_time: bool,
    overwrite: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Measure the disk below DIRECTORY (default: here), for `--device FILE` of `sim run` and `sim sweep`.

    Syncs after so many pages and so long a pause, first touches, files, and the store's own work under small loads,
    in short slices in random order. Needs 512 MiB for a while; nothing is left behind.

    \b
    tornpage sim calibrate /var/lib/broker --out disk.calibration
    tornpage sim calibrate --seconds 20 --mode mmap --out quick.calibration
    """
    outcome, text = sim_calibrate_outcome(
        directory=directory,
        seconds=seconds,
        modes=modes or DEVICE_MODES,
        out=out,
        real_time=real_time,
        overwrite=overwrite,
        seed=seed,
    )
    emit(outcome, as_json=as_json, text=text)


@command.command("validate")
@click.argument("directory", required=False, type=click.Path())
@click.option(
    "--seconds",
    type=options.Seconds(min=0, min_open=True),
    default=120.0,
    show_default=True,
    help="Time to measure, about; two rounds of some 15 s at least.",
)
@click.option("--out", type=click.Path(), default=None, help="Directory for the rows, as JSON lines.")
@options.seed_option
@options.json_option
def validate_command(directory: str | None, seconds: float, out: str | None, seed: int, as_json: bool) -> None:
    """Predict the real store, measure it in DIRECTORY, and say how far the prediction is off.

    Stores are made below DIRECTORY (default: a temporary one) and removed. Where allowed, the measurement runs before
    other programs.

    \b
    tornpage sim validate /var/tmp
    tornpage sim validate /var/tmp --seconds 600 --out build/validation --json
    """
    from tornpage.outcomes.validating import validate_outcome

    outcome, text = validate_outcome(directory, seconds=seconds, out=out, seed=seed)
    emit(outcome, as_json=as_json, text=text)


command.add_command(experiment_command)
command.add_command(frontier_command)
