"""A failure as text, as a case file, as a page and as a regression test.

The text: one sentence, the smallest program, the crash, why that is legal, expected against found, how to run it
again, where it is kept. Everything is rendered from the evidence of the failure.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage import __version__
from tornpage.cli.document import warn
from tornpage.model.operations import Close, Crash, Open
from tornpage.properties.campaign.replay import Failure, Shrunk
from tornpage.properties.foreign.trial import is_in_first_open
from tornpage.properties.judge.rulings import counted
from tornpage.properties.program.case import Case, describe
from tornpage.run.writing import write_whole

if TYPE_CHECKING:
    from tornpage.properties.explain.page_map import PageMap
    from tornpage.properties.program.step_case import StepCase

__all__ = [
    "crash_lines",
    "failure_text",
    "failure_texts",
    "foreign_regression_module",
    "how_small",
    "how_small_text",
    "page_of",
    "process_regression_module",
    "program_lines",
    "regression_module",
    "save_case",
    "saved_finding",
]

_SENTENCES_MAX = 6
_APART = "inside the very first open, while the store is created (--from first-answer leaves such crashes out):"


def failure_text(failure: Failure, *, kept_in: str = "", seen: str = "") -> str:
    """Return a failure as text, with its case file and when and how often it was `seen`.

    The content of the disk comes from the evidence; without evidence the crash is left out.
    """
    broken, case = failure.broken, failure.case
    lines = [f"contract {broken.contract} is broken: {broken.sentence}", "", "  program", *program_lines(case)]
    lines += ["", *(f"  {line}" for line in told)] if (told := crash_lines(failure)) else []
    if broken.expected or broken.found:
        lines += ["", f"  expected  {broken.expected or '(nothing)'}", f"  found     {broken.found or '(nothing)'}"]
    bug = f" with the planted bug {case.settings.bug}" if case.settings.bug else ""
    name = f" {case.settings.target}" if case.settings.target else ""
    lines += ["", f"  the store{name}{bug} and the model disagree", ""]
    lines += ["  run it again:", f"    tornpage replay {case.token()}"]
    given = kept_in or "with the same token"
    lines += [f"  smaller: tornpage shrink, as a page: tornpage explain, as a test: tornpage promote; {given}"]
    lines += [f"  kept in {kept_in}"] if kept_in else []
    return "\n".join([*lines, *([f"  {seen}"] if seen else [])])


def failure_texts(failures: Sequence[Failure]) -> list[str]:
    """Return the failures of a foreign store as texts.

    The first is in full, and the others are in short. The failure of a crash inside the very first open stands
    apart, in full, at the end.
    """
    apart = [failure for failure in failures if is_in_first_open(failure.case)]
    others = [failure for failure in failures if failure not in apart]
    told = [failure_text(failure) for failure in others[:1]]
    if others[1:]:
        short = (f"    {each.broken}\n      tornpage replay {each.case.token()}" for each in others[1:])
        told.append("\n".join(["  other failures:", *short]))
    return told + [f"{_APART}\n\n{failure_text(failure)}" for failure in apart]


def program_lines(case: Case) -> list[str]:
    """Return the operations of a case, numbered from 1, and its settings."""
    settings = ", ".join(f"{name}={value}" for name, value in case.document()["settings"].items()) or "defaults"
    notes = _notes(case) if case.settings.target else {}
    program = (
        f"    {number}. {describe(operation)}" + (f"  # {notes[number]}" if number in notes else "")
        for number, operation in enumerate(case.operations, 1)
    )
    return [*program, f"  settings  {settings}"]


def _notes(case: Case) -> dict[int, str]:
    """Return notes on implicit closes and on crashes before the last, by operation number."""
    notes: dict[int, str] = {}
    is_open = True
    last = max((n for n, operation in enumerate(case.operations, 1) if isinstance(operation, Crash)), default=0)
    for number, operation in enumerate(case.operations, 1):
        if isinstance(operation, Open) and is_open:
            notes[number] = "closes the store first"
        if isinstance(operation, Crash) and operation.back and number != last:
            what = "killed" if operation.kill else "power lost"
            during = f"operation {number - 1}" if number > 1 else "the first open"
            notes[number] = f"{what} {counted(operation.back, 'event')} before the answer of {during}"
        is_open = not isinstance(operation, Close)
    return notes


def crash_lines(failure: Failure) -> list[str]:
    """Return the last crash of a failure: where, lost writes, why a disk may lose them."""
    operations = failure.case.operations
    numbers = [number for number, operation in enumerate(operations, 1) if isinstance(operation, Crash)]
    if not numbers:
        return []
    crash = operations[numbers[-1] - 1]
    assert isinstance(crash, Crash)
    inside = f"{counted(crash.back, 'event')} before the answer of" if crash.back else "at rest after"
    where = f"{inside} operation {numbers[-1] - 1}" if numbers[-1] > 1 else f"{inside} the open"
    if crash.kill:
        return [f"crash     process killed, {where}; everything written is there"]
    shown = None if failure.evidence is None else failure.evidence.page_map
    if shown is None:
        return []
    lost = _lost(shown)
    if not lost and failure.case.settings.target:
        return [f"crash     {where}; the power loss lost nothing, so a killed process shows the same"]
    legal = _why_legal(shown)
    more = [f"  and {len(legal) - _SENTENCES_MAX} more"] if len(legal) > _SENTENCES_MAX else []
    return [
        f"crash     power loss on the disk {shown.disk}, {where}",
        f"lost      {'; '.join(lost) or 'nothing'}",
        *(["legal because", *(f"  {sentence}" for sentence in legal[:_SENTENCES_MAX]), *more] if legal else []),
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
    """Return sentences of the certificate about lost writes; lost names have none."""
    pages = [page for page in shown.pages if page.fate in ("lost", "older", "torn")]
    subjects = [f"page {page.number} of {page.file}:" for page in pages]
    facts = [fact.fact for fact in shown.facts if fact.fate != "kept"]
    subjects += [f"{fact.removeprefix('size ')}:" for fact in facts if fact.startswith("size ")]
    told = [sentence for sentence in shown.sentences if sentence.startswith(tuple(subjects))] if subjects else []
    return told + [f"{fact}: its directory was not synced afterwards" for fact in facts if not fact.startswith("size ")]


def saved_finding(failure: Failure, out: str | None, **more: Any) -> dict[str, Any]:
    """Return the entry of a run document with `more` keys; write the case file to `out`."""
    path = None if out is None else save_case(failure, out)
    return failure.finding().document() | more | ({} if path is None else {"case_file": str(path)})


def save_case(failure: Failure, out: str) -> Path | None:
    """Write the case file and return its path; print a line and return None if it fails.

    The token is printed in any case, so nothing is lost.
    """
    directory = Path(out)
    path = directory / f"case-{failure.case.token()[4:12]}.json"
    was = {"contract": failure.broken.contract, "sentence": failure.broken.sentence}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({**failure.case.document(), "was": was}, indent=2) + "\n")
    except OSError as error:
        warn(f"case file not written to {directory}: {error.strerror}; the token has the same content")
        return None
    return path


def page_of(failure: Failure, how: dict[str, Any] | None = None) -> str:
    """Return the page of a failure with an explanation; `how` describes its shrinking."""
    from tornpage.reports.pages.counterexample import read_counterexample, render_counterexample

    account = failure.account()
    assert account is not None
    return render_counterexample(read_counterexample({**account, "version": __version__, "shrinking": how}))


def how_small(small: Shrunk, operations_before: int) -> dict[str, Any]:
    """Return the shrinking of a failure as plain values."""
    return {
        "one_minimal": small.one_minimal,
        "ended": small.ended,
        "tries": small.tries,
        "operations_before": operations_before,
        "history": [asdict(step) for step in small.history],
    }


def how_small_text(before: Failure, small: Shrunk) -> str:
    """Return the shrinking of a failure as text."""
    lines = [
        f"{step.what:<24}{counted(step.tries, 'try', 'tries'):>12} {counted(step.operations, 'operation'):>16} "
        f"{counted(step.losses, 'lost write'):>17}"
        for step in small.history
    ]
    counts = f"{counted(len(before.case.operations), 'operation')} became {len(small.case.operations)}"
    ended = {"time": "time ran out", "tries": "tries ran out", "interrupt": "it was interrupted"}
    end = "1-minimal" if small.one_minimal else f"not 1-minimal: {ended.get(small.ended, small.ended)}"
    return "\n".join([*lines, f"{counts} in {counted(small.tries, 'try', 'tries')}, {small.seconds:.1f} s: {end}"])


def foreign_regression_module(case: Case, symptom: str) -> str:
    """Return a test module that runs a case of a foreign store by public names only."""
    document, said = _literals(case, symptom)
    lines = [
        f'"""Symptom: {said}.',
        "",
        "Kept by `tornpage promote`. Cause and fix: write them here once they are known.",
        '"""',
        "",
        "from tornpage.testing import assert_case_holds",
        "",
        f'CASE = """\\\n{document}"""',
        "",
        "",
        "def test_the_store_keeps_its_promises() -> None:",
        '    """Run the program below again. A relative path of the target starts at this file."""',
        *(f"    # {line.strip()}" for line in program_lines(case)[:-1]),
        "    assert_case_holds(CASE)",
    ]
    return "\n".join([*lines, ""])


