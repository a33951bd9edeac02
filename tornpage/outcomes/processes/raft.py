"""What `explore raft` runs."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, say
from tornpage.cli.progress import states_progress
from tornpage.outcomes.processes.cases import RAFT, failure_text, save_process_case

if TYPE_CHECKING:
    from tornpage.outcomes.exploring import Request
    from tornpage.properties.explore.raft.campaign import RaftPlan, RaftResult
    from tornpage.properties.explore.raft.search import Search
    from tornpage.properties.explore.raft.states import Bound

__all__ = ["explore_raft", "search_raft"]

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
            save_process_case(RAFT, found.failure, finding, out)
        findings.append(finding)
    findings += [Finding("harness", "harness", fault).document() for fault in result.faults]
    lines = [failure_text(RAFT, found.failure) for found in result.found]
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
