"""`tornpage sim`, with `sim frontier` and `sim experiment`."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tornpage.cli import options
from tornpage.cli.document import emit, refuse
from tornpage.cli.simulating.choose import choose_command
from tornpage.outcomes.calibrating import sim_calibrate_outcome
from tornpage.outcomes.experiments import chosen, disk_of, experiments_outcome, list_outcome
from tornpage.outcomes.simulation_points import DEVICE_MODES, FLUSH_KINDS
from tornpage.outcomes.simulations import sim_run_outcome, sim_sweep_outcome

__all__ = ["command", "experiment_command", "frontier_command"]


Decorated = TypeVar("Decorated", bound=Callable[..., Any])


# ---- frontier and experiments ----------------------------------------------------------------------------------------


_DEVICE_OPTIONS = (
    click.option(
        "--device",
        default="vm-ext4",
        show_default=True,
        metavar="PRESET|FILE",
        help="Device preset or calibration file; a wrong name lists the presets.",
    ),
    click.option("--device-mode", type=click.Choice(DEVICE_MODES), default=None, help="Mode of a calibration (mmap)."),
    click.option("--any-machine", is_flag=True, help="Also accept a calibration of another machine."),
)


def _device_options(decorated: Decorated) -> Decorated:
    """Add the options that `experiment` and `frontier` share."""
    for option in reversed(_DEVICE_OPTIONS):
        decorated = option(decorated)
    return decorated


_effort_option = click.option(
    "--effort",
    type=options.Finite(min=0, max=1, min_open=True),
    default=1.0,
    show_default=True,
    help="Share of the messages and crashes to simulate; less is faster and less exact.",
)
_out_option = click.option(
    "--out",
    type=click.Path(file_okay=False),
    default=None,
    help="Directory for the tables; `tornpage report DIR` draws them.",
)


@click.command("experiment")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Every experiment (some minutes).")
@click.option("--list", "only_list", is_flag=True, help="Print names and questions, and exit.")
@_device_options
@_effort_option
@_out_option
@options.seed_option
@options.json_option
def experiment_command(
    names: tuple[str, ...],
    everything: bool,
    only_list: bool,
    device: str,
    device_mode: str | None,
    any_machine: bool,
    effort: float,
    out: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Run named experiments: a question, its answer by simulation, and the rows of the answer.

    \b
    tornpage sim experiment --list
    tornpage sim experiment knee
    tornpage sim experiment least-pages pool --device ebs-gp3 --out build/sim
    tornpage sim experiment knee --device disk.calibration
    tornpage sim experiment --all --out build/sim && tornpage report build/sim
    """
    if only_list:
        outcome, text = list_outcome()
    else:
        disk = disk_of(device, mode=device_mode, any_machine=any_machine)
        experiments = chosen(names, everything=everything, disk=disk)
        outcome, text = experiments_outcome("sim experiment", experiments, disk=disk, seed=seed, effort=effort, out=out)
    emit(outcome, as_json=as_json, text=text)


