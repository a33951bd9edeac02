"""One counterexample as commands tell it: made small, explained on a page, kept as a test."""

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage import __version__
from tornpage.document import Outcome, refuse
from tornpage.failures import failure_finding, failure_text, save_case
from tornpage.progress import shrinking_progress

if TYPE_CHECKING:
    from properties.campaign.replay import Failure, Shrunk
    from properties.program.case import Case

__all__ = ["case_page", "explain_outcome", "promote_outcome", "shrink_outcome"]

_HOLDS = "every promise holds: there is nothing to {}\n\nverdict: holds"
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def shrink_outcome(case: "Case", *, seconds: float, out: str | None) -> tuple[Outcome, str]:
    """Make a case small; return outcome and text. Raises UnknownBug."""
    before, small = _shrunk(case, seconds)
    if before is None or small is None:
        return Outcome("shrink", "holds", {"operations": len(case.operations)}), _HOLDS.format("shrink")
    kept_in = None if out is None else save_case(small, out)
    finding = failure_finding(small) | _how(small, len(before.case.operations))
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
    return outcome, f"{text}\n\n{_how_text(before, small)}\n\nverdict: broken"


def explain_outcome(case: "Case", *, seconds: float, page: str) -> tuple[Outcome, str]:
    """Write the page of a case, made small before if there are seconds for it. Raises UnknownBug."""
    from properties.campaign.replay import replay
    from properties.disk.dirty import choose_tracker

    if case.settings.target:
        refuse("there are pages of cases of our own store alone; `tornpage replay` tells this one")
    how: dict[str, Any] | None = None
    failure: Failure | None
    if seconds:
        before, small = _shrunk(case, seconds)
        failure = small
        if before is not None and small is not None:
            how = _how(small, len(before.case.operations))
    else:
        with choose_tracker("auto") as tracker:
            failure = replay(case, tracker=tracker)
    if failure is None:
        return Outcome("explain", "holds", {"operations": len(case.operations)}), _HOLDS.format("explain")
    text = _page(failure, how)
    path = Path(page or f"counterexample-{failure.case.token()[4:12]}.html")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        refuse(f"cannot write the page to {path}: {error.strerror}; name another --out file")
    figures = {"operations": len(failure.case.operations), "losses": failure.losses, "page_bytes": len(text.encode())}
    findings = [failure_finding(failure) | {"page": str(path)}]
    is_interrupted = how is not None and how["ended"] == "interrupt"
    outcome = Outcome("explain", "broken", figures, (), findings, interrupted=is_interrupted)
    sentence = f"contract {failure.broken.contract} is broken: {failure.broken.sentence}"
    return outcome, f"{sentence}\n{path}\n\nverdict: broken"


def case_page(case: "Case") -> str | None:
    """Return the page of a case as it is, None if every promise holds. Raises UnknownBug."""
    from properties.campaign.replay import replay
    from properties.disk.dirty import choose_tracker

    with choose_tracker("auto") as tracker:
        failure = replay(case, tracker=tracker)
    return None if failure is None else _page(failure, None)


def _page(failure: "Failure", how: dict[str, Any] | None) -> str:
    """Return the page of a failure; `how` tells how it was made small."""
    from properties.disk.dirty import choose_tracker
    from properties.explain.evidence import account_of
    from reports.counterexample import read_counterexample, render_counterexample

    with choose_tracker("auto") as tracker:
        account = account_of(failure, tracker=tracker)
    return render_counterexample(read_counterexample({**account, "version": __version__, "shrinking": how}))


