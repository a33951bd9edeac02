"""The judgement of peers on one image, as part of a document and as text."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, at_fault, refuse, say
from tornpage.outcomes.inspecting import printable
from tornpage.peers.errors import PeerUnavailable
from tornpage.properties.judge.rulings import counted
from tornpage.properties.judge.shape import SettingsOverride
from tornpage.render.redacting import Showing
from tornpage.run.directory import prepare

if TYPE_CHECKING:
    from tornpage.peers.exploring import PeerExploration, PeerPlan
    from tornpage.peers.judging import PeerJudgement
    from tornpage.peers.rocketmq.installing import Release
    from tornpage.peers.rocketmq.store import Mode
    from tornpage.properties.explore.exhaustive.explored import Plan as ExhaustPlan

__all__ = [
    "exhaust_peer_outcome",
    "judged_by_peers",
    "peer_rows",
    "peer_text",
    "releases_named",
    "shrink_peer_examples",
]


def releases_named(names: Sequence[str]) -> "list[Release]":
    """Return the installed releases of some peers.

    If one of them cannot run, the command ends with one line.
    """
    from tornpage.peers.naming import release_named

    try:
        return [release_named(name) for name in dict.fromkeys(names)]
    except PeerUnavailable as error:
        refuse(str(error))


def shrink_peer_examples(result: "PeerExploration", release: "Release", plan: "PeerPlan", *, seconds: float) -> None:
    """Shrink the counterexamples of a peer, `seconds` each."""
    from tornpage.cli.progress import counted_progress
    from tornpage.peers.shrinking import shrink_examples

    if result.interrupted or not seconds or not result.examples:
        return
    numbers = sorted(result.examples)
    with counted_progress("shrinking", total=len(numbers), unit="counterexamples") as show:
        result.examples = shrink_examples(
            result.examples, release, is_own=plan.writer == "peer", mode=plan.mode, seconds=seconds,
            progress=lambda number, tries: show(
                numbers.index(number), f"number {number}, {counted(tries, 'try', 'tries')}"
            ),
        )  # fmt: skip


def exhaust_peer_outcome(
    plan: "ExhaustPlan", peer: str, *, mode: "Mode", workers: int, seconds: float | None, out: str | None
) -> tuple[Outcome, str]:
    """Open the crash states of every workload with both stores; return outcome and text."""
    from tornpage.cli.progress import counted_progress
    from tornpage.peers.exhausting import exhaust_with_peer, peer_letters
    from tornpage.properties.contract import HarnessError
    from tornpage.properties.explore.exhaustive.resume import OtherPlan
    from tornpage.render.peers import exhaust_command, exhaustion_outcome

    (release,) = releases_named((peer,))
    try:
        asked = replace(plan, operation_names=peer_letters(plan), check_ops=0)
    except ValueError as error:
        refuse(f"{error}; delayed messages, retention and deleted topics are not for runs with --peer")
    command = exhaust_command(asked, peer, mode=mode, workers=workers, seconds=seconds)
    say(command)
    directory = None if out is None else prepare(out)
    try:
        with counted_progress("exhausting", total=None, unit="states") as show:
            result = exhaust_with_peer(
                release, asked, mode=mode, workers=workers, seconds=seconds, out=directory,
                progress=lambda states: show(states // 64 * 64, ""),
            )  # fmt: skip
    except (PeerUnavailable, OtherPlan) as error:
        refuse(str(error))
    except HarnessError as error:
        return at_fault("exhaust", error)
    except OSError as error:
        refuse(f"cannot write results to {error.filename or out}: {error.strerror}; name another --out directory")
    return exhaustion_outcome(result, command=command)


def judged_by_peers(
    releases: "Sequence[Release]",
    path: str,
    *,
    given: SettingsOverride,
    truth: str | None,
    power_loss: bool | None,
    show: Showing,
) -> "list[PeerJudgement]":
    """Let each peer recover a copy of an image. Raises InspectError."""
    from tornpage.peers.judging import judge_with_peer
    from tornpage.peers.rocketmq.process import Process
    from tornpage.properties.judge.image import read_image, read_truth

    told = None if truth is None else read_truth(truth, power_loss=power_loss)
    judged = []
    for release in releases:
        try:
            with Process(release) as process:
                found = judge_with_peer(process, read_image(path), override=given, truth=told)
        except PeerUnavailable as error:
            refuse(str(error))
        shown = tuple(replace(ruling, **show.ruling(asdict(ruling))) for ruling in found.rulings)
        judged.append(replace(found, rulings=shown))
    return judged


def peer_rows(judged: "Sequence[PeerJudgement]") -> list[dict[str, Any]]:
    """Return the peers of a document."""
    return [
        {
            "peer": each.peer,
            "verdict": each.verdict,
            "records_kept": each.kept,
            "broken": each.numbers("broken"),
            "rulings": [ruling.row() for ruling in each.rulings],
        }
        for each in judged
    ]


def peer_text(judged: "Sequence[PeerJudgement]") -> str:
    """Return the rulings on each peer as text.

    Numbers that are unknown are left out.
    """
    lines: list[str] = []
    for each in judged:
        kept = "does not start" if each.kept is None else f"keeps {counted(each.kept, 'record')}"
        lines += ["", f"{each.peer}: {each.verdict}; {kept}"]
        for ruling in each.rulings:
            if ruling.verdict != "unknown":
                lines.append(f"{ruling.contract:>3}  {ruling.name:<16}{ruling.verdict:<9}{printable(ruling.sentence)}")
            if ruling.expected or ruling.found:
                lines.append(f"{'':30}expected {printable(ruling.expected)}; found {printable(ruling.found)}")
    return "\n".join(lines)