@click.command("frontier")
@click.option(
    "--crashes", type=click.IntRange(1, 10_000), default=24, show_default=True, help="Power losses for each policy."
)
@click.option(
    "--kills", type=click.IntRange(0, 1_000), default=2, show_default=True, help="Process kills for each policy."
)
@click.option(
    "--directory", type=click.Path(), default=None, help="Directory for stores of killed processes (temporary)."
)
@_device_options
@_effort_option
@_out_option
@options.seed_option
@options.json_option
def frontier_command(
    crashes: int,
    kills: int,
    directory: str | None,
    device: str,
    device_mode: str | None,
    any_machine: bool,
    effort: float,
    out: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Compare put latency and crash losses of flush policies, simulated and in the real store.

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
        disk=disk_of(device, mode=device_mode, any_machine=any_machine),
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
FLUSH_HELP = "flushDiskType; woken: asynchronous with flushCommitLogTimed=false"


@click.group("sim", cls=options.Commands)
def command() -> None:
    """Simulate put latency, crash losses of policies, consumers and Raft groups."""


_LOAD_OPTIONS = (
    click.option(
        "--messages", type=click.IntRange(min=1), metavar="N", default=None, help="Length of the load (100000)."
    ),
    click.option(
        "--seconds",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        default=None,
        help="Length of the load in simulated time, instead of --messages.",
    ),
    click.option(
        "--size",
        type=click.IntRange(min=1),
        metavar="BYTES",
        default=1024,
        show_default=True,
        help="Smallest record.",
    ),
    click.option(
        "--size-max",
        type=click.IntRange(min=1),
        metavar="BYTES",
        default=None,
        help="Largest record (default: --size).",
    ),
    click.option(
        "--file-size",
        type=click.IntRange(min=4096),
        metavar="BYTES",
        default=16 << 20,
        show_default=True,
        help="Size of a log file.",
    ),
)
"""The length of the load, and its records."""
_POLICY_OPTIONS = (
    click.option(
        "--device-mode",
        type=click.Choice(DEVICE_MODES),
        default=None,
        help="Mode of a calibration: how bytes were written (mmap).",
    ),
    click.option("--any-machine", is_flag=True, help="Also accept a calibration of another machine."),
    click.option("--warm/--no-warm", default=False, help="warmMapedFileEnable: touch new files before use."),
    click.option("--pool", type=int, metavar="BUFFERS", default=None, help="transientStorePoolSize; uses the pool."),
    click.option(
        "--commit-interval-ms",
        type=int,
        metavar="MS",
        default=None,
        help="commitIntervalCommitLog of --pool (200).",
    ),
    click.option(
        "--commit-least-pages", type=int, metavar="PAGES", default=None, help="commitCommitLogLeastPages (4)."
    ),
    click.option(
        "--commit-thorough-ms", type=int, metavar="MS", default=None, help="commitCommitLogThoroughInterval (200)."
    ),
    click.option("--fast-fail/--no-fast-fail", default=False, help="fastFailIfNoBufferInStorePool."),
    click.option("--replica-us", type=float, metavar="US", default=None, help="SYNC_MASTER: answer time of the slave."),
)
"""The calibration, the pool and the replica."""
_WRITEBACK_OPTIONS = (
    click.option("--writeback/--no-writeback", default=False, help="The kernel writes dirty pages by itself."),
    click.option(
        "--wake-ms", type=int, metavar="MS", default=None, help="Its dirty_writeback_centisecs, in ms (5000)."
    ),
    click.option(
        "--expire-ms", type=int, metavar="MS", default=None, help="Its dirty_expire_centisecs, in ms (30000)."
    ),
    click.option(
        "--background-mib", type=int, metavar="MIB", default=None, help="Its dirty_background_bytes, in MiB (2365)."
    ),
)
"""How the kernel writes dirty pages."""
_BURST_OPTIONS = (
    click.option("--burst-ms", type=float, metavar="MS", default=None, help="Length of bursts at --rate."),
    click.option("--rest-ms", type=float, metavar="MS", default=None, help="Time between two bursts."),
    click.option("--rest-rate", type=float, metavar="MSG/S", default=None, help="Rate between two bursts (0)."),
    click.option(
        "--think-us",
        type=options.Finite(min=0),
        metavar="US",
        default=None,
        help="Mean think time of --producers.",
    ),
)
"""The rates of the load over time."""


def _simulation_options(decorated: Decorated) -> Decorated:
    """Add the options that `run` and `sweep` share."""
    shared = (
        *_LOAD_OPTIONS,
        *_POLICY_OPTIONS,
        *_WRITEBACK_OPTIONS,
        *_BURST_OPTIONS,
        click.option("--out", type=click.Path(), default=None, help="Directory for the rows, as JSON lines."),
        options.seed_option,
        options.json_option,
    )
    for option in reversed(shared):
        decorated = option(decorated)
    return decorated


@command.command("run")
@click.option("--flush", type=click.Choice(FLUSH_KINDS), default=None, help=f"{FLUSH_HELP} (async)")
@click.option(
    "--interval-ms", type=int, metavar="MS", default=None, help="flushIntervalCommitLog of an async flush (500)."
)
@click.option("--least-pages", type=int, metavar="PAGES", default=None, help="flushCommitLogLeastPages (4).")
@click.option("--thorough-ms", type=int, metavar="MS", default=None, help="flushCommitLogThoroughInterval (10000).")
@click.option(
    "--allocation",
    type=click.Choice(["one-ahead", "on-demand"]),
    default=None,
    help="When the next file is created (one-ahead).",
)
@click.option(
    "--device",
    default="vm-ext4",
    show_default=True,
    metavar="PRESET|FILE",
    help="Device preset or calibration file; a wrong name lists the presets.",
)
@click.option("--rate", type=float, metavar="MSG/S", default=None, help=f"Rate of an open load ({DEFAULT_RATE:g}).")
@click.option(
    "--producers",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=None,
    help="Closed load instead: producers that wait for each answer.",
)
@options.broker_config_option
@click.option(
    "--crashes", type=click.IntRange(0, 1_000_000), metavar="N", default=0, help="Number of drawn crash moments."
)
@click.option(
    "--crash-at-ms", type=float, metavar="MS", multiple=True, help="Also crash at this moment; can be repeated."
)
@_simulation_options
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
    tornpage sim run --flush sync --device exponential-1ms --rate 1000     (a formula gives the answer)
    tornpage sim run --flush sync --device disk.calibration                (your disk, by `sim calibrate`)
    """
    if rate is not None and producers is not None:
        refuse("--rate is for producers that do not wait, --producers for producers that wait; choose one")
    if asked["broker_config"] is not None:
        policy = (flush, interval_ms, least_pages, asked["thorough_ms"], allocation, asked["pool"])
        if any(value is not None for value in policy) or asked["warm"]:
            refuse("--broker-config states the policies; leave out the options for policies")
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
@click.option(
    "--flush", "flushes", type=click.Choice(FLUSH_KINDS), multiple=True, help="Can be repeated (sync, async)."
)
@click.option(
    "--interval-ms",
    "intervals_ms",
    type=int,
    metavar="MS",
    multiple=True,
    help="flushIntervalCommitLog; can be repeated.",
)
@click.option(
    "--least-pages",
    "least_pages",
    type=int,
    metavar="PAGES",
    multiple=True,
    help="flushCommitLogLeastPages; can be repeated.",
)
@click.option("--thorough-ms", type=int, metavar="MS", default=None, help="flushCommitLogThoroughInterval (10000).")
@click.option(
    "--allocation",
    "allocations",
    type=click.Choice(["one-ahead", "on-demand"]),
    multiple=True,
    help="Can be repeated (both).",
)
@click.option("--device", "devices", multiple=True, metavar="PRESET|FILE", help="Can be repeated (vm-ext4).")
@click.option(
    "--rate",
    "rates",
    type=float,
    metavar="MSG/S",
    multiple=True,
    help="Open load; can be repeated (1000, 5000, 20000).",
)
@click.option(
    "--producers",
    type=click.IntRange(1, 10_000),
    metavar="N",
    multiple=True,
    help="Closed load of N producers; can be repeated.",
)
@click.option("--master", default=None, help="Run the points in tasks of this Spark master; --out gets Parquet.")
@click.option("--resume", is_flag=True, help="Continue in the --out of a --master: skip finished points.")
@_simulation_options
def sweep_command(master: str | None, resume: bool, out: str | None, as_json: bool, **asked: Any) -> None:
    """Simulate every combination of the given policies and loads.

    \b
    tornpage sim sweep --out build/sweep
    tornpage sim sweep --flush async --interval-ms 10 --interval-ms 100 --interval-ms 500 --rate 20000
    tornpage sim sweep --flush async --flush woken --pool 5 --rate 20000
    tornpage sim sweep --master 'local[2]' --out build/sweep
    tornpage sim sweep --master 'local[2]' --out build/sweep --resume
    """
    if resume and (master is None or out is None):
        refuse("--resume needs --master and the --out directory of the sweep")
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
    help="Time to measure, at least two rounds (60 for each mode).",
)
@click.option("--mode", "modes", type=click.Choice(DEVICE_MODES), multiple=True, help="Can be repeated (both).")
@click.option("--out", type=click.Path(), required=True, metavar="FILE", help="File for the calibration.")
@click.option("--real-time", is_flag=True, help="Run with priority, to measure the disk of a busy machine.")
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
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
    """Measure the disk of DIRECTORY (default: .) for `--device FILE` of `run` and `sweep`.

    Measures syncs after different numbers of pages and pauses, first touches, files, and the store under small loads,
    in short slices in random order. Needs 512 MiB while it runs, and removes its files.

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
    help="Approximate time to measure; at least two rounds of some 15 s.",
)
@click.option("--out", type=click.Path(), default=None, help="Directory for the rows, as JSON lines.")
@click.option("--causes", is_flag=True, help="Divide each error among its causes; half a minute more.")
@options.seed_option
@options.json_option
def validate_command(
    directory: str | None, seconds: float, out: str | None, causes: bool, seed: int, as_json: bool
) -> None:
    """Predict the real store, measure it in DIRECTORY, and print the error of the prediction.

    Stores are created in DIRECTORY (default: a temporary one) and removed. If allowed, the measurement runs with
    priority over other programs.

    \b
    tornpage sim validate /var/tmp
    tornpage sim validate /var/tmp --seconds 600 --out build/validation --json
    """
    from tornpage.outcomes.validating import validate_outcome

    outcome, text = validate_outcome(directory, seconds=seconds, out=out, seed=seed, causes=causes)
    emit(outcome, as_json=as_json, text=text)


