"""The hunts of `tornpage explore`: which options go with which of them, and what each runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tornpage.document import Outcome, refuse, say
from tornpage.progress import shrinking_lines, states_progress
from tornpage.targets import target_campaign_outcome, usable_settings

if TYPE_CHECKING:
    from model.operations import AimFault
    from properties.explore.crashes.scheduling import Strategy

__all__ = ["Hunt", "asked_hunt", "campaign_outcome"]

Asked = Mapping[str, Any]
"""What was given to the command, or its defaults, by parameter name."""

_ALWAYS = frozenset(("bug", "seed", "out", "as_json"))


@dataclass(frozen=True, slots=True)
class Hunt:
    """One hunt. `option` is the parameter that asks for it, empty for what is done without; `goes_with` are those that
    it takes, beside the ones that all take.
    """

    title: str
    option: str
    goes_with: frozenset[str]
    run: Callable[[Asked], tuple[Outcome, str]]


def asked_hunt(context: click.Context) -> Hunt:
    """Return the hunt that the arguments of the command ask for; refuse options that it would not heed."""
    flags = {each.name or "": each.opts[0] for each in context.command.params}
    given = [name for name in flags if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE]
    hunts = [each for each in _HUNTS if each.option in given] or [_CAMPAIGN]
    hunt = hunts[0]
    if len(hunts) > 1:
        refuse(f"{hunt.title} and {hunts[1].title} are two hunts; give one of them")
    for name in given:
        if name not in hunt.goes_with | _ALWAYS | {hunt.option}:
            friends = " and ".join(each.title for each in (*_HUNTS, _CAMPAIGN) if name in each.goes_with)
            refuse(f"{flags[name]} goes with {friends}, not with {hunt.title}")
    return hunt


def campaign_outcome(
    states: int | None,
    seconds: float | None,
    *,
    file_bytes: int,
    disk: str,
    bug: str,
    seed: int,
    out: str | None,
    faults: "tuple[AimFault, ...]" = (),
    strategy: "Strategy" = "random",
    workers: int = 1,
    failures_max: int | None = None,
    shard_states: int | None = None,
) -> tuple[Outcome, str]:
    """Run a campaign, faults being aimed at the disk; return its outcome and its text."""
    from properties.disk.dirty import choose_tracker
    from properties.explore.crashes.campaign import Plan, run_campaign
    from properties.explore.crashes.shards import FAILURES_MAX, SHARD_STATES
    from properties.program.case import Settings
    from tornpage.campaigns import command_of, outcome_of, text_of

    if states is None and seconds is None:
        seconds = 10.0
    settings = Settings(file_bytes=file_bytes, disk=disk, bug=bug)  # type: ignore[arg-type]
    plan = Plan(
        settings,
        seed,
        states,
        seconds,
        strategy,
        workers,
        failures_max or FAILURES_MAX,
        shard_states or SHARD_STATES,
        faults,
    )
    again = command_of(plan)
    say(again)  # what runs now, defaults spelled out, before it can fail
    unit = "seconds" if states is None else "states"
    with (
        choose_tracker("auto") as tracker,
        states_progress("exploring", total=states or seconds, unit=unit) as show,
    ):
        result = run_campaign(plan, tracker=tracker, progress=show, making_small=shrinking_lines())
    return outcome_of(result, plan=plan, out=out, command=again), text_of(result)


def _campaign(asked: Asked) -> tuple[Outcome, str]:
    return campaign_outcome(
        asked["states"],
        asked["seconds"],
        file_bytes=asked["file_bytes"] or 16384,
        disk=asked["disk"],
        bug=asked["bug"],
        seed=asked["seed"],
        out=asked["out"],
        faults=asked["faults"],
        strategy=asked["strategy"] or "random",
        workers=asked["workers"] or 1,
        failures_max=asked["failures"],
        shard_states=asked["states_per_shard"],
    )


def _target(asked: Asked) -> tuple[Outcome, str]:
    settings = usable_settings(
        asked["target"], bug=asked["bug"], disk=asked["disk"], answer_seconds=asked["answer_seconds"]
    )
    return target_campaign_outcome(
        settings,
        seed=asked["seed"],
        states=asked["states"],
        seconds=asked["seconds"],
        failures_max=asked["failures"],
        out=asked["out"],
    )


def _kills(asked: Asked) -> tuple[Outcome, str]:
    from tornpage.kills import kill_outcome

    return kill_outcome(
        asked["kills"],
        seed=asked["seed"],
        directory=asked["directory"],
        file_bytes=asked["file_bytes"] or 4096,
        bug=asked["bug"],
        mode=asked["kill_at"] or "step",
        workers=asked["workers"] or 1,
    )


def _restarts(asked: Asked) -> tuple[Outcome, str]:
    from tornpage.restarts import restart_outcome

    return restart_outcome(
        asked["restarts"],
        seed=asked["seed"],
        directory=asked["directory"],
        file_bytes=asked["file_bytes"] or 4096,
        bug=asked["bug"],
    )


def _recovery(asked: Asked) -> tuple[Outcome, str]:
    from tornpage.recovery_crashes import recovery_outcome

    return recovery_outcome(bug=asked["bug"], disk=asked["disk"], seed=asked["seed"])


def _interleavings(asked: Asked) -> tuple[Outcome, str]:
    from tornpage.interleavings import interleaving_outcome

    return interleaving_outcome(
        asked["states"], asked["seconds"], bug=asked["bug"], seed=asked["seed"], out=asked["out"]
    )


_REAL_FILES = frozenset(("directory", "file_bytes"))
_HUNTS = (
    Hunt("--target", "target", frozenset(("states", "seconds", "failures", "disk", "answer_seconds")), _target),
    Hunt("--kills", "kills", _REAL_FILES | {"kill_at", "workers"}, _kills),
    Hunt("--restarts", "restarts", _REAL_FILES, _restarts),
    Hunt("--recovery", "recovery", frozenset(("disk",)), _recovery),
    Hunt("--interleavings", "interleavings", frozenset(("states", "seconds")), _interleavings),
)
_OF_CAMPAIGNS = frozenset(("faults", "strategy", "states_per_shard", "history"))
_CAMPAIGN = Hunt(
    "crash campaigns",
    "",
    _OF_CAMPAIGNS | {"states", "seconds", "failures", "disk", "file_bytes", "workers"},
    _campaign,
)
