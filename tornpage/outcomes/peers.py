"""The judgement of peers on one image, as part of a document and as text."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import refuse
from tornpage.outcomes.inspecting import printable
from tornpage.peers.errors import PeerUnavailable
from tornpage.properties.judge.shape import SettingsOverride
from tornpage.render.redacting import Showing

if TYPE_CHECKING:
    from tornpage.peers.judging import PeerJudgement
    from tornpage.peers.rocketmq.installing import Release

__all__ = ["judged_by_peers", "peer_rows", "peer_text", "releases_named"]


def releases_named(names: Sequence[str]) -> "list[Release]":
    """Return the installed releases of some peers.

    If one of them cannot run, the command ends with one line.
    """
    from tornpage.peers.naming import release_named

    try:
        return [release_named(name) for name in dict.fromkeys(names)]
    except PeerUnavailable as error:
        refuse(str(error))


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
        kept = "does not start" if each.kept is None else f"keeps {each.kept:,} records"
        lines += ["", f"{each.peer}: {each.verdict}; {kept}"]
        for ruling in each.rulings:
            if ruling.verdict != "unknown":
                lines.append(f"{ruling.contract:>3}  {ruling.name:<16}{ruling.verdict:<9}{printable(ruling.sentence)}")
            if ruling.expected or ruling.found:
                lines.append(f"{'':30}expected {printable(ruling.expected)}; found {printable(ruling.found)}")
    return "\n".join(lines)
