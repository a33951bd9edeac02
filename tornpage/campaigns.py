"""A campaign's result as a document and as text."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from properties.campaign.coverage import Tally
from properties.disk.dirty import choose_tracker
from properties.explain.page_map import page_map
from properties.explore.crashes.campaign import CampaignResult, Found, Plan
from tornpage.document import Outcome
from tornpage.failures import failure_finding, failure_text, save_case

__all__ = ["command_of", "outcome_of", "text_of"]


def command_of(plan: Plan) -> str:
    """Return the command that runs a campaign again, with every default that its result depends on."""
    settings = plan.settings
    limits = (f"--states {plan.states}" if plan.states is not None else "",
              f"--seconds {plan.seconds:g}" if plan.seconds is not None else "")  # fmt: skip
    parts = (
        *limits,
        f"--seed {plan.seed} --disk {settings.disk} --file-bytes {settings.file_bytes}",
        f"--strategy {plan.strategy} --states-per-shard {plan.shard_states} --failures {plan.failures_max}",
        f"--workers {plan.workers}" if plan.workers > 1 else "",
        f"--bug {settings.bug}" if settings.bug else "",
        *(f"--fault {shlex.quote(aim.text)}" for aim in plan.aims),
    )
    return " ".join(["tornpage explore", *filter(None, parts)])


def outcome_of(result: CampaignResult, *, plan: Plan, out: str | None, command: str) -> Outcome:
    """Return the outcome of a campaign, writing the case files if there is a place for them.

    `command` is what a caption names to run it again. The first failure is the first of the findings.
    """
    tally = result.tally
    figures: dict[str, float | int] = {
        "states": tally.states,
        "all_states": tally.all_states,
        "histories": tally.histories,
        "shards": result.shards,
        "distinct_images": len(tally.images),
        "distinct_recovered": len(tally.recovered),
        "proven_legal": tally.proven_legal,
        "repeated_histories": result.repeated,
        "broken_histories": sum(found.times for found in result.found),
        **{name: tally.work[name] for name in ("recoveries", "known", "viewed", "done_again")},
    }
    measured: dict[str, float | int] = {
        "seconds": result.seconds,
        "states_per_s": tally.states / max(result.seconds, 1e-9),
        "recoveries_per_s": tally.work["recoveries"] / max(result.seconds, 1e-9),
        **{f"{stage.replace(' ', '_')}_s": seconds for stage, seconds in tally.seconds.items()},
    }
    for kind in ("armed", "fired", "mattered"):
        figures |= {f"{kind}_{name}": count for name, count in getattr(tally, kind).items() if count}
    figures |= {f"looked_{judge}": count for judge, count in tally.looked.items()}
    caption = {"source": "crash campaign", "seed": plan.seed, "command": command}
    return Outcome(
        "explore",
        result.verdict.value,
        figures | measured,
        list(measured),
        [*_failures(result.found, out), *_doubts(result)],
        seed=plan.seed,
        extra={
            "result_hash": result.result_hash,
            "cut": result.is_cut,
            "strategy": plan.strategy,
            "settings": asdict(plan.settings),
        },
        interrupted=result.interrupted,
        tables=_tables(result, caption),
    )


def _failures(found: Iterable[Found], out: str | None) -> list[dict[str, Any]]:
    findings = []
    for each in found:
        finding = {**failure_finding(each.failure), "history": each.history, "mix": each.mix, "histories": each.times}
        case_file = None if out is None else save_case(each.failure, out)
        if case_file is not None:
            finding["case_file"] = str(case_file)
        findings.append(finding)
    return findings


def _doubts(result: CampaignResult) -> list[dict[str, Any]]:
    """Return what our own tooling did wrong, and why the silence of a campaign would prove nothing."""
    findings = [{"code": "harness", "severity": "harness", "sentence": sentence} for sentence in result.faults]
    if result.found:
        return findings
    findings += [
        {"code": "never-fired", "severity": "vacuous", "sentence": f"{name} never fired"} for name in result.silent
    ]
    findings += [
        {"code": "no-canary", "severity": "vacuous", "sentence": f"shard {number}: no planted bug was caught"}
        for number in result.without_canary
    ]
    return findings


def _tables(result: CampaignResult, caption: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return discovery, activation and time per stage, and the page maps of failures."""
    tally = result.tally
    discovery = [
        {"states": states, "distinct_images": images, "distinct_recovered": recovered}
        for states, images, recovered in tally.discovery
    ]
    activation = [
        {"fault": name, "armed": tally.armed[name], "fired": tally.fired[name], "mattered": tally.mattered[name]}
        for name in sorted(tally.armed)
    ]
    tables: dict[str, Mapping[str, Any]] = {
        "discovery": {"rows": discovery, "caption": caption},
        "activation": {"rows": activation, "caption": caption},
        "stages": {"rows": [{"stage": s, "seconds": t} for s, t in tally.seconds.items()], "caption": caption},
    }
    if result.found:
        tables["page_map"] = {"rows": [row for each in result.found for row in _page_map(each)], "caption": caption}
    return tables


