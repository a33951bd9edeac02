"""Interleavings of a store's threads, explored or run again, as a document and as text."""

import json
from pathlib import Path
from typing import Any

from properties.contract import GuaranteeBroken
from properties.explore.interleavings.campaign import InterleavingResult
from properties.explore.interleavings.run import Ran
from properties.explore.interleavings.scenario import Interleaving
from properties.explore.interleavings.token import described, document_of, token_of
from tornpage.document import Outcome, say, warn
from tornpage.progress import states_progress

__all__ = ["interleaving_outcome", "replay_outcome"]

_TIMINGS = ("seconds", "interleavings_per_s", "distinct_interleavings_per_s", "points_per_s")
_BOUNDED_BY_TIME_S = 10.0


def interleaving_outcome(
    states: int | None, seconds: float | None, *, bug: str, seed: int, out: str | None
) -> tuple[Outcome, str]:
    """Explore interleavings; return the outcome and its text."""
    from properties.contract import HarnessError
    from properties.disk.dirty import choose_tracker
    from properties.explore.interleavings.campaign import explore_interleavings

    if states is None and seconds is None:
        seconds = _BOUNDED_BY_TIME_S
    until = f"--states {states}" if states is not None else f"--seconds {seconds:g}"
    planted = f" --bug {bug}" if bug else ""
    again = f"tornpage explore --interleavings {until} --seed {seed}{planted}"
    say(again)  # what runs now, defaults spelled out, before it can fail
    unit = "seconds" if states is None else "states"
    try:
        with (
            choose_tracker("auto") as tracker,
            states_progress("interleaving", total=states or seconds, unit=unit) as show,
        ):
            result = explore_interleavings(
                bug=bug, seed=seed, states=states, seconds=seconds, tracker=tracker, progress=show
            )
    except HarnessError as error:
        finding = {"code": "harness", "severity": "harness", "sentence": str(error)}
        return Outcome("explore", "harness", {}, findings=[finding], seed=seed), f"the harness is at fault: {error}"
    return _outcome(result, seed=seed, out=out, command=again), _text(result)


def _outcome(result: InterleavingResult, *, seed: int, out: str | None, command: str) -> Outcome:
    tally, seconds = result.tally, max(result.seconds, 1e-9)
    tried, is_all = tally.exhausted
    figures: dict[str, float | int] = {
        "interleavings": tally.interleavings,
        "distinct_interleavings": len(tally.distinct),
        "distinct_outcomes": len(tally.outcomes),
        "scenarios": tally.scenarios,
        "exhausted_interleavings": tried,
        "exhausted_is_all": int(is_all),
        "points": tally.points,
        "unknown_histories": tally.unknown,
        "repeated_interleavings": result.repeated,
        "seconds": result.seconds,
        "interleavings_per_s": tally.interleavings / seconds,
        "distinct_interleavings_per_s": len(tally.distinct) / seconds,
        "points_per_s": tally.points / seconds,
        **{f"happened_{effect}": count for effect, count in sorted(tally.effects.items())},
    }
    findings: list[dict[str, Any]] = [
        {"code": "never-happened", "severity": "vacuous", "sentence": f"{effect} never happened"}
        for effect in result.silent
        if result.failure is None
    ]
    if tally.unknown:
        sentence = f"of {tally.unknown} histories no order was found in time"
        findings.append({"code": "unknown-history", "severity": "unknown", "sentence": sentence})
    if not result.canary and result.failure is None:
        sentence = "interrupted before the canary" if result.interrupted else "no planted bug was caught"
        findings.append({"code": "no-canary", "severity": "vacuous", "sentence": sentence})
    if result.failure is not None:
        failure = result.failure
        findings.append(_finding(failure.interleaving, failure.broken, failure.ran))
        if out is not None:
            _save(failure.interleaving, out, findings[-1])
    families = [{"scenario": name, "drawn": count} for name, count in sorted(tally.families.items())]
    caption = {"source": "interleavings", "seed": seed, "command": command}
    return Outcome(
        "explore",
        result.verdict.value,
        figures,
        _TIMINGS,
        findings,
        seed=seed,
        interrupted=result.interrupted,
        tables={"interleavings": {"rows": families, "caption": caption}},
    )