@command.command("link")
@click.argument("directory", required=False, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--seconds",
    type=options.Seconds(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Approximate time to measure; at least two rounds.",
)
@click.option("--out", type=click.Path(), default=None, help="Directory for the run document.")
@options.seed_option
@options.json_option
def link_command(directory: str | None, seconds: float, out: str | None, seed: int, as_json: bool) -> None:
    """Measure a master and a slave over TCP on loopback, and predict them.

    Latency, bandwidth, rounds and appends are calibrated under two loads. Four other loads are predicted. Stores are
    created in DIRECTORY (default: a temporary one) and removed. If allowed, the measurement runs with priority over
    other programs.

    \b
    tornpage sim link
    tornpage sim link /var/tmp --seconds 120 --json
    """
    from tornpage.outcomes.links import link_outcome

    outcome, text = link_outcome(directory, seconds=seconds, out=out, seed=seed)
    emit(outcome, as_json=as_json, text=text)


@command.command("consumers")
@click.option("--out", type=click.Path(), default=None, help="Directory for the run document.")
@options.seed_option
@options.json_option
def consumers_command(out: str | None, seed: int, as_json: bool) -> None:
    """Compare the simulator of consumers with the library, in virtual time.

    Three groups consume the same messages with both: one without changes, one with a member that joins and one that
    leaves, one with a member that crashes. Lag and repeated messages have to agree within 10 %.

    \b
    tornpage sim consumers
    tornpage sim consumers --seed 7 --json
    """
    from tornpage.outcomes.simulated.virtual_time import consumer_groups_outcome

    outcome, text = consumer_groups_outcome(seed=seed, out=out)
    emit(outcome, as_json=as_json, text=text)


@command.command("raft")
@click.option("--out", type=click.Path(), default=None, help="Directory for the run document.")
@options.seed_option
@options.json_option
def raft_command(out: str | None, seed: int, as_json: bool) -> None:
    """Compare the simulator of Raft groups with the members of `impl/raft`, in virtual time.

    Six groups of 3 to 7 members run with both: under an open load, under a closed load, and with kills of the leader.
    Times of puts and of failovers have to agree within 10 %.

    \b
    tornpage sim raft
    tornpage sim raft --seed 7 --json
    """
    from tornpage.outcomes.simulated.virtual_time import raft_groups_outcome

    outcome, text = raft_groups_outcome(seed=seed, out=out)
    emit(outcome, as_json=as_json, text=text)


command.add_command(choose_command)
command.add_command(experiment_command)
command.add_command(frontier_command)
