"""The verdict of a run in words, and what the run did not check."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tornpage.reports.activation_names import shown_names
from tornpage.reports.promises import promise_of
from tornpage.reports.results.causes import Cause, causes_of
from tornpage.reports.results.mutants import summarise_mutants
from tornpage.reports.results.summaries import summarise_activation
from tornpage.reports.results.tables import Run, StepRow
from tornpage.reports.text import counted, listed

__all__ = ["BrokenPromise", "Headline", "gaps_of", "headline_of", "planted_bug"]


_BUG_OPTION = re.compile(r"--bug[= ](\S+)")
_OPERATIONS_MAX = 8
"""The operations of a program in the banner."""
_PROMISES_MAX = 3
"""The broken promises in the banner; the findings have all."""


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """A promise that the run found broken.

    It has the sentence of the contract, what was found, the number of the cause, and the smallest program.
    """

    number: int
    name: str
    promise: str
    seen: str
    cause: int
    page: str
    program: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Headline:
    """One word, one sentence, and the tone of the banner: good, bad or unsure.

    `planted` is the bug that the run was given, or empty.
    """

    word: str
    sentence: str
    tone: str
    planted: str = ""
    broken: tuple[BrokenPromise, ...] = ()


_HEADLINES: dict[str | None, Headline] = {
    "holds": Headline("holds", "Every promise that this run checked was kept.", "good"),
    "broken": Headline("broken", "The store broke a promise.", "bad"),
    "vacuous": Headline(
        "vacuous", "Part of the test had no effect, so this run shows nothing about that part.", "unsure"
    ),
    "unknown": Headline("unknown", "Part of the result is undecided. That is not a pass.", "unsure"),
    "harness": Headline("harness", "The tester failed; the store was not judged.", "bad"),
    None: Headline("no verdict", "This run judged nothing.", "unsure"),
}
_SCOREBOARD: dict[str | None, Headline] = {
    "holds": Headline("all killed", "Every planted bug that was tried was found by at least one strategy.", "good"),
    "vacuous": Headline(
        "some live", "No strategy found some planted bugs, so runs without findings show nothing about such bugs.",
        "unsure",
    ),
}  # fmt: skip
"""The banner of a run that searched for planted bugs: it judges the tester, not the store."""
_NAMED_MAX = 8
"""The number of names in a sentence."""
_JOB = "prove"
"""The command that does everything: a part that is missing there is a gap. Other commands do one thing."""
_NOT_RUN = (
    ("steps", "Single steps were not recorded."),
    ("activation", "No crash campaign was run, so no fault was injected."),
    ("discovery", "No discovery curve was recorded, so it is unknown whether more crash states would show more."),
    ("page_map", "No counterexample was recorded, not even that of a planted bug."),
    ("put_latency", "Put latency was not simulated."),
    ("at_risk", "Messages at risk were not simulated."),
    ("stalls", "Stalls at file rolls were not simulated."),
    ("audit", "No store was audited."),
)


def planted_bug(run: Run) -> str:
    """Return the bug that the run was given on purpose, or nothing."""
    named = (run.record.settings or {}).get("bug")
    found = _BUG_OPTION.search(run.record.arguments)
    return str(named) if named else found[1] if found else ""


def headline_of(run: Run) -> Headline:
    """Return the banner of a run."""
    verdict = run.record.verdict
    if run.record.interrupted:
        said = f"; the verdict until then: {verdict}" if verdict else ""
        return Headline("interrupted", f"The run was interrupted{said}.", "unsure")
    if run.mutants is not None and run.mutants.rows and run.scoreboard is None:
        found = summarise_mutants(run.mutants.rows)
        return Headline(f"{found.countable.said} of the mutants killed", found.sentence, "")
    unfamiliar = Headline(
        f"{verdict}", "This version of tornpage does not know this verdict; use the version that wrote it.", "unsure"
    )
    headlines = _HEADLINES if run.scoreboard is None else {**_HEADLINES, **_SCOREBOARD}
    headline = headlines.get(verdict, unfamiliar)
    if run.scoreboard is not None:
        return headline
    broken = tuple(filter(None, map(_broken_promise, causes_of(run.record.findings))))[:_PROMISES_MAX]
    said_before = {each.number: each.cause for each in reversed(broken)}
    broken = tuple(
        each if said_before[each.number] == each.cause else replace(each, promise="the same promise") for each in broken
    )
    bug = planted_bug(run)
    if bug and verdict == "broken":
        sentence = f"The bug {bug} was planted on purpose, and the search found it. The store itself is not at fault."
        return replace(headline, word="broken by a planted bug", sentence=sentence, planted=bug, broken=broken)
    if bug and verdict == "holds":
        sentence = f"The bug {bug} was planted on purpose, and the search did not find it."
        return Headline("planted bug not found", sentence, "unsure", planted=bug)
    return replace(headline, broken=broken)


def _broken_promise(cause: Cause) -> BrokenPromise | None:
    promise = promise_of(cause.contract)
    if promise is None or cause.contract is None or cause.severity != "broken":
        return None
    first = cause.findings[0]
    seen = cause.sentence
    if first.expected or first.found:
        seen += f" (expected {first.expected or 'nothing'}; found {first.found or 'nothing'})"
    program = next((finding.program for finding in cause.findings if finding.program), ())
    shown = program if len(program) <= _OPERATIONS_MAX else ()
    return BrokenPromise(
        cause.contract, promise.name, promise.sentence, seen, cause.number, next(iter(cause.pages), ""), shown
    )


def gaps_of(run: Run) -> list[str]:
    """Return what the run did not check, one sentence each, the most serious first.

    What another command checks is no gap, except in the main job.
    """
    gaps = [f"The step “{row.step}” judged nothing: {row.sentence}" for row in _steps(run, None)]
    gaps += [f"The step “{row.step}” was vacuous: {row.sentence}" for row in _steps(run, "vacuous")]
    gaps += [f"The step “{row.step}” is undecided: {row.sentence}" for row in _steps(run, "unknown")]
    if run.activation is not None and run.activation.rows:
        gaps += _activation_gaps(run)
    if run.audit is not None:
        undecided = [row.store for row in run.audit.rows if row.verdict not in ("holds", "broken")]
        gaps += [f"The audit of {store} has no verdict." for store in undecided]
    if run.scoreboard is not None:
        never = dict.fromkeys(row.bug for row in run.scoreboard.rows)
        for row in run.scoreboard.rows:
            if row.kills:
                never.pop(row.bug, None)
        if never:
            gaps.append(f"No strategy found these planted bugs: {_some(list(never), 'Scoreboard')}.")
        lost = sum(row.lost for row in run.scoreboard.rows)
        gaps += [f"{counted(lost, 'trial has', 'trials have')} no result."] if lost else []
    if run.mutants is not None:
        gaps += _mutant_gaps(run)
    for name, sentence in _NOT_RUN if run.record.command == _JOB and run.scoreboard is None else ():
        table = getattr(run, name)
        if table is None:
            gaps.append(sentence)
        elif not table.rows:
            gaps.append(f"{sentence} (The table is empty.)")
    if run.put_latency or run.at_risk or run.stalls:
        gaps.append("Latencies, stalls and messages at risk come from a model of a device, not from this disk.")
    return gaps


def _activation_gaps(run: Run) -> list[str]:
    assert run.activation is not None
    found = summarise_activation(run.activation.rows)
    idle = len(found.never_fired) + len(found.never_mattered)
    if idle and run.record.verdict == "broken":
        count = f"{idle} of {len(found.rows)}"
        return [f"The search ended at its failures; {count} faults, rules and judges had no effect until then."]
    gaps = []
    if found.never_fired:
        gaps.append(f"Never happened: {_some(shown_names(found.never_fired), 'Crash exploration')}.")
    if found.never_mattered:
        names = _some(shown_names(found.never_mattered), "Crash exploration")
        gaps.append(f"Happened without effect, which shows nothing: {names}.")
    return gaps


def _mutant_gaps(run: Run) -> list[str]:
    assert run.mutants is not None
    found = summarise_mutants(run.mutants.rows)
    counts = dict(found.survivors)
    gaps = []
    if counts.get("difference not judged"):
        gaps.append(f"No judge objects to {_mutants(counts['difference not judged'])} with other crash states.")
    if counts.get("not reached"):
        gaps.append(f"No trial runs the changed code of {_mutants(counts['not reached'])}.")
    if found.weakest:
        gaps.append(f"The lowest kill rates by package: {listed(list(found.weakest))}.")
    missing = found.mutants - found.all.total
    return gaps + ([f"There is no result yet of {_mutants(missing)}."] if missing else [])


def _mutants(count: int) -> str:
    return counted(count, "mutant")


def _some(names: Sequence[str], section: str) -> str:
    """Return names as a list; only the first of many, since a section of the page has all."""
    if len(names) <= _NAMED_MAX:
        return listed(list(names))
    return f"{', '.join(names[:_NAMED_MAX])} and {len(names) - _NAMED_MAX} more (all are in “{section}”)"


def _steps(run: Run, verdict: str | None) -> list[StepRow]:
    return [row for row in run.steps.rows if row.verdict == verdict] if run.steps else []