def _finding(interleaving: Interleaving, broken: GuaranteeBroken, ran: Ran) -> dict[str, Any]:
    return {
        "code": f"contract-{broken.contract}",
        "severity": "broken",
        "sentence": broken.sentence,
        "expected": broken.expected,
        "found": broken.found.strip(),
        "program": described(interleaving),
        "history": [str(call) for call in ran.calls],
        "turns": [f"task {interleaving.order[t.task]} x{t.points} to {t.left_at}" for t in ran.trace.turns],
        "switches": interleaving.switches,
        "token": token_of(interleaving),
    }


def _save(interleaving: Interleaving, out: str, finding: dict[str, Any]) -> None:
    """Write the case file; the token is printed in any case."""
    path = Path(out) / f"interleaving-{finding['token'][4:12]}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document_of(interleaving), indent=2) + "\n")
    except OSError as error:
        warn(f"case file not written to {out}: {error.strerror}; the token says the same")
    else:
        finding["case_file"] = str(path)


def _text(result: InterleavingResult) -> str:
    tally = result.tally
    if result.failure is not None:
        failure = result.failure
        told = _failure_text(failure.interleaving, failure.broken, failure.ran)
        return f"{told}\n\n{tally.interleavings:,} interleavings before it\n\nverdict: broken"
    seconds = max(result.seconds, 1e-9)
    tried, is_all = tally.exhausted
    lines = [
        f"{tally.interleavings:,} interleavings of {tally.scenarios:,} scenarios in {result.seconds:.1f} s, "
        f"{len(tally.distinct):,} of them distinct: {len(tally.distinct) / seconds:,.0f} distinct/s",
        f"{len(tally.outcomes):,} distinct outcomes, {tally.points:,} yield points, "
        f"{result.repeated} interleavings repeated and equal",
        f"at locks alone: {tried:,} interleavings of the smallest scenario in order, {'all' if is_all else 'not all'}",
        "",
        *(f"{effect:<20}{tally.effects[effect]:>10,}" for effect in sorted(tally.effects)),
        "",
    ]
    if result.silent:
        lines.append(f"vacuous: {', '.join(result.silent)} never happened; explore longer")
    if tally.unknown:
        lines.append(f"unknown: of {tally.unknown} histories no order was found in time")
    not_caught = "canary: not tried" if result.interrupted else "canary: no planted bug was caught"
    lines.append(f"canary: {result.canary} caught" if result.canary else not_caught)
    return "\n".join([*lines, f"verdict: {'interrupted' if result.interrupted else result.verdict.value}"])


def _failure_text(interleaving: Interleaving, broken: GuaranteeBroken, ran: Ran) -> str:
    told = _finding(interleaving, broken, ran)
    lines = [f"contract {broken.contract} is broken: {broken.sentence}", ""]
    if broken.expected:
        lines.append(f"  expected  {broken.expected}")
    if broken.found and "\n" not in broken.found:
        lines.append(f"  found     {broken.found}")
    lines += ["", "  program", *(f"    {line}" for line in told["program"])]
    lines += ["", "  calls, with the logical times of begin and end", *(f"    {line}" for line in told["history"])]
    lines += ["", "  turns: who ran past how many yield points, and where he was left"]
    lines += [f"    {line}" for line in told["turns"]]
    return "\n".join([*lines, "", "  run it again:", f"    tornpage replay {told['token']}"])


def replay_outcome(given: str, *, is_token: bool) -> tuple[Outcome, str]:
    """Run one interleaving again, a token or the text of a file. Raises BadToken or UnknownBug.

    One that holds now although the store's lines are others than then says nothing: the verdict is unknown.
    """
    from properties.disk.dirty import choose_tracker
    from properties.explore.interleavings.run import run_interleaving
    from properties.explore.interleavings.token import from_text, from_token, source_has_changed

    interleaving, source = from_token(given) if is_token else from_text(given)
    changed = source_has_changed(interleaving, source)
    with choose_tracker("auto") as tracker:
        ran = run_interleaving(interleaving, tracker=tracker)
    figures = {"calls": len(ran.calls), "points": ran.trace.steps, "switches": interleaving.switches}
    if ran.broken is not None:
        finding = _finding(interleaving, ran.broken, ran)
        text = f"{_failure_text(interleaving, ran.broken, ran)}\n\nverdict: broken"
        return Outcome("replay", "broken", figures, findings=[finding]), text
    if not changed:
        return Outcome("replay", ran.verdict.value, figures), f"verdict: {ran.verdict.value}"
    sentence = "the store's lines have changed since: its switches fall elsewhere now"
    finding = {"code": "source-changed", "severity": "unknown", "sentence": sentence}
    return Outcome("replay", "unknown", figures, findings=[finding]), f"{sentence}\n\nverdict: unknown"
