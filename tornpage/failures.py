"""How a failure is told: one sentence, the smallest program, the crash, why that is legal, expected against found, how
to run it again, where it is kept.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from model.operations import Crash
from properties.campaign.replay import Failure
from properties.program.case import Case, describe
from tornpage.document import warn

if TYPE_CHECKING:
    from properties.explain.page_map import PageMap

__all__ = ["failure_finding", "failure_text", "program_lines", "save_case"]

_SENTENCES_MAX = 6


def failure_finding(failure: Failure) -> dict[str, Any]:
    """Return a failure as a finding of the JSON document."""
    broken = failure.broken
    return {
        "code": f"contract-{broken.contract}",
        "severity": "broken",
        "sentence": broken.sentence,
        "expected": broken.expected,
        "found": broken.found,
        "program": [describe(operation) for operation in failure.case.operations],
        "settings": failure.case.document()["settings"],
        "losses": failure.losses,
        "lost_pages": failure.lost_pages,
        "token": failure.case.token(),
    }


def failure_text(failure: Failure, *, kept_in: str = "", seen: str = "") -> str:
    """Return a failure for people; `kept_in` is where its case file lies, `seen` when and how often it was met.

    Carries the case out again, for what the disk held.
    """
    broken, case = failure.broken, failure.case
    lines = [f"contract {broken.contract} is broken: {broken.sentence}", "", "  program", *program_lines(case)]
    lines += _crash_lines(failure)
    if broken.expected or broken.found:
        lines += ["", f"  expected  {broken.expected or '(nothing)'}", f"  found     {broken.found or '(nothing)'}"]
    bug = f" with the planted bug {case.settings.bug}" if case.settings.bug else ""
    name = f" {case.settings.target}" if case.settings.target else ""
    lines += ["", f"  the store{name}{bug} and the model disagree", ""]
    lines += ["  run it again:", f"    tornpage replay {case.token()}"]
    given = kept_in or "with the same token"
    page = "" if case.settings.target else " as a page: tornpage explain,"
    lines += [f"  smaller: tornpage shrink,{page} as a test: tornpage promote; {given}"]
    lines += [f"  kept in {kept_in}"] if kept_in else []
    return "\n".join([*lines, *([f"  {seen}"] if seen else [])])


def program_lines(case: Case) -> list[str]:
    """Return the operations of a case, numbered from 1, and its settings."""
    settings = ", ".join(f"{name}={value}" for name, value in case.document()["settings"].items()) or "defaults"
    program = (f"    {number}. {describe(operation)}" for number, operation in enumerate(case.operations, 1))
    return [*program, f"  settings  {settings}"]


def _crash_lines(failure: Failure) -> list[str]:
    """Return the descriptor of the last crash: the point, what was lost, and why a disk may lose it."""
    from properties.disk.dirty import choose_tracker
    from properties.explain.page_map import page_map

    operations = failure.case.operations
    numbers = [number for number, operation in enumerate(operations, 1) if isinstance(operation, Crash)]
    if not numbers:
        return []
    crash = operations[numbers[-1] - 1]
    assert isinstance(crash, Crash)
    inside = f"{crash.back} events before the answer of" if crash.back else "at rest after"
    where = f"{inside} operation {numbers[-1] - 1}" if numbers[-1] > 1 else f"{inside} the open"
    if crash.kill:
        return ["", f"  crash     process killed, {where}; everything written is there"]
    with choose_tracker("auto") as tracker:
        shown = page_map(failure.case, tracker=tracker)
    assert shown is not None
    lost = _lost(shown)
    legal = _why_legal(shown)
    more = [f"    and {len(legal) - _SENTENCES_MAX} more"] if len(legal) > _SENTENCES_MAX else []
    return [
        "",
        f"  crash     power loss on the disk {shown.disk}, {where}",
        f"  lost      {'; '.join(lost) or 'nothing'}",
        *(["  legal because", *(f"    {sentence}" for sentence in legal[:_SENTENCES_MAX]), *more] if legal else []),
    ]


def _lost(shown: "PageMap") -> list[str]:
    """Return what was lost: pages by file and fate as name[first..last], then sizes and names."""
    pages: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for page in shown.pages:
        if page.fate in ("lost", "older", "torn"):
            pages[_short(page.file), page.fate].append(page.number)
    said = []
    for (file, fate), numbers in pages.items():
        ends = [n for n in numbers if n + 1 not in numbers]
        begins = [n for n in numbers if n - 1 not in numbers]
        ranges = "".join(f"[{first}..{last}]" for first, last in zip(begins, ends, strict=True))
        said.append(f"{file}{ranges}" + ("" if fate == "lost" else f" {fate}"))
    facts = [fact for fact in shown.facts if fact.fate != "kept"]
    return said + [_short(fact.fact) + ("" if fact.fate == "lost" else f" ({fact.fate})") for fact in facts]


def _short(path: str) -> str:
    return path.replace("/store/", "")


def _why_legal(shown: "PageMap") -> list[str]:
    """Return the sentences of the certificate about what was lost; a lost name has none, since nothing holds it."""
    pages = [page for page in shown.pages if page.fate in ("lost", "older", "torn")]
    subjects = [f"page {page.number} of {page.file}:" for page in pages]
    facts = [fact.fact for fact in shown.facts if fact.fate != "kept"]
    subjects += [f"{fact.removeprefix('size ')}:" for fact in facts if fact.startswith("size ")]
    told = [sentence for sentence in shown.sentences if sentence.startswith(tuple(subjects))] if subjects else []
    return told + [f"{fact}: its directory was not synced behind it" for fact in facts if not fact.startswith("size ")]


def save_case(failure: Failure, out: str) -> Path | None:
    """Write the case file and return its path; None, and a line that says why, when the disk refuses.

    The token is printed in any case, so nothing is lost.
    """
    directory = Path(out)
    path = directory / f"case-{failure.case.token()[4:12]}.json"
    was = {"contract": failure.broken.contract, "sentence": failure.broken.sentence}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({**failure.case.document(), "was": was}, indent=2) + "\n")
    except OSError as error:
        warn(f"case file not written to {directory}: {error.strerror}; the token says the same")
        return None
    return path
