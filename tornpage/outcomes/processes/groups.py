"""What `explore consumers` runs, and the events of a case of a consumer group."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from tornpage.cli.document import Outcome, say
from tornpage.cli.progress import shrinking_progress, states_progress
from tornpage.outcomes.processes.campaigns import ProcessCampaign
from tornpage.outcomes.processes.cases import GROUP, HOLDS, failure_text, readable_case
from tornpage.properties.judge.rulings import counted

if TYPE_CHECKING:
    from tornpage.outcomes.counterexamples import GivenCase
    from tornpage.outcomes.exploring import Request
    from tornpage.properties.explore.consumers.campaign import GroupPlan

__all__ = ["explore_group", "trace_group_case"]

_CAMPAIGN = ProcessCampaign(
    verb="consumers",
    kind=GROUP,
    size="members",
    effects=(
        "handed over", "sent back", "retry consumed", "refused FENCED", "writes lost", "records lost", "request lost",
        "answer lost", "repeated",
    ),
    rate="runs",
)  # fmt: skip
_CHECKED_LENGTH = 2


def explore_group(request: Request) -> tuple[Outcome, str]:
    """Run a campaign on consumer groups; return its outcome and its text."""
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explore.consumers.campaign import GroupPlan
    from tornpage.properties.explore.consumers.campaign import explore_group as explore
    from tornpage.properties.explore.consumers.programs import unequal_words
    from tornpage.properties.program.group_case import GroupSettings

    settings = GroupSettings(members=request.members, disk=request.disk, bug=request.bug, is_orderly=request.is_orderly)
    limit_s = request.seconds if request.length else request.time_limit_s
    plan = GroupPlan(settings, request.seed, request.states, limit_s, request.workers or 1, request.length)
    again = _CAMPAIGN.command(plan, programs=" --orderly" if settings.is_orderly else "")
    say(again)
    total, unit = request.progress_total
    checked = 0
    with choose_tracker("auto") as tracker, states_progress("exploring", total=total, unit=unit) as show:
        unequal: list[str] = []
        if plan.length:
            checked, unequal = unequal_words(
                min(plan.length, _CHECKED_LENGTH), replace(settings, bug=""), tracker=tracker
            )
        result = explore(plan, tracker=tracker, progress=show)
    result.faults += [f"a program that is left out differs: {word}" for word in unequal[:3]]
    statement = _statement(plan, checked) if plan.length else ""
    return _CAMPAIGN.outcome(
        result, plan, out=request.out, command=again, statement=statement, counts={"left_out_checked": checked}
    )


def _statement(plan: GroupPlan, checked: int) -> str:
    """Return the bound of a campaign of all programs."""
    from tornpage.properties.explore.consumers.programs import ALPHABET

    return (
        f"all programs of up to {plan.length} of {len(ALPHABET)} operations after a member holds six messages of three "
        f"queues, and of up to {plan.length - 1} after a second member has joined, with at most two changes of members "
        f"and one crash, each with an end of all faults; power losses keep nothing or everything. "
        f"{counted(checked, 'program')} "
        "that are left out were run: each repeats a listed one"
    )


def trace_group_case(given: GivenCase, *, seconds: float) -> tuple[Outcome, str]:
    """Return the events of a case after each operation, after shrinking for `seconds`.

    Raises UnknownBug.
    """
    from tornpage.properties.consumers.replay import CONSUMER_GROUPS, account_of
    from tornpage.properties.disk.dirty import choose_tracker

    case = readable_case(GROUP, given)
    started = perf_counter()
    with choose_tracker("auto") as tracker:
        if seconds and (failure := CONSUMER_GROUPS.replay(case, tracker=tracker)) is not None:
            with shrinking_progress(seconds=seconds) as show:
                case = CONSUMER_GROUPS.shrink(
                    failure, tracker=tracker, is_over=lambda: perf_counter() - started > seconds, watch=show
                ).case
        found = account_of(case, tracker=tracker)
    if found is None:
        return Outcome("explain", "holds", {"operations": len(case.operations)}), HOLDS.format("explain")
    failure, moments = found
    lines = []
    for moment in moments:
        lines.append(f"{moment.at_ms:>9} ms  {moment.text}")
        lines += [f"{'':>14}{event}" for event in moment.events]
    finding = failure.finding().document()
    outcome = Outcome("explain", "broken", {"operations": len(failure.case.operations)}, findings=[finding])
    outcome.extra = {"moments": [moment.document() for moment in moments]}
    return outcome, "\n".join([*lines, "", failure_text(GROUP, failure), "verdict: broken"])
