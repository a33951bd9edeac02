"""What `explore raft` runs."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from tornpage.cli.document import Outcome, say
from tornpage.cli.progress import states_progress
from tornpage.outcomes.processes.campaigns import ProcessCampaign
from tornpage.outcomes.processes.cases import RAFT
from tornpage.properties.judge.rulings import counted

if TYPE_CHECKING:
    from tornpage.outcomes.exploring import Request
    from tornpage.properties.explore.raft.search import Search
    from tornpage.properties.explore.raft.states import Bound

__all__ = ["explore_raft", "search_raft"]

_CAMPAIGN = ProcessCampaign(
    verb="raft",
    kind=RAFT,
    size="members",
    effects=(
        "leader elected", "commit raised", "log cut", "writes lost", "entries lost", "read answered", "put ok",
        "put unknown",
    ),
    rate="states",
)  # fmt: skip
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
    judged = "" if settings.judged == "all" else f" --judged {settings.judged}"
    again = _CAMPAIGN.command(plan, settings=f"{judged}{' --store' if settings.store else ''}")
    say(again)
    total, unit = request.progress_total
    with choose_tracker("auto") as tracker, states_progress("exploring", total=total, unit=unit) as show:
        result = explore(plan, tracker=tracker, progress=show)
    return _CAMPAIGN.outcome(result, plan, out=request.out, command=again)


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
        f"{counted(request.members, 'member')}, {_words(bound)}: {counted(found.states, 'state')}, "
        f"{counted(found.transitions, 'transition')}, "
        f"{counted(found.slept, 'equivalent order')} left out, {found.cpu_s:.1f} s of processor time",
        "every schedule of the bound was searched"
        if found.is_complete and not found.broken
        else "the search is not complete",
        *(
            []
            if every is None
            else [
                f"check: {_CHECKED_MEMBERS} members, {_words(small)}: brute force visits "
                f"{counted(every.states, 'state')}, "
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
