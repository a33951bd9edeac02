"""What `explore raft` runs, and how cases of Raft groups are replayed and shrunk."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, refuse, say, warn
from tornpage.cli.progress import shrinking_progress, states_progress

if TYPE_CHECKING:
    from tornpage.outcomes.counterexamples import GivenCase
    from tornpage.outcomes.exploring import Request
    from tornpage.properties.explore.raft.campaign import RaftPlan, RaftResult
    from tornpage.properties.explore.raft.search import Search
    from tornpage.properties.explore.raft.states import Bound
    from tornpage.properties.program.raft_case import RaftCase
    from tornpage.properties.raft.replay import RaftFailure

__all__ = ["explore_raft", "promote_raft_case", "replay_raft_case", "search_raft", "shrink_raft_case"]

_EFFECTS = (
    "leader elected",
    "commit raised",
    "log cut",
    "writes lost",
    "entries lost",
    "read answered",
    "put ok",
    "put unknown",
)
_HOLDS = "every guarantee holds: there is nothing to {}\n\nverdict: holds"
_CHECKED_MEMBERS = 3


def explore_raft(request: Request) -> tuple[Outcome, str]:
    """Run a campaign on Raft groups; return its outcome and its text."""
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.raft.campaign import RaftPlan
    from tornpage.properties.explore.raft.campaign import explore_raft as explore
    from tornpage.properties.program.raft_case import RaftSettings

    settings = RaftSettings(
        members=request.members,
        disk=request.disk,
        judged=request.judged,
        bug=request.bug,
        store=request.has_store,
    )
    plan = RaftPlan(settings, request.seed, request.states, request.time_limit_s, request.workers or 1)
    again = _command_of(plan)
    say(again)
    total, unit = request.progress_total
    with choose_tracker("auto") as tracker, states_progress("exploring", total=total, unit=unit) as show:
        result = explore(plan, tracker=tracker, progress=show)
    return _outcome(result, plan, out=request.out, command=again)


def _command_of(plan: RaftPlan) -> str:
    """Return the command that runs a campaign again."""
    settings = plan.settings
    limits = [f" --{name} {value:g}" for name in ("states", "seconds") if (value := getattr(plan, name)) is not None]
    judged = "" if settings.judged == "all" else f" --judged {settings.judged}"
    store = " --store" if settings.store else ""
    planted = f" --bug {settings.bug}" if settings.bug else ""
    return (
        f"tornpage explore raft --members {settings.members}{''.join(limits)} --seed {plan.seed} --disk {settings.disk}"
        f" --workers {plan.workers}{judged}{store}{planted}"
    )


def _outcome(result: RaftResult, plan: RaftPlan, *, out: str | None, command: str) -> tuple[Outcome, str]:
    from tornpage.properties.findings import Finding

    tally = result.tally
    rate = tally.states / max(result.seconds, 1e-9)
    figures: dict[str, float | int] = {
        "members": plan.settings.members,
        "runs": tally.runs,
        "states": tally.states,
        "distinct_runs": len(tally.outcomes),
        "repeated_runs": result.repeated,
        **{f"happened_{name.replace(' ', '_')}": count for name, count in sorted(tally.hit.items())},
        "seconds": result.seconds,
        "states_per_s": rate,
    }
    findings: list[dict[str, Any]] = []
    if not result.found:
        findings = [Finding("never-happened", "vacuous", f"{name} never happened").document() for name in result.silent]
        if result.without_canary:
            findings.append(Finding("no-canary", "vacuous", "no planted bug was caught").document())
    for found in result.found:
        finding = found.failure.finding().document()
        if out is not None:
            _save(found.failure.case, finding, out)
        findings.append(finding)
    findings += [Finding("harness", "harness", fault).document() for fault in result.faults]
    lines = [_text_of(found.failure) for found in result.found]
    lines += [
        f"{tally.runs:,} runs of {plan.settings.members} members, {tally.states:,} states in {result.seconds:.1f} s: "
        f"{rate:,.0f} states/s",
        ", ".join(f"{name} {tally.hit[name]:,}" for name in _EFFECTS),
        f"{result.repeated:,} runs repeated with equal results",
        *result.faults,
        *([f"vacuous: {', '.join(result.silent)} never happened"] if result.silent and not result.found else []),
        *(["vacuous: no planted bug was caught"] if result.without_canary and not result.found else []),
        *([f"caught the planted bug {result.canary}"] if result.canary else []),
        f"result hash: {result.result_hash}",
        f"verdict: {'interrupted' if result.interrupted and not result.found else result.verdict.value}",
    ]
    rows = [{"happened": name, "times": times} for name, times in sorted(tally.hit.items())]
    outcome = Outcome(
        "explore",
        result.verdict.value,
        figures,
        ("seconds", "states_per_s"),
        findings,
        seed=plan.seed,
        extra={"result_hash": result.result_hash, "canary": result.canary},
        interrupted=result.interrupted,
        tables={"raft": {"rows": rows, "caption": {"source": "raft", "seed": plan.seed, "command": command}}},
    )
    return outcome, "\n".join(lines)


# ---- all schedules of a bound ----------------------------------------------------------------------------------------


def search_raft(request: Request) -> tuple[Outcome, str]:
    """Search all schedules within a bound, and check the search by brute force."""
    from tornpage.properties.explore.raft.search import brute_force, search
    from tornpage.properties.explore.raft.states import Bound
    from tornpage.properties.planted import parts_of

    assert request.bound is not None
    bound, parts = Bound(*request.bound), parts_of(request.bug)
    small = Bound(min(1, bound.elections), 0, min(1, bound.crashes))
    started = perf_counter()
    total = request.states or 0
    with states_progress("searching", total=float(total), unit="states") as show:
        checked = search(_CHECKED_MEMBERS, small, batch=1, parts=parts, compares=request.judged == "all")
        every = None if checked.broken else brute_force(_CHECKED_MEMBERS, small, batch=1, parts=parts)
        found = search(
            request.members,
            bound,
            batch=1,
            parts=parts,
            compares=request.judged == "all",
            states_max=request.states,
            is_over=lambda: request.seconds is not None and perf_counter() - started > request.seconds,
            progress=lambda states: show(states, perf_counter() - started),
        )
    return _search_outcome(request, bound, small, found, every, checked)


def _search_outcome(
    request: Request, bound: Bound, small: Bound, found: Search, every: Search | None, checked: Search
) -> tuple[Outcome, str]:
    from tornpage.properties.findings import Finding

    shown = found if found.broken else checked
    equal = every is not None and every.reached == checked.reached
    figures: dict[str, float | int] = {
        "members": request.members,
        **{f"bound_{name}": value for name, value in bound._asdict().items()},
        "states": found.states,
        "transitions": found.transitions,
        "orders_left_out": found.slept,
        "cpu_s": found.cpu_s,
        "brute_force_states": 0 if every is None else every.states,
        "brute_force_transitions": 0 if every is None else every.transitions,
        "brute_force_cpu_s": 0.0 if every is None else every.cpu_s,
        "brute_force_representatives": 0 if every is None else len(every.reached),
    }
    findings = []
    lines = []
    verdict = "holds"
    if shown.broken:
        verdict = "broken"
        findings.append(Finding("contract-15", "broken", shown.broken[0], {"program": shown.schedule}).document())
        lines += [f"contract 15 is broken: {shown.broken[0]}", "", "  schedule (members are renumbered in each state)"]
        lines += [f"    {number}. {each}" for number, each in enumerate(shown.schedule, 1)]
        lines.append("")
    elif not equal:
        verdict = "harness"
        findings.append(
            Finding("reduction", "harness", "the reduced search reaches other states than brute force").document()
        )
    elif not found.is_complete:
        verdict = "unknown"
        findings.append(
            Finding("bound-not-reached", "unknown", "the search ended before the bound was exhausted").document()
        )
    lines += [
        f"{request.members} members, {_words(bound)}: {found.states:,} states, {found.transitions:,} transitions, "
        f"{found.slept:,} equivalent orders left out, {found.cpu_s:.1f} s of processor time",
        "every schedule of the bound was searched"
        if found.is_complete and not found.broken
        else "the search is not complete",
        *(
            []
            if every is None
            else [
                f"check: {_CHECKED_MEMBERS} members, {_words(small)}: brute force visits {every.states:,} states, "
                f"{len(every.reached):,} up to symmetry; the search visits {checked.states:,}"
                f"{', the same ones' if equal else ', others'}"
            ]
        ),
        f"verdict: {verdict}",
    ]
    return Outcome("explore", verdict, figures, ("cpu_s", "brute_force_cpu_s"), findings, seed=request.seed), "\n".join(
        lines
    )


def _words(bound: Bound) -> str:
    return ", ".join(f"{value} {name}" for name, value in bound._asdict().items())


# ---- cases -----------------------------------------------------------------------------------------------------------


def _save(case: RaftCase, finding: dict[str, Any], out: str) -> None:
    """Write the case file; the token is printed in any case."""
    path = Path(out) / f"raft-{finding['token'][4:12]}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(case.document(), indent=2) + "\n")
    except OSError as error:
        warn(f"case file not written to {out}: {error.strerror}; the token has the same content")
    else:
        finding["case_file"] = str(path)


def _text_of(failure: RaftFailure) -> str:
    """Return a failure as text."""
    from tornpage.properties.program.steps import described_step

    broken, case = failure.broken, failure.case
    settings = ", ".join(f"{name}={value}" for name, value in case.document()["settings"].items()) or "defaults"
    lines = [f"contract {broken.contract} is broken: {broken.sentence}", "", "  schedule"]
    lines += [f"    {number}. {described_step(each)}" for number, each in enumerate(case.operations, 1)]
    lines += [f"  settings  {settings}"]
    if broken.expected or broken.found:
        lines += ["", f"  expected  {broken.expected or '(nothing)'}", f"  found     {broken.found or '(nothing)'}"]
    lines += ["", "  run it again:", f"    tornpage replay {case.token()}"]
    return "\n".join([*lines, "  smaller: tornpage shrink, as a test: tornpage promote", ""])


def _readable(given: GivenCase) -> RaftCase:
    """Read a case of a Raft group; refuses one that cannot be read."""
    from tornpage.properties.program.packing import BadToken
    from tornpage.properties.program.raft_case import RaftCase

    try:
        return RaftCase.from_token(given.text) if given.is_token else RaftCase.from_text(given.text)
    except BadToken as error:
        refuse(str(error))


def replay_raft_case(given: GivenCase) -> tuple[Outcome, str]:
    """Repeat a case of a Raft group. Raises UnknownBug."""
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.raft.replay import replay_raft

    case = _readable(given)
    with choose_tracker("auto") as tracker:
        failure = replay_raft(case, tracker=tracker)
    figures = {"operations": len(case.operations)}
    if failure is None:
        return Outcome("replay", "holds", figures), "every guarantee holds\n\nverdict: holds"
    outcome = Outcome("replay", "broken", figures, findings=[failure.finding().document()])
    return outcome, f"{_text_of(failure)}\nverdict: broken"


def shrink_raft_case(given: GivenCase, *, seconds: float, out: str | None) -> tuple[Outcome, str]:
    """Shrink a case of a Raft group for some seconds. Raises UnknownBug."""
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.raft.replay import replay_raft, shrink_raft

    case = _readable(given)
    started = perf_counter()
    with choose_tracker("auto") as tracker, shrinking_progress(seconds=seconds) as show:
        failure = replay_raft(case, tracker=tracker)
        if failure is None:
            return Outcome("shrink", "holds", {"operations": len(case.operations)}), _HOLDS.format("shrink")
        small = shrink_raft(failure, tracker=tracker, is_over=lambda: perf_counter() - started > seconds, watch=show)
    finding = small.finding().document()
    if out is not None:
        _save(small.case, finding, out)
    figures = {"operations": len(small.case.operations), "operations_before": len(case.operations)}
    return Outcome("shrink", "broken", figures, findings=[finding]), f"{_text_of(small)}\nverdict: broken"


def promote_raft_case(given: GivenCase, *, path: Path) -> tuple[Outcome, str]:
    """Write a case of a Raft group as a test module, and run it once. Raises UnknownBug."""
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.raft.replay import replay_raft
    from tornpage.render.counterexample import raft_regression_module

    case = _readable(given)
    bug = case.settings.bug
    with choose_tracker("auto") as tracker:
        caught = replay_raft(case, tracker=tracker) if bug else None
        found = replay_raft(case.with_bug(""), tracker=tracker)
    if bug and caught is None:
        refuse(f"the case does not catch {bug} any more, so there is nothing to keep")
    shown = found or caught
    symptom = "a case that was broken once" if shown is None else shown.broken.sentence
    try:
        path.write_text(raft_regression_module(case, symptom), encoding="utf-8")
    except OSError as error:
        refuse(f"cannot write {path}: {error.strerror}; name another --directory")
    verdict = "holds" if found is None else "broken"
    findings = [] if found is None else [found.finding().document()]
    outcome = Outcome("promote", verdict, {"operations": len(case.operations)}, findings=findings)
    outcome.extra = {"test": str(path)}
    state = "the store holds now" if found is None else f"it fails until the store is fixed: {found.broken}"
    catches = f", and catches {bug}" if bug else ""
    return outcome, f"{path}\n{state}{catches}\n\nverdict: {verdict}"
