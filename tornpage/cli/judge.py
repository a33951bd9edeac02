"""`tornpage judge`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, emit, refuse
from tornpage.render.redacting import LEFT_OUT, Showing, showing
from tornpage.run.directory import prepare, write_run

if TYPE_CHECKING:
    from tornpage.outcomes.judging import Judging
    from tornpage.peers.rocketmq.installing import Release
    from tornpage.properties.judge.shape import SettingsOverride
    from tornpage.properties.program.case import Disk

__all__ = ["command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What the command line says about one image."""

    truth: str | None
    ending: Literal["kill", "power-loss"] | None
    broker_config: str | None
    rocketmq_version: str | None
    slots: int | None
    file_bytes: int | None
    peers: tuple[str, ...]

    @property
    def has_settings(self) -> bool:
        """Whether any option states settings or the truth."""
        given = (self.truth, self.ending, self.broker_config, self.rocketmq_version, self.slots, self.file_bytes)
        return any(each is not None for each in given)

    @property
    def is_power_loss(self) -> bool | None:
        """Whether the image is of a power loss; None takes it from the truth."""
        return None if self.ending is None else self.ending == "power-loss"

    def settings(self) -> "SettingsOverride":
        """Return the settings of the store. Raises InspectError."""
        from tornpage.properties.judge.shape import SettingsOverride, read_settings_file

        stated = SettingsOverride() if self.broker_config is None else read_settings_file(self.broker_config)
        numbers = stated.with_numbers(maxHashSlotNum=self.slots, mappedFileSizeCommitLog=self.file_bytes)
        return numbers.with_release(self.rocketmq_version)


@click.command("judge")
@click.argument("image", type=click.Path(), metavar="IMAGE_DIR")
@click.option("--truth", type=click.Path(), default=None, help="Acknowledged puts: a golden truth.json.")
@click.option(
    "--exit",
    "ending",
    type=click.Choice(["kill", "power-loss"]),
    default=None,
    help="How it ended: all acknowledged records are due, or the flushed ones.  [default: from the truth]",
)
@click.option("--golden", is_flag=True, help="IMAGE_DIR holds golden stores: judge each killed one and its variants.")
@options.broker_config_option
@options.release_option
@options.slots_option
@options.file_bytes_option
@click.option(
    "--crashes",
    type=click.IntRange(min=0),
    default=None,
    help="Number of file operations at which recovery is crashed.  [default: 12]",
)
@click.option("--all", "everywhere", is_flag=True, help="Crash the recovery at every one of its file operations.")
@click.option("--losses", type=click.IntRange(min=0), default=1, show_default=True, help="Drawn power losses at each.")
@options.disk_option
@options.seed_option
@options.bug_option
@options.peer_option
@options.out_option
@options.redact_option
@options.json_option
def command(
    image: str,
    golden: bool,
    crashes: int | None,
    everywhere: bool,
    losses: int,
    disk: "Disk",
    seed: int,
    bug: str,
    out: str | None,
    redact: bool,
    as_json: bool,
    **about_image: Any,
) -> None:
    """Recover a copy of the crash image IMAGE_DIR, and rule on each guarantee of the contract.

    \b
    tornpage judge /var/crash/store
    tornpage judge STORE --truth truth.json --all
    tornpage judge STORE --broker-config broker.conf --json
    tornpage judge STORE --rocketmq-version 4.8.0
    tornpage judge GOLDEN_STORES --golden --out out/
    tornpage judge STORE --peer rocketmq:4.9.3
    tornpage judge STORE --redact --json    (for sharing: no topics, keys, hosts)

    IMAGE_DIR is a store directory of tornpage or RocketMQ after a crash. It is never changed: recoveries run on disks
    in memory. A guarantee without evidence in the image is "unknown". See docs/judge.md.

    A peer recovers a copy of the image. Its rulings are results, which change neither verdict nor exit code.
    """
    given = _Given(**about_image)
    if golden and given.has_settings:
        refuse("golden stores have their own settings and truth; give --golden without these options")
    if given.ending is not None and given.truth is None:
        refuse("--exit chooses the records of the truth that are due; give --truth too")
    if golden and redact:
        refuse("--redact applies to one image; golden stores are public")
    if golden and given.peers:
        refuse("--golden shows RocketMQ's recorded answers; give --peer with one image")
    if not golden:
        options.require_stores([image])
    from tornpage.outcomes.judging import Judging
    from tornpage.outcomes.peers import releases_named
    from tornpage.properties.contract import HarnessError
    from tornpage.properties.inspect import InspectError
    from tornpage.properties.judge.judgement import SAMPLES

    releases = releases_named(given.peers)
    show = showing(redact=redact)
    samples = None if everywhere else SAMPLES if crashes is None else crashes
    judging = Judging(bug=bug, disk=disk, samples=samples, losses=losses, seed=seed)
    if out is not None:
        prepare(out)
    again = f"tornpage judge {show.store(image)} --seed {seed}{show.option}"
    try:
        if golden:
            outcome, text = _golden_stores(image, judging, command=f"{again} --golden")
        else:
            outcome, text = _image(image, given, judging, releases, command=again, show=show)
    except InspectError as error:
        refuse(str(error))
    except HarnessError as error:
        said = LEFT_OUT if redact else str(error)
        finding = {"code": "harness", "severity": "harness", "sentence": said}
        outcome = Outcome("judge", "harness", {}, findings=[finding], seed=seed, extra=show.extra)
        text = f"the harness failed: {said}"
    if out is not None:
        write_run(Path(out), outcome)
    emit(outcome, as_json=as_json, text=text)


def _golden_stores(directory: str, judging: "Judging", *, command: str) -> tuple[Outcome, str]:
    """Judge all crash images of golden stores. Raises InspectError, HarnessError."""
    from tornpage.outcomes.judging import golden_outcome, golden_text, judged_golden_images

    rows = judged_golden_images(directory, judging)
    outcome = golden_outcome(rows, seed=judging.seed, command=command)
    return outcome, f"{golden_text(rows)}\n\nverdict: {outcome.verdict}"


def _image(
    image: str, given: _Given, judging: "Judging", releases: "Sequence[Release]", *, command: str, show: Showing
) -> tuple[Outcome, str]:
    """Judge one image, and let peers recover it. Raises InspectError, HarnessError."""
    from tornpage.outcomes.judging import image_outcome, image_text, judged_image, shown_judgement
    from tornpage.outcomes.peers import judged_by_peers, peer_rows, peer_text

    settings, truth, power_loss = given.settings(), given.truth, given.is_power_loss
    judgement = judged_image(image, judging, given=settings, truth=truth, power_loss=power_loss)
    judgement = shown_judgement(judgement, show)
    outcome, text = image_outcome(judgement, seed=judging.seed, command=command, show=show), image_text(judgement)
    if releases:
        judged = judged_by_peers(releases, image, given=settings, truth=truth, power_loss=power_loss, show=show)
        outcome.extra = {**outcome.extra, "peers": peer_rows(judged)}
        text += f"\n{peer_text(judged)}"
    return outcome, text
