"""The page "RocketMQ under power loss": shares of crash states with broken promises."""

from dataclasses import dataclass
from pathlib import Path

from tornpage.reports.errors import ReportError
from tornpage.reports.pages.templating import rendered, write_page
from tornpage.reports.plots.figures import Drawing
from tornpage.reports.plots.power_loss import by_guarantee, by_version
from tornpage.reports.results.power_loss import ANY, Counterexample, PowerLoss, read_power_loss, version_key
from tornpage.reports.text import counted, listed, number

__all__ = ["PAGE", "build_power_loss_page", "render_power_loss"]

PAGE = "index.html"
REFERENCE = "rocketmq:4.9.3"
"""The version of which all counterexamples are shown. Of the others only those that differ are."""

_WRITERS = {
    "peer": (
        "Crash states of RocketMQ's own writes",
        "A live store of RocketMQ was recorded, and its crash states were composed.",
    ),
    "ours": (
        "Crash states of tornpage's writes",
        "Histories of tornpage were recorded. RocketMQ opened their crash states.",
    ),
}
_RUN_COLUMNS = (
    "peer", "disk", "states", "distinct images", "histories", "proven legal", "tornpage breaks a number in",
    "every n-th crash point", "seed", "mode",
)  # fmt: skip
CAVEATS = (
    "Shares are those of crash states as the lab draws them: a crash point first, then what survives. They are no "
    "rates of power losses in the field.",
    "Images are the lab's. No power was cut, and all runs are from one machine.",
    "The disk models let a size be lost on its own. ext4 with its usual journal loses creation and size together "
    "mostly, so the share of number 7 is an upper bound on every disk but kill.",
    "RocketMQ syncs no directory. On disk posix-strict the name of a log file can be lost with records that were "
    "answered with PUT_OK under synchronous flush. That RocketMQ loses acknowledged messages is true of that disk "
    "only, as long as the figure shows number 2 on no other one.",
    "A record that had to survive and is not in the image counts as number 2 of its writer. No store can recover it.",
    "Log files have 16 KiB, so a roll-over comes about every 12 puts. With files of 1 GiB it is rarer by as much, "
    "and so are the states in which a file is made and not yet sized.",
    "Histories are 44 puts without delayed messages, transactions, retention, transient pool or light queues. "
    "Bodies are random bytes.",
    "An acknowledged put is followed by a wait until RocketMQ has dispatched it. With asynchronous flush only "
    "records before the last explicit flush have to survive. Timers of RocketMQ run by the real clock.",
    "The peer opens in mode light, as the table of runs shows: it is loaded and dispatches, and is never started. "
    "Answers equal those of a started store on a sample.",
    "Number 16 counts a dispatch that makes no progress. A started store waits without end then.",
    "Number 6 compares the answers after two recoveries without a clean close in between. The order of records of "
    "a key does not count.",
    "Number 3 needs a put and a restart after the recovery, and is not judged. Nor are numbers that reads do not show.",
    "Intervals are those of Wilson, 95 %. They take states for independent. States of one history share its "
    "writes, so that the true uncertainty is larger.",
)
"""What the figures do not say. The page shows all of them."""


@dataclass(frozen=True, slots=True)
class Section:
    """The figures and counterexamples of one writer."""

    writer: str
    title: str
    sentence: str
    headline: str
    figures: tuple[Drawing, ...]
    examples: tuple[Counterexample, ...]


def build_power_loss_page(directory: Path) -> Path:
    """Write the page of a directory of runs and return its path. Raises ReportError."""
    found = read_power_loss(directory)
    if not found.runs:
        raise ReportError(str(directory), "has no run with a crash state", "give a larger --states-per-shard")
    return write_page(directory / PAGE, render_power_loss(found))


def render_power_loss(found: PowerLoss) -> str:
    """Return the page."""
    sections = [_section(found, writer) for writer in _WRITERS if any(run.writer == writer for run in found.runs)]
    runs = [
        (
            f"{run.peer}, writer {'RocketMQ' if run.writer == 'peer' else 'tornpage'}", run.disk, f"{run.states:,}",
            f"{run.distinct:,}", f"{run.histories:,}", f"{run.proven_legal:,}", f"{run.own_states:,}", str(run.every),
            str(run.seed), run.mode,
        )
        for run in found.runs
    ]  # fmt: skip
    return rendered(
        "power-loss.html", ["copy.js"], sections=sections, run_columns=_RUN_COLUMNS, runs=runs, caveats=CAVEATS,
        commands=[caption.command for caption in found.captions],
        sources=sorted({caption.source for caption in found.captions}),
    )  # fmt: skip


def _section(found: PowerLoss, writer: str) -> Section:
    title, sentence = _WRITERS[writer]
    return Section(
        writer, title, sentence, _headline(found, writer),
        (
            by_version(found, writer, f"{title}: any broken number, by version"),
            by_guarantee(found, writer, f"{title}: each number"),
        ),
        tuple(_shown(found, writer)),
    )  # fmt: skip


def _headline(found: PowerLoss, writer: str) -> str:
    """Return the shares of the reference version, or of the oldest one, in one sentence."""
    rows = [row for row in found.pooled(writer) if row.number == ANY]
    peers = sorted({row.peer for row in rows}, key=version_key)
    peer = REFERENCE if REFERENCE in peers else peers[0]
    shares = [
        f"{row.share:.1%} of {counted(row.states, 'state')} on disk {row.disk} "
        f"({row.interval[0]:.1%} to {row.interval[1]:.1%})"
        for row in rows
        if row.peer == peer
    ]
    own = sum(run.own_states for run in found.runs if run.writer == writer)
    states = sum(run.states for run in found.runs if run.writer == writer)
    name = peer.replace("rocketmq:", "RocketMQ ")
    return (
        f"{name} breaks at least one number in {listed(shares)}. tornpage breaks one in {number(own)} of all "
        f"{counted(states, 'state')}."
    )


def _shown(found: PowerLoss, writer: str) -> list[Counterexample]:
    """Return the counterexamples of the reference, and those of other versions that differ."""
    kept = {(each.disk, each.number) for each in found.examples if each.writer == writer and each.peer == REFERENCE}
    broken = {
        (row.peer, row.disk, row.number): row.broken / row.states
        for row in found.pooled(writer)
        if row.number != ANY and row.states
    }
    shown = []
    for each in found.examples:
        if each.writer != writer:
            continue
        is_other = (each.disk, each.number) not in kept or _differs(found, writer, each)
        if each.peer == REFERENCE or (is_other and broken.get((each.peer, each.disk, each.number))):
            shown.append(each)
    return shown


def _differs(found: PowerLoss, writer: str, example: Counterexample) -> bool:
    """Whether the interval of a version's number lies apart from that of the reference."""
    rows = {row.peer: row for row in found.pooled(writer) if (row.disk, row.number) == (example.disk, example.number)}
    mine, reference = rows.get(example.peer), rows.get(REFERENCE)
    if mine is None or reference is None:
        return True
    return mine.interval[0] > reference.interval[1] or mine.interval[1] < reference.interval[0]