def promote_outcome(case: "Case", *, name: str, directory: str) -> tuple[Outcome, str]:
    """Write a case as a test module, and try whether it holds now. Raises UnknownBug."""
    from properties.campaign.replay import replay
    from properties.disk.dirty import choose_tracker

    if not _NAME.fullmatch(name):
        refuse(f"{name!r} is no name for a test: small letters, digits and _, a letter first")
    folder = Path(directory)
    path = folder / f"test_{name}.py"
    if not folder.is_dir():
        refuse(f"{folder} is no directory; name the one of your tests with --directory")
    if path.exists():
        refuse(f"{path} is there already; choose another --name, or take it away")
    bug = case.settings.bug
    with choose_tracker("auto") as tracker:
        caught = replay(case, tracker=tracker) if bug else None
        found = replay(replace(case, settings=replace(case.settings, bug="")), tracker=tracker)
    if bug and caught is None:
        refuse(f"the case does not catch {bug} any more, so there is nothing to keep")
    symptom = (found or caught).broken.sentence if found or caught else "a case that was broken once"  # type: ignore[union-attr]
    try:
        path.write_text(_module(case, symptom), encoding="utf-8")
    except OSError as error:
        refuse(f"cannot write {path}: {error.strerror}; name another --directory")
    verdict = "holds" if found is None else "broken"
    findings = [] if found is None else [failure_finding(found)]
    outcome = Outcome("promote", verdict, {"operations": len(case.operations)}, findings=findings)
    outcome.extra = {"test": str(path)}
    state = "the store holds now" if found is None else f"it fails until the store is mended: {found.broken}"
    catches = f", and catches {bug}" if bug else ""
    return outcome, f"{path}\n{state}{catches}\n\nverdict: {verdict}"


def _shrunk(case: "Case", seconds: float) -> "tuple[Failure | None, Shrunk | None]":
    from properties.campaign.replay import replay, shrink
    from properties.disk.dirty import choose_tracker

    with choose_tracker("auto") as tracker:
        failure = replay(case, tracker=tracker)
        if failure is None:
            return None, None
        with shrinking_progress(seconds=seconds) as show:
            return failure, shrink(failure, tracker=tracker, tries_max=1_000_000, seconds=seconds, watch=show)


def _how(small: "Shrunk", operations_before: int) -> dict[str, Any]:
    return {
        "one_minimal": small.one_minimal,
        "ended": small.ended,
        "tries": small.tries,
        "operations_before": operations_before,
        "history": [asdict(step) for step in small.history],
    }


def _how_text(before: "Failure", small: "Shrunk") -> str:
    lines = [
        f"{step.what:<24}{step.tries:>6} tries {step.operations:>5} operations {step.losses:>5} lost facts"
        for step in small.history
    ]
    counts = f"{len(before.case.operations)} operations became {len(small.case.operations)}"
    ended = {"time": "time ran out", "tries": "tries ran out", "interrupt": "it was interrupted"}
    end = "1-minimal" if small.one_minimal else f"not 1-minimal: {ended.get(small.ended, small.ended)}"
    return "\n".join([*lines, f"{counts} in {small.tries} tries, {small.seconds:.1f} s: {end}"])


def _module(case: "Case", symptom: str) -> str:
    """Return a test module that runs a case; what comes from the case cannot leave its text."""
    import json

    document = json.dumps(case.document(), indent=1).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    said = symptom.replace("\\", "\\\\").replace('"', "'")
    bug = case.settings.bug
    head = ["from dataclasses import replace", ""] if bug else []
    lines = [
        f'"""Symptom: {said}.',
        "",
        "Kept by `tornpage promote`. Cause and fix: say them here once they are known.",
        '"""',
        "",
        *head,
        "from properties.program.case import Case",
        "from properties.campaign.replay import replay",
        "from properties.disk.dirty import choose_tracker",
        "",
        f'CASE = Case.from_text("""\\\n{document}""")',
        "",
        "",
        "def test_the_store_holds_what_it_promises() -> None:",
        '    """The case as it was found, in the store as it is."""',
    ]
    if bug:
        lines += [
            '    without = replace(CASE, settings=replace(CASE.settings, bug=""))',
            '    with choose_tracker("auto") as tracker:',
            "        assert replay(without, tracker=tracker) is None",
            "",
            "",
            "def test_the_planted_bug_is_still_caught() -> None:",
            '    """Else the tester has lost an eye."""',
            '    with choose_tracker("auto") as tracker:',
            "        assert replay(CASE, tracker=tracker) is not None",
        ]
    else:
        lines += [
            '    with choose_tracker("auto") as tracker:',
            "        assert replay(CASE, tracker=tracker) is None",
        ]
    return "\n".join([*lines, ""])
