"""The verdict of a run in words, and what the run did not check."""

from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.reports.results.summaries import summarise_activation
from tornpage.reports.results.tables import Run, StepRow
from tornpage.reports.text import listed

__all__ = ["Headline", "gaps_of", "headline_of"]


@dataclass(frozen=True, slots=True)
class Headline:
    """One word, one sentence, and the tone of the banner: good, bad or unsure."""

    word: str
    sentence: str
    tone: str


_HEADLINES: dict[str | None, Headline] = {
    "holds": Headline("holds", "Every promise that this run checked was kept.", "good"),
    "broken": Headline(
        "broken", "The store broke a promise. The findings below name it and show how to replay it.", "bad"
    ),
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


def headline_of(run: Run) -> Headline:
    """Return the banner of a run."""
    verdict = run.record.verdict
    if run.record.interrupted:
        said = f"; the verdict until then: {verdict}" if verdict else ""
        return Headline("interrupted", f"The run was interrupted{said}.", "unsure")
    unfamiliar = Headline(
        f"{verdict}", "This version of tornpage does not know this verdict; use the version that wrote it.", "unsure"
    )
    headlines = _HEADLINES if run.scoreboard is None else {**_HEADLINES, **_SCOREBOARD}
    return headlines.get(verdict, unfamiliar)


def gaps_of(run: Run) -> list[str]:
    """Return what the run did not check, one sentence each, the most serious first."""
    gaps = [f"The step “{row.step}” judged nothing: {row.sentence}" for row in _steps(run, None)]
    gaps += [f"The step “{row.step}” was vacuous: {row.sentence}" for row in _steps(run, "vacuous")]
    gaps += [f"The step “{row.step}” is undecided: {row.sentence}" for row in _steps(run, "unknown")]
    if run.activation is not None:
        activation = summarise_activation(run.activation.rows)
        if activation.never_fired:
            gaps.append(f"These faults, rules and judges never fired: {_some(activation.never_fired)}.")
        if activation.never_mattered:
            gaps.append(f"Exercised without effect (proves nothing): {_some(activation.never_mattered)}.")
    if run.audit is not None:
        undecided = [row.store for row in run.audit.rows if row.verdict not in ("holds", "broken")]
        gaps += [f"The audit of {store} has no verdict." for store in undecided]
    for name, sentence in _NOT_RUN if run.scoreboard is None else ():
        table = getattr(run, name)
        if table is None:
            gaps.append(sentence)
        elif not table.rows:
            gaps.append(f"{sentence} (The table is empty.)")
    if run.put_latency or run.at_risk or run.stalls:
        gaps.append("Latencies, stalls and messages at risk come from a model of a device, not from this disk.")
    return gaps


def _some(names: Sequence[str]) -> str:
    """Return names as a list; only the first of many, since the table of activation has all."""
    if len(names) <= _NAMED_MAX:
        return listed(list(names))
    return f"{', '.join(names[:_NAMED_MAX])} and {len(names) - _NAMED_MAX} more (all are in “Crash exploration”)"


def _steps(run: Run, verdict: str | None) -> list[StepRow]:
    return [row for row in run.steps.rows if row.verdict == verdict] if run.steps else []