def _page_map(found: Found) -> list[dict[str, Any]]:
    with choose_tracker("auto") as tracker:
        shown = page_map(found.failure.case, tracker=tracker)
    if shown is None:
        return []
    told = failure_finding(found.failure)
    bug = found.failure.case.settings.bug
    names = ("sentence", "expected", "found", "token", "settings")
    return [{**shown.document(), **{name: told[name] for name in names}, "bug": bug}]


# ---- text ------------------------------------------------------------------------------------------------------------


def text_of(result: CampaignResult) -> str:
    """Return the campaign for people: failures first, or numbers and activation; then doubts and verdict."""
    lines = _failure_lines(result) if result.found else _numbers(result)
    lines += ["", *(f"the harness is at fault: {sentence}" for sentence in result.faults)]
    if not result.found:
        lines += _gates(result)
    cut = " (of what ran: it was cut by time or by hand)" if result.is_cut else ""
    lines.append(f"result hash: {result.result_hash}{cut}")
    return "\n".join([*lines, f"verdict: {'interrupted' if result.interrupted else result.verdict.value}"])


def _failure_lines(result: CampaignResult) -> list[str]:
    first, *others = result.found
    lines = [failure_text(first.failure)]
    if first.mix:
        lines += ["", f"  drawn by history {first.history} with the mix {first.mix}"]
    for number, each in enumerate(others, 2):
        broken = each.failure.broken
        lines += ["", f"failure {number}, another one: contract {broken.contract} is broken: {broken.sentence}"]
        lines.append(f"    tornpage replay {each.failure.case.token()}")
    broken_histories = sum(each.times for each in result.found)
    return [*lines, "", f"{result.tally.all_states:,} states, {broken_histories} broken histories"]


def _numbers(result: CampaignResult) -> list[str]:
    tally = result.tally
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in sorted(tally.seconds.items()))
    return [
        f"{tally.states:,} crash states counted ({tally.all_states:,} in all) from {tally.histories:,} histories in "
        f"{result.shards:,} shards, {result.seconds:.1f} s: {tally.states / max(result.seconds, 1e-9):,.0f} states/s",
        f"{len(tally.images):,} distinct images, {len(tally.recovered):,} distinct recovered logs, "
        f"{result.repeated} histories repeated and equal, {tally.proven_legal:,} images proven legal",
        f"time: {stages}",
        f"{tally.work['recoveries']:,} stores opened ({tally.work['recoveries'] / max(result.seconds, 1e-9):,.0f}/s), "
        f"{tally.work['viewed']:,} of them had what one before had; {tally.work['known']:,} states were known",
        "",
        *_activation(tally),
    ]


def _activation(tally: Tally) -> list[str]:
    lines = [f"{'fault, rule or judge':<44}{'armed':>10}{'fired':>10}{'mattered':>10}"]
    for name in sorted(tally.armed):
        lines.append(f"{name:<44}{tally.armed[name]:>10,}{tally.fired[name]:>10,}{tally.mattered[name]:>10,}")
    return lines


def _gates(result: CampaignResult) -> list[str]:
    lines = [f"vacuous: {', '.join(result.silent)} never fired; explore longer"] if result.silent else []
    if result.without_canary:
        shards = ", ".join(map(str, result.without_canary))
        lines.append(f"canary: no planted bug was caught in shard {shards}")
    else:
        lines.append(f"canary: {result.canary} caught in each shard")
    return lines
