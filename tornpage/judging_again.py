"""All saved cases judged again by the store and the judges of today."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from tornpage.document import Outcome
from tornpage.given_cases import GivenCase
from tornpage.inspect_text import printable
from tornpage.progress import steps_progress

if TYPE_CHECKING:
    from properties.disk.dirty import DirtyTracker

__all__ = ["judged_again"]

Is = Literal["broken", "holds now", "unknown", "cannot be read"]


@dataclass(frozen=True, slots=True)
class _Ruling:
    """One case: what its failure was ("" if nobody wrote that down), what it is, and why."""

    case: str
    was: str
    verdict: Is
    why: str


def judged_again(cases: Sequence[GivenCase]) -> tuple[Outcome, str]:
    """Return the rulings on some cases: broken if one is, else unknown if one could not be judged."""
    from properties.disk.dirty import choose_tracker

    rulings: list[_Ruling] = []
    is_interrupted = False
    try:
        with (
            choose_tracker("auto") as tracker,
            steps_progress("judging", total=len(cases), unit="cases") as show,
        ):
            for case in cases:
                show(case.name)
                rulings.append(_ruling(case, tracker))
    except KeyboardInterrupt:
        is_interrupted = True
    found = {ruling.verdict for ruling in rulings}
    verdict = "broken" if "broken" in found else "unknown" if found - {"holds now"} or is_interrupted else "holds"
    counted: tuple[Is, ...] = ("broken", "holds now", "unknown", "cannot be read")
    figures = {"cases": len(cases)} | {
        word.replace(" ", "_"): sum(ruling.verdict == word for ruling in rulings) for word in counted
    }
    findings = [
        {"code": "case", "severity": "broken", "sentence": f"{ruling.case}: {ruling.why}"}
        for ruling in rulings
        if ruling.verdict == "broken"
    ]
    rows = [asdict(ruling) for ruling in rulings]
    outcome = Outcome("replay", verdict, figures, findings=findings, extra={"rows": rows}, interrupted=is_interrupted)
    return outcome, _text(rulings, verdict)


def _ruling(given: GivenCase, tracker: "DirtyTracker") -> _Ruling:
    from properties.explore.foreign.protocol import TargetUnusable
    from properties.planted import UnknownBug
    from properties.program.case import BadToken

    try:
        verdict, why = _judged(given, tracker)
    except (BadToken, UnknownBug, TargetUnusable) as error:
        verdict, why = "cannot be read", str(error)
    return _Ruling(given.name, given.was, verdict, why)


def _judged(given: GivenCase, tracker: "DirtyTracker") -> tuple[Is, str]:
    from properties.campaign.replay import replay

    if given.is_interleaving:
        from tornpage.render.explorations import replay_outcome

        outcome, _ = replay_outcome(given.text, is_token=given.is_token)
        why = "; ".join(str(finding.get("sentence", "")) for finding in outcome.findings)
        return (
            "holds now" if outcome.verdict == "holds" else "broken" if outcome.verdict == "broken" else "unknown"
        ), why
    case = given.case()
    failure = replay(case, tracker=tracker)
    if failure is None:
        return "holds now", ""
    bug = f" (planted bug {case.settings.bug})" if case.settings.bug else ""
    return "broken", f"contract {failure.broken.contract}: {failure.broken.sentence}{bug}"


def _text(rulings: Sequence[_Ruling], verdict: str) -> str:
    lines = []
    for ruling in rulings:
        lines.append(printable(f"{ruling.verdict:<16}{ruling.case}"))
        lines += [printable(f"{'':<16}was  {ruling.was}")] if ruling.was else []
        lines += [printable(f"{'':<16}is   {ruling.why}")] if ruling.why else []
    return "\n".join([*lines, "", f"verdict: {verdict}"])