def _literals(case: "Case | StepCase[Any, Any]", symptom: str) -> tuple[str, str]:
    """Return the document of a case and its symptom as text that cannot end a literal."""
    document = json.dumps(case.document(), indent=1).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return document, symptom.replace("\\", "\\\\").replace('"', "'")


def regression_module(case: Case, symptom: str) -> str:
    """Return a test module that runs a case, with the text of the case escaped."""
    return _module(case, symptom, kind=("case", "Case"), run=("campaign", "replay"))


def process_regression_module(case: "StepCase[Any, Any]", symptom: str, *, replay: tuple[str, str]) -> str:
    """Return a test module that runs a case of several processes.

    The text of the case is escaped. `replay` is folder and name of the function that runs it.
    """
    kind = type(case).__module__.rpartition(".")[2], type(case).__name__
    return _module(case, symptom, kind=kind, run=replay)


def _module(case: "Case | StepCase[Any, Any]", symptom: str, *, kind: tuple[str, str], run: tuple[str, str]) -> str:
    """Return a test module.

    `kind` is module and name of the case, `run` is folder and name of the function.
    """
    document, said = _literals(case, symptom)
    bug = case.settings.bug
    head = ["from dataclasses import replace", ""] if bug else []
    lines = [
        f'"""Symptom: {said}.',
        "",
        "Kept by `tornpage promote`. Add cause and fix here when they are known.",
        '"""',
        "",
        *head,
        f"from tornpage.properties.program.{kind[0]} import {kind[1]}",
        f"from tornpage.properties.{run[0]}.replay import {run[1]}",
        "from tornpage.properties.disk.dirty import choose_tracker",
        "",
        f'CASE = {kind[1]}.from_text("""\\\n{document}""")',
        "",
        "",
        "def test_the_store_holds_what_it_promises() -> None:",
        '    """The case that was found, on the present store."""',
    ]
    if bug:
        lines += [
            '    without = replace(CASE, settings=replace(CASE.settings, bug=""))',
            '    with choose_tracker("auto") as tracker:',
            f"        assert {run[1]}(without, tracker=tracker) is None",
            "",
            "",
            "def test_the_planted_bug_is_still_caught() -> None:",
            '    """Else the tester has lost an eye."""',
            '    with choose_tracker("auto") as tracker:',
            f"        assert {run[1]}(CASE, tracker=tracker) is not None",
        ]
    else:
        lines += [
            '    with choose_tracker("auto") as tracker:',
            f"        assert {run[1]}(CASE, tracker=tracker) is None",
        ]
    return "\n".join([*lines, ""])
