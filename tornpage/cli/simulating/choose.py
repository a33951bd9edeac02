"""`tornpage sim choose`."""

import os
import shlex

import click

from tornpage.cli import options
from tornpage.cli.document import emit, refuse
from tornpage.outcomes.simulation_points import DEVICE_MODES

__all__ = ["choose_command"]

CHECK_SECONDS = 5.0


@click.command("choose")
@click.option("--device", metavar="PRESET|FILE", default=None, help="Device preset or calibration file.")
@click.option(
    "--here", type=click.Path(), metavar="DIR", default=None, help="Measure the disk of this directory first."
)
@click.option("--rate", type=options.Finite(min=0, min_open=True), metavar="MSG/S", required=True, help="Mean rate.")
@click.option(
    "--body",
    type=click.IntRange(min=1),
    metavar="BYTES",
    default=1024,
    show_default=True,
    help="Bytes of a message's body.",
)
@click.option(
    "--max-loss",
    type=options.Span(),
    required=True,
    help="Longest age of an acknowledged message that a crash takes: 10ms.",
)
@click.option("--max-p99", type=options.Span(), required=True, help="Limit of the put latency's 99th percentile: 2ms.")
@click.option(
    "--crash",
    type=click.Choice(["power", "kill"]),
    default="power",
    show_default=True,
    help="Power loss, or the end of the process alone.",
)
@click.option(
    "--crash-share",
    type=options.Finite(min=0, max=1, min_open=True),
    default=1.0,
    show_default=True,
    help="Share of the crashes that must stay within --max-loss; 1 includes the worst one.",
)
@click.option(
    "--replica",
    metavar="LINK|TIME",
    default=None,
    help="Also compare a second copy past this link: 'same rack', 'other zone', 'other region', or the time of one "
    "direction (300us). A power loss is then that of one machine.",
)
@click.option(
    "--seconds",
    type=options.Seconds(min=0, min_open=True, max=86_400),
    default=None,
    help="With --here: time to measure, at least two rounds (60).",
)
@click.option("--keep", type=click.Path(), metavar="FILE", default=None, help="With --here: keep the calibration.")
@click.option("--real-time", is_flag=True, help="With --here: measure with priority over other programs.")
@click.option("--device-mode", type=click.Choice(DEVICE_MODES), default=None, help="Mode of a calibration (mmap).")
@click.option("--any-machine", is_flag=True, help="Also accept a calibration of another machine.")
@click.option(
    "--validation",
    type=click.Path(),
    metavar="DIR",
    default=None,
    help="The --out directory of `sim validate` on this disk: the error of its predictions.",
)
@click.option("--check", is_flag=True, help="Also run the chosen policy on the real store and cut its power.")
@click.option(
    "--check-directory",
    type=click.Path(),
    metavar="DIR",
    default=None,
    help="With --check: where its files are (--here, else the current directory).",
)
@click.option(
    "--check-seconds",
    type=options.Seconds(min=0.5, max=3600),
    default=None,
    help="With --check: time to run the store (5).",
)
@click.option(
    "--file-size",
    type=click.IntRange(min=4096),
    metavar="BYTES",
    default=1 << 30,
    show_default=True,
    help="mappedFileSizeCommitLog.",
)
@click.option(
    "--messages",
    type=click.IntRange(min=1),
    metavar="N",
    default=None,
    help="Length of each simulated load (20 s, 20000 to 400000 messages).",
)
@options.out_option
@options.seed_option
@options.json_option
def choose_command(
    device: str | None,
    here: str | None,
    rate: float,
    body: int,
    max_loss: float,
    max_p99: float,
    crash: str,
    crash_share: float,
    replica: str | None,
    seconds: float | None,
    keep: str | None,
    real_time: bool,
    device_mode: str | None,
    any_machine: bool,
    validation: str | None,
    check: bool,
    check_directory: str | None,
    check_seconds: float | None,
    file_size: int,
    messages: int | None,
    out: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Choose the flush policy for a budget of loss and latency.

    Simulates flush kinds, intervals, pages, the pool and warmed files on the times of a disk. Prints the chosen
    policy with its lines for broker.conf, all policies that meet the budget, the frontier, and the known errors. The
    policy that leaves the most room ranks first. Exits with 3 if no policy meets the budget; the nearest one is printed
    then.

    \b
    tornpage sim choose --device vm-ext4 --rate 5000 --max-loss 10ms --max-p99 2ms
    tornpage sim choose --here /var/lib/broker --keep disk.calibration --rate 5000 --max-loss 10ms --max-p99 2ms
    tornpage sim choose --device disk.calibration --rate 5000 --body 300 --max-loss 0ms --max-p99 5ms --out choice
    tornpage sim choose --device vm-ext4 --rate 1000 --max-loss 0ms --max-p99 3ms --replica 'other zone'
    tornpage sim choose --here . --seconds 20 --rate 1000 --max-loss 20ms --max-p99 2ms --check
    """
    from tornpage.outcomes.choosing.choosing import Load, choose_outcome

    if (device is None) == (here is None):
        refuse("name the disk: --device PRESET|FILE for known times, or --here DIR to measure the disk of a directory")
    if here is None and (seconds is not None or keep is not None or real_time):
        refuse("--seconds, --keep and --real-time go with --here")
    if here is not None and any_machine:
        refuse("--any-machine goes with a calibration as --device")
    if not check and (check_directory is not None or check_seconds is not None):
        refuse("--check-directory and --check-seconds go with --check")
    place = check_directory or here or "."
    if check:
        _require_room(place)
    disk = f"--device {shlex.quote(device)}" if device is not None else f"--here {shlex.quote(here or '')}"
    second = "" if replica is None else f" --replica {shlex.quote(replica)}"
    outcome, text = choose_outcome(
        device=device,
        here=here,
        seconds=seconds,
        keep=keep,
        real_time=real_time,
        device_mode=device_mode,
        any_machine=any_machine,
        load=Load(rate, body, file_size, messages),
        loss_ms=max_loss / 1e6,
        put_p99_us=max_p99 / 1e3,
        crash=crash,
        share=crash_share,
        replica=replica,
        validation=validation,
        check_directory=place if check else None,
        check_seconds=CHECK_SECONDS if check_seconds is None else check_seconds,
        again=f"tornpage sim choose {disk} --rate {rate:g} --body {body} --max-loss {max_loss / 1e6:g}ms "
        f"--max-p99 {max_p99 / 1e3:g}us --crash {crash} --crash-share {crash_share:g}{second}",
        out=out,
        seed=seed,
    )
    emit(outcome, as_json=as_json, text=text)


def _require_room(place: str) -> None:
    """Refuse a directory in which no store can be checked."""
    if not os.path.isdir(place):
        refuse(f"{place} is no directory; name another --check-directory")
    if not os.access(place, os.W_OK | os.X_OK):
        refuse(f"{place} cannot be written to; name another --check-directory")
