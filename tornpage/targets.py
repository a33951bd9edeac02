"""Stores of other people as commands meet them: found and asked what they promise before anything is tested."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tornpage.document import Outcome, refuse, say
from tornpage.progress import states_progress

if TYPE_CHECKING:
    from properties.explore.foreign.campaign import TargetPlan, TargetResult
    from properties.program.case import Settings

__all__ = [
    "answer_option",
    "assert_store_holds",
    "fixed_settings",
    "left_out_line",
    "refusing_targets",
    "target_campaign_outcome",
    "target_option",
    "usable_settings",
]

target_option = click.option(
    "--target",
    metavar="SPEC",
    default=None,
    help="Another store than ours: module:callable, path/file.py:callable, or 'cmd:./mystore --dir {dir}'.",
)
answer_option = click.option(
    "--answer-seconds",
    type=click.FloatRange(min=0.1, max=3600),
    default=None,
    help="With --target: how long it may take for an answer (10).",
)


@contextmanager
def refusing_targets() -> Iterator[None]:
    """Say in one line why a target cannot be used, and leave with the exit code of misuse."""
    from properties.explore.foreign.protocol import TargetUnusable

    try:
        yield
    except TargetUnusable as error:
        refuse(str(error))


def usable_settings(target: str, *, bug: str, disk: str | None, answer_seconds: float | None) -> "Settings":
    """Return the settings of a target that opens and shakes hands; refuses any other. Says what it promises."""
    from properties.explore.foreign.trial import TargetTrial
    from properties.program.case import Settings

    settings = Settings(target=target, bug=bug)
    if disk is not None:
        settings = replace(settings, disk=disk)  # type: ignore[arg-type]
    if answer_seconds is not None:
        settings = replace(settings, answer_seconds=answer_seconds)
    with refusing_targets():
        trial = TargetTrial(settings)
        promises = trial.promises
        trial.end()
    reads = [name for name in ("offsets", "queues", "index") if getattr(promises, name)]
    said = f"durable after {promises.durable}, safe from a kill after {promises.kill}; {', '.join(reads)}"
    say(f"{trial.store.name} promises: {said}")
    return settings


def assert_store_holds(target: str, *, examples: int = 60, seed: int = 0, disk: str = "posix-strict") -> None:
    """Fail a test of yours unless a store keeps what it promises; the error tells the smallest program that shows why.

    `examples` are runs of the machine, of up to 15 operations each. Raises AssertionError when a promise is broken, or
    when so few examples prove nothing; TargetUnusable when there is no such store; HarnessError when a failure does not
    show again.
    """
    from properties.disk.dirty import choose_tracker
    from properties.explore.foreign.campaign import SHRINK_SECONDS
    from properties.explore.machines.check import TARGET_PROFILES, check
    from properties.program.case import Settings
    from tornpage.render.counterexample import failure_text

    settings = Settings(target=target, disk=disk)  # type: ignore[arg-type]
    with choose_tracker("auto") as tracker:
        found = check(
            bug="",
            examples=examples,
            steps=TARGET_PROFILES["quick"][1],
            start_seed=seed,
            tracker=tracker,
            machines=("target",),
            fixed=fixed_settings(settings),
            shrink_seconds=SHRINK_SECONDS,
        )
    if found.failure is not None:
        raise AssertionError(failure_text(found.failure))
    if found.silent:
        raise AssertionError(f"vacuous: {', '.join(found.silent)} never happened; give more examples")


def fixed_settings(settings: "Settings") -> dict[str, Any]:
    """Return what a machine may not draw."""
    return {"target": settings.target, "disk": settings.disk, "answer_seconds": settings.answer_seconds}


def left_out_line(settings: "Settings") -> list[str]:
    """Return a line that says which disasters cannot be made of a target here; none if all can."""
    from properties.explore.foreign.tracing import why_untraceable

    return [_left_out(why_untraceable())] if why_untraceable() else []


def _left_out(reason: str) -> str:
    return f"process kills alone, between answers; no power loss: {reason}"


def target_campaign_outcome(
    settings: "Settings",
    *,
    seed: int,
    states: int | None,
    seconds: float | None,
    failures_max: int | None,
    out: str | None,
) -> tuple[Outcome, str]:
    """Run a campaign on a target; return its outcome and its text."""
    from properties.contract import HarnessError
    from properties.disk.dirty import choose_tracker
    from properties.explore.foreign.campaign import FAILURES_MAX, TargetPlan, run_target_campaign

    if states is None and seconds is None:
        seconds = 10.0
    plan = TargetPlan(settings, seed, states, seconds, failures_max or FAILURES_MAX)
    again = command_of(plan)
    say(again)
    unit = "seconds" if states is None else "states"
    try:
        with (
            refusing_targets(),
            choose_tracker("auto") as tracker,
            states_progress("exploring", total=states or seconds, unit=unit) as show,
        ):
            result = run_target_campaign(plan, tracker=tracker, progress=show)
    except HarnessError as error:
        finding = {"code": "harness", "severity": "harness", "sentence": str(error)}
        return Outcome("explore", "harness", {}, findings=[finding], seed=seed), f"the harness is at fault: {error}"
    return _outcome(result, plan, again, out), _text(result)


def command_of(plan: "TargetPlan") -> str:
    """Return the command line of a campaign, defaults spelled out."""
    settings = plan.settings
    words = ["tornpage", "explore", "--target", settings.target, "--disk", settings.disk, "--seed", str(plan.seed)]
    words += [] if plan.states is None else ["--states", str(plan.states)]
    words += [] if plan.seconds is None else ["--seconds", f"{plan.seconds:g}"]
    words += ["--failures", str(plan.failures_max), "--answer-seconds", f"{settings.answer_seconds:g}"]
    return shlex.join([*words, *(["--bug", settings.bug] if settings.bug else [])])


def _outcome(result: "TargetResult", plan: "TargetPlan", command: str, out: str | None) -> Outcome:
    from tornpage.render.counterexample import save_case

    figures: dict[str, float | int] = {
        "states": result.states,
        "histories": result.histories,
        "seconds": result.exploring_s,
        "states_per_s": result.states / max(result.exploring_s, 1e-9),
    }
    for kind in ("armed", "fired", "mattered"):
        figures |= {f"{kind}_{name}": count for name, count in getattr(result, kind).items()}
    findings = []
    for failure in result.failures:
        findings.append(failure.finding().document())
        if out is not None and (kept := save_case(failure, out)) is not None:
            findings[-1]["case_file"] = str(kept)
    for name in result.missing if not result.failures else ():
        findings.append({"code": "never-happened", "severity": "vacuous", "sentence": f"{name} never happened"})
    extra = {"target": plan.settings.target, "command_line": command, "left_out": result.left_out}
    verdict = result.verdict.value
    timings = ["seconds", "states_per_s"]
    return Outcome(
        "explore", verdict, figures, timings, findings, plan.seed, extra=extra, interrupted=result.interrupted
    )


def _text(result: "TargetResult") -> str:
    from tornpage.render.counterexample import failure_text

    lines = [failure_text(failure) + "\n" for failure in result.failures[:1]]
    if len(result.failures) > 1:
        lines += ["  other failures:"]
        lines += [f"    {each.broken}\n      tornpage replay {each.case.token()}" for each in result.failures[1:]]
        lines += [""]
    rate = result.states / max(result.exploring_s, 1e-9)
    lines += [f"{result.states:,} crash states of {result.histories:,} histories, {rate:,.0f} states/s", ""]
    names = sorted(result.armed.keys() | result.mattered.keys())
    lines += [f"  {'':<14}{'armed':>8}{'fired':>8}{'mattered':>10}"]
    lines += [
        f"  {name:<14}{result.armed[name]:>8,}{result.fired[name]:>8,}{result.mattered[name]:>10,}" for name in names
    ]
    if result.left_out:
        lines += ["", _left_out(result.left_out)]
    if result.missing and not result.failures:
        lines += ["", f"vacuous: {', '.join(result.missing)} never happened; give more states"]
    return "\n".join([*lines, "", f"verdict: {result.verdict.value}"])
