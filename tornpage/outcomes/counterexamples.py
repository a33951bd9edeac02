"""Read cases from users, and replay, shrink, explain or promote them.

A case is a token, a case file, or a directory of them; of counterexamples and of interleavings.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from tornpage.cli.document import Outcome, refuse, warn
from tornpage.cli.progress import shrinking_progress, steps_progress
from tornpage.outcomes.inspecting import printable
from tornpage.outcomes.processes.cases import (
    CLUSTER,
    GROUP,
    PROCESS_KINDS,
    RAFT,
    ProcessKind,
    Promoted,
    replay_process_case,
)
from tornpage.run.writing import new_page, write_whole

if TYPE_CHECKING:
    from tornpage.properties.campaign.replay import Failure, Shrunk
    from tornpage.properties.disk.dirty import DirtyTracker
    from tornpage.properties.program.case import Case
    from tornpage.reports.results.tables import Run

__all__ = [
    "GivenCase",
    "case_of",
    "explain_outcome",
    "given_cases",
    "is_directory",
    "judged_again",
    "new_test",
    "promote_outcome",
    "replay_outcome",
    "shrink_outcome",
    "text_of",
    "write_case_pages",
]

_HOLDS = "every guarantee holds: there is nothing to {}\n\nverdict: holds"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TOKENS = ("tp1-", "ti1-", *(kind.prefix for kind in PROCESS_KINDS))


# ---- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GivenCase:
    """One case: its origin, its token or text, and its saved failure ("" if unknown)."""

    name: str
    text: str
    is_token: bool
    was: str = ""

    @property
    def is_interleaving(self) -> bool:
        """Whether it is an interleaving of threads, which has its own form."""
        return self.text.startswith("ti1-") if self.is_token else "tornpage_interleaving" in self.text

    @property
    def kind(self) -> ProcessKind | None:
        """The kind of a case of several processes, None for other cases."""
        return next((each for each in PROCESS_KINDS if each.is_kind_of(self.text, is_token=self.is_token)), None)

    def case(self) -> "Case":
        """Read it. Raises BadToken."""
        from tornpage.properties.program.case import Case

        return Case.from_token(self.text) if self.is_token else Case.from_text(self.text)

    def refuse_because(self, reason: Exception | str) -> NoReturn:
        """Refuse the case with its name and the reason."""
        refuse(f"{self.name}: {reason}")


def text_of(given: str) -> GivenCase:
    """Return a token or the text of a case file; refuses anything else."""
    if given.startswith(_TOKENS):
        return GivenCase(f"{given[:12]}…", given, is_token=True)
    if not given:
        refuse("the case is empty: give a token (tp1-…) or a case file")
    if is_directory(given):
        refuse(f"{given} is a directory: name one of its case files, or give a token (tp1-…)")
    try:
        text = Path(given).read_text()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text"
        refuse(f"{given} is neither a token (tp1-…) nor a readable case file: {reason}")
    return GivenCase(given, text, is_token=False, was=_was(text))


def case_of(found: GivenCase) -> "Case":
    """Read a case of one store; refuses interleavings and unreadable cases."""
    from tornpage.properties.program.case import BadToken

    if found.is_interleaving:
        found.refuse_because("an interleaving is shrunk and explained when it is found; use `tornpage replay` for it")
    try:
        return found.case()
    except BadToken as error:
        found.refuse_because(error)


def is_directory(given: str) -> bool:
    """Return whether a directory was given; a token is none."""
    return not given.startswith(_TOKENS) and os.path.isdir(given)


def given_cases(given: str) -> list[GivenCase]:
    """Return the cases below a directory, or the one given."""
    if not is_directory(given):
        return [text_of(given)]
    texts = [(path, _read(path)) for path in sorted(Path(given).rglob("*.json"))]
    found = [
        GivenCase(str(path), text, is_token=False, was=_was(text)) for path, text in texts if _is_a_case(path, text)
    ]
    there = {_told_by(_document(case.text)) for case in found}
    for path, text in texts:
        if path.name == "run.json":
            found += [case for case in _of_findings(path, text) if _key(case) not in there]
    if not found:
        refuse(f"{given} holds no case file and no finding with a token; name a directory that a run wrote with --out")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _is_a_case(path: Path, text: str) -> bool:
    """Return whether a file is a case, or looks like one that cannot be read."""
    names = ("case-", "interleaving-", *(f"{kind.name}-" for kind in PROCESS_KINDS))
    return path.name.startswith(names) or '"tornpage_case"' in text[:400]


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _was(text: str) -> str:
    was = _document(text).get("was")
    return f"contract {was.get('contract')}: {was.get('sentence')}" if isinstance(was, dict) else ""


def _of_findings(path: Path, text: str) -> Iterator[GivenCase]:
    findings = _document(text).get("findings")
    for number, finding in enumerate(findings if isinstance(findings, list) else ()):
        if isinstance(finding, dict) and str(finding.get("token", "")).startswith(_TOKENS):
            was = f"contract {str(finding.get('code', '')).removeprefix('contract-')}: {finding.get('sentence')}"
            yield GivenCase(f"{path} finding {number}", finding["token"], is_token=True, was=was)


def _key(case: GivenCase) -> str:
    """Return a key of the case of a token; its place if the token cannot be read."""
    from tornpage.properties.program.packing import BadToken, unpacked

    try:
        return _told_by(_document(unpacked(case.text[:4], case.text)))
    except BadToken:
        return case.name


def _told_by(document: dict[str, Any]) -> str:
    told = ("settings", "operations", "before", "tasks", "order", "switches")
    return json.dumps([document.get(name) for name in told], sort_keys=True)


# ---- one case --------------------------------------------------------------------------------------------------------


def shrink_outcome(case: "Case", *, seconds: float, out: str | None) -> tuple[Outcome, str]:
    """Shrink a case; return outcome and text. Raises UnknownBug."""
    from tornpage.render.counterexample import failure_text, how_small, how_small_text, save_case

    before, small = _shrunk(case, seconds)
    if before is None or small is None:
        return Outcome("shrink", "holds", {"operations": len(case.operations)}), _HOLDS.format("shrink")
    kept_in = None if out is None else save_case(small, out)
    finding = small.finding().document() | how_small(small, len(before.case.operations))
    figures = {
        "operations_before": len(before.case.operations),
        "operations": len(small.case.operations),
        "losses_before": before.losses,
        "losses": small.losses,
        "lost_pages": small.lost_pages,
        "tries": small.tries,
        "one_minimal": int(small.one_minimal),
        "seconds": small.seconds,
    }
    outcome = Outcome(
        "shrink",
        "broken",
        figures,
        ["seconds"],
        [finding | ({} if kept_in is None else {"case_file": str(kept_in)})],
        interrupted=small.ended == "interrupt",
        unwritten=out is not None and kept_in is None,
    )
    text = failure_text(small, kept_in=str(kept_in or ""))
    return outcome, f"{text}\n\n{how_small_text(before, small)}\n\nverdict: broken"


def explain_outcome(case: "Case", *, seconds: float, page: str) -> tuple[Outcome, str]:
    """Write the page of a case, after shrinking for `seconds`. Raises UnknownBug."""
    from tornpage.properties.campaign.replay import replay, with_evidence
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explain.evidence import Witness
    from tornpage.render.counterexample import how_small, page_of

    how: dict[str, Any] | None = None
    failure: Failure | None
    if seconds:
        before, small = _shrunk(case, seconds)
        failure = small
        if before is not None and small is not None:
            how = how_small(small, len(before.case.operations))
            with choose_tracker("auto") as tracker:
                failure = with_evidence(small, tracker=tracker)
    else:
        with choose_tracker("auto") as tracker:
            failure = replay(case, tracker=tracker, witness=Witness())
    if failure is None:
        return Outcome("explain", "holds", {"operations": len(case.operations)}), _HOLDS.format("explain")
    text = page_of(failure, how)
    path = new_page(page or f"counterexample-{failure.case.token()[4:12]}.html", option="--out", overwrite=False)
    try:
        write_whole(path, text)
    except OSError as error:
        refuse(f"cannot write the page to {path}: {error.strerror}; name another --out file")
    figures = {"operations": len(failure.case.operations), "losses": failure.losses, "page_bytes": len(text.encode())}
    findings = [failure.finding().document() | {"page": str(path)}]
    is_interrupted = how is not None and how["ended"] == "interrupt"
    outcome = Outcome("explain", "broken", figures, (), findings, interrupted=is_interrupted)
    sentence = f"contract {failure.broken.contract} is broken: {failure.broken.sentence}"
    return outcome, f"{sentence}\n{path}\n\nverdict: broken"


def _case_page(case: "Case") -> str | None:
    """Return the page of a case, None if every guarantee holds. Raises UnknownBug."""
    from tornpage.properties.campaign.replay import replay
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explain.evidence import Witness
    from tornpage.render.counterexample import page_of

    with choose_tracker("auto") as tracker:
        failure = replay(case, tracker=tracker, witness=Witness())
    return None if failure is None else page_of(failure)


def new_test(name: str, directory: str) -> Path:
    """Return the path of a new test module; refuses a name or a directory that cannot be used."""
    if not _NAME.fullmatch(name):
        refuse(f"{name!r} is no name for a test: small letters, digits and _, a letter first")
    folder = Path(directory)
    path = folder / f"test_{name}.py"
    if not folder.is_dir():
        refuse(f"{folder} is no directory; name the one of your tests with --directory")
    if path.exists():
        refuse(f"{path} exists; choose another --name, or remove it")
    return path


def promote_outcome(case: "Case", *, name: str, directory: str) -> tuple[Outcome, str]:
    """Write a case as a test module, and run it once. Raises UnknownBug."""
    from tornpage.properties.campaign.replay import replay
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.render.counterexample import foreign_regression_module, regression_module

    path = new_test(name, directory)
    bug = case.settings.bug
    with choose_tracker("auto") as tracker:
        caught = replay(case, tracker=tracker) if bug else None
        found = replay(replace(case, settings=replace(case.settings, bug="")), tracker=tracker)
    module = foreign_regression_module if case.settings.target else regression_module
    promoted = Promoted(path, len(case.operations), bug, caught, found)
    return promoted.outcome(lambda symptom: module(_beside(case, path.parent), symptom))


def _beside(case: "Case", folder: Path) -> "Case":
    """Return a case whose target, if it is a file, is named relative to a folder."""
    from tornpage.properties.foreign.spec import COMMAND_PREFIX, without_arguments

    target = case.settings.target
    bare, call = without_arguments(target)
    place, _, name = bare.rpartition(":")
    if target.startswith(COMMAND_PREFIX) or not place.endswith(".py"):
        return case
    relative = os.path.relpath(place, folder)
    return replace(case, settings=replace(case.settings, target=f"{relative}:{name}{call}"))


def _shrunk(case: "Case", seconds: float) -> "tuple[Failure | None, Shrunk | None]":
    from tornpage.properties.campaign.replay import replay, shrink
    from tornpage.properties.disk.dirty import choose_tracker

    with choose_tracker("auto") as tracker:
        failure = replay(case, tracker=tracker)
        if failure is None:
            return None, None
        with shrinking_progress(seconds=seconds) as show:
            small = shrink(
                failure, tracker=tracker, tries_max=1_000_000, seconds=seconds, watch=show, keep_evidence=True
            )
            return failure, small


def replay_outcome(given: str, *, is_token: bool) -> tuple[Outcome, str]:
    """Repeat an interleaving from a token or a file text. Raises BadToken or UnknownBug.

    If it holds now, but the lines of the store have changed since, the verdict is unknown.
    """
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.interleavings.run import run_interleaving
    from tornpage.properties.explore.interleavings.token import from_text, from_token, source_has_changed
    from tornpage.render.explorations import interleaving_finding, interleaving_text

    interleaving, source = from_token(given) if is_token else from_text(given)
    changed = source_has_changed(interleaving, source)
    with choose_tracker("auto") as tracker:
        ran = run_interleaving(interleaving, tracker=tracker)
    figures = {"calls": len(ran.calls), "points": ran.trace.steps, "switches": interleaving.switches}
    if ran.broken is not None:
        finding = interleaving_finding(interleaving, ran.broken, ran)
        text = f"{interleaving_text(interleaving, ran.broken, ran)}\n\nverdict: broken"
        return Outcome("replay", "broken", figures, findings=[finding]), text
    if not changed:
        return Outcome("replay", ran.verdict.value, figures), f"verdict: {ran.verdict.value}"
    sentence = "the lines of the store have changed since, so its switches fall elsewhere"
    finding = {"code": "source-changed", "severity": "unknown", "sentence": sentence}
    return Outcome("replay", "unknown", figures, findings=[finding]), f"{sentence}\n\nverdict: unknown"


# ---- all cases again -------------------------------------------------------------------------------------------------


Is = Literal["broken", "holds now", "unknown", "cannot be read"]


@dataclass(frozen=True, slots=True)
class _Ruling:
    """One case: what its failure was ("" if unknown), what it is, and why."""

    case: str
    was: str
    verdict: Is
    why: str


def judged_again(cases: Sequence[GivenCase]) -> tuple[Outcome, str]:
    """Judge cases again: broken if one is, else unknown if one could not be judged."""
    from tornpage.properties.disk.dirty import choose_tracker

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
    return outcome, _again_text(rulings, verdict)


def _ruling(given: GivenCase, tracker: "DirtyTracker") -> _Ruling:
    from tornpage.properties.bug_ids import UnknownBug
    from tornpage.properties.foreign.protocol import TargetUnusable
    from tornpage.properties.program.case import BadToken

    try:
        verdict, why = _judged(given, tracker)
    except (BadToken, UnknownBug, TargetUnusable) as error:
        verdict, why = "cannot be read", str(error)
    return _Ruling(given.name, given.was, verdict, why)


def _judged(given: GivenCase, tracker: "DirtyTracker") -> tuple[Is, str]:
    from tornpage.properties.campaign.replay import replay

    if given.is_interleaving or given.kind is not None:
        outcome, _ = _replayed(given)
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


def _replayed(given: GivenCase) -> tuple[Outcome, str]:
    """Repeat an interleaving, or a case of several processes."""
    if given.kind is not None:
        return replay_process_case(given.kind, given)
    return replay_outcome(given.text, is_token=given.is_token)


def _again_text(rulings: Sequence[_Ruling], verdict: str) -> str:
    lines = []
    for ruling in rulings:
        lines.append(printable(f"{ruling.verdict:<16}{ruling.case}"))
        lines += [printable(f"{'':<16}was  {ruling.was}")] if ruling.was else []
        lines += [printable(f"{'':<16}is   {ruling.why}")] if ruling.why else []
    return "\n".join([*lines, "", f"verdict: {verdict}"])


# ---- pages beside a report -------------------------------------------------------------------------------------------


def write_case_pages(
    directory: Path, *, pages_max: int, progress: Callable[[str], None] = lambda name: None
) -> list[Path]:
    """Write missing pages of a run's causes, worst first, at most `pages_max`; return them.

    A case that no longer fails, or cannot be read, gets a line on standard error instead of a page. Raises ReportError
    if the directory is no run directory, and OSError.
    """
    from tornpage.outcomes.processes.clusters import cluster_page_of
    from tornpage.properties.bug_ids import UnknownBug
    from tornpage.properties.foreign.protocol import TargetUnusable
    from tornpage.properties.program.packing import BadToken
    from tornpage.reports.results.findings import page_name
    from tornpage.reports.results.tables import read_run

    written: list[Path] = []
    for token in _tokens_without_page(read_run(directory)):
        if len(written) == pages_max:
            break
        given = text_of(token)
        if given.is_interleaving or given.kind in (GROUP, RAFT):
            continue
        progress(given.name)
        try:
            page = cluster_page_of(given) if given.kind is CLUSTER else _case_page(given.case())
        except (BadToken, UnknownBug, TargetUnusable) as error:
            warn(f"no page for {given.name}: {error}")
            continue
        if page is None:
            warn(f"no page for {given.name}: every guarantee holds now")
            continue
        path = directory / page_name(token)
        write_whole(path, page)
        written.append(path)
    return written


def _tokens_without_page(run: "Run") -> Iterator[str]:
    """Yield a token for each cause without a page, then tokens of other counterexamples."""
    from tornpage.reports.results.causes import causes_of

    for cause in causes_of(run.record.findings):
        token = next((finding.token for finding in cause.findings if finding.token), None)
        if token and not cause.pages:
            yield token
    known = {finding.token for finding in run.record.findings}
    for row in run.page_map.rows if run.page_map else ():
        if row.token not in known and not row.page:
            yield row.token
