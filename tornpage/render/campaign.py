"""Render the result of a crash campaign, in one process or in shards."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome
from tornpage.properties.campaign.coverage import Tally
from tornpage.properties.campaign.pairs import Exercised, exercised_by
from tornpage.properties.campaign.replay import Failure
from tornpage.properties.campaign.result import Found
from tornpage.properties.explore.crashes.campaign import CrashResult, Plan
from tornpage.properties.explore.crashes.factors import EXCLUDED, FACTORS
from tornpage.properties.explore.crashes.shards import Shard
from tornpage.properties.findings import Finding
from tornpage.properties.judge.rulings import counted
from tornpage.render.counterexample import failure_text, saved_finding
from tornpage.reports.activation_names import shown_name, shown_names

if TYPE_CHECKING:
    from tornpage.pipeline.campaign.cost import Cost, Trial
    from tornpage.pipeline.campaign.summary import Summary

__all__ = ["campaign_outcome", "command_of", "cost_outcome", "shards_outcome"]

_STAGES_MAX = 40
"""Most shards in the table of times."""
_NAMED_MAX = 6
"""Most faults, rules and judges that a line names."""

_MISSING_SHOWN = 20
"""Pairs listed that no run exercised; the table has the counts of all levels."""


def command_of(plan: Plan) -> str:
    """Return the command that repeats a campaign, with all relevant defaults."""
    settings = plan.settings
    limits = (f"--states {plan.states}" if plan.states is not None else "",
              f"--seconds {plan.seconds:g}" if plan.seconds is not None else "")  # fmt: skip
    parts = (
        *limits,
        f"--seed {plan.seed} --disk {settings.disk} --file-bytes {settings.file_bytes}",
        f"--strategy {plan.strategy} --states-per-shard {plan.shard_states} --failures {plan.failures_max}",
        f"--workers {plan.workers}" if plan.workers > 1 else "",
        "--compiled" if settings.compiled else "",
        f"--bug {settings.bug}" if settings.bug else "",
        *(f"--fault {shlex.quote(aim.text)}" for aim in plan.fault_rules),
    )
    return " ".join(["tornpage explore crashes", *filter(None, parts)])


def campaign_outcome(
    result: CrashResult,
    plan: Plan,
    *,
    out: str | None,
    command: str,
    verbose: bool = False,
    with_coverage: bool = False,
) -> tuple[Outcome, str]:
    """Return outcome and text of a campaign; write case files to `out` if given.

    Captions name `command` for repeating the run. The first failure is the first of the findings. A `verbose` text has
    the times and the table of faults, rules and judges. The text ends with the coverage table if it is asked for.
    """
    tally = result.tally
    exercised = exercised_by(tally.levels, FACTORS, excluded=EXCLUDED)
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
        **_pair_figures(exercised),
    }
    measured: dict[str, float | int] = {
        "seconds": result.seconds,
        "states_per_s": tally.states / max(result.seconds, 1e-9),
        "recoveries_per_s": tally.work["recoveries"] / max(result.seconds, 1e-9),
        **{f"{stage.replace(' ', '_')}_s": seconds for stage, seconds in tally.seconds.items()},
    }
    for kind, counts in (("armed", tally.enabled), ("fired", tally.hit), ("mattered", tally.effective)):
        figures |= {f"{kind}_{name}": count for name, count in counts.items() if count}
    figures |= {f"looked_{judge}": count for judge, count in tally.evaluations.items()}
    caption = {"source": "crash campaign", "seed": plan.seed, "command": command}
    outcome = Outcome(
        "explore",
        result.verdict.value,
        figures | measured,
        list(measured),
        [
            *(
                saved_finding(each.failure, out, history=each.history, mix=each.mix, histories=each.times)
                for each in result.found
            ),
            *(doubt.document() for doubt in _doubts(result)),
        ],
        seed=plan.seed,
        extra={
            "result_hash": result.result_hash,
            "cut": result.is_cut,
            "strategy": plan.strategy,
            "settings": asdict(plan.settings),
        },
        interrupted=result.interrupted,
        tables={**_tables(result, caption), "pairs": {"rows": exercised.rows(), "caption": caption}},
    )
    coverage = ["", *_coverage_lines(exercised)] if with_coverage else []
    return outcome, "\n".join([_text(result, exercised, verbose=verbose), *coverage])


def _pair_figures(exercised: Exercised) -> dict[str, float | int]:
    return {
        "pairs": len(exercised.pairs),
        "pairs_exercised": exercised.exercised,
        "threes": exercised.threes,
        "threes_exercised": exercised.threes_exercised,
    }


def _doubts(result: CrashResult) -> list[Finding]:
    """Return faults of the harness, and reasons why no finding would prove nothing."""
    faults = [Finding("harness", "harness", sentence) for sentence in result.faults]
    return faults if result.found else faults + _never_fired(result.silent) + _without_canary(result.without_canary)


def _tables(result: CrashResult, caption: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return discovery, activation and time per stage, and the page maps of failures."""
    tally = result.tally
    discovery = [
        {"states": states, "distinct_images": images, "distinct_recovered": recovered}
        for states, images, recovered in tally.discovery
    ]
    activation = [
        {"fault": name, "armed": tally.enabled[name], "fired": tally.hit[name], "mattered": tally.effective[name]}
        for name in sorted(tally.enabled)
    ]
    tables: dict[str, Mapping[str, Any]] = {
        "discovery": {"rows": discovery, "caption": caption},
        "activation": {"rows": activation, "caption": caption},
        "stages": {"rows": [{"stage": s, "seconds": t} for s, t in tally.seconds.items()], "caption": caption},
    }
    if result.found:
        tables["page_map"] = {"rows": [row for each in result.found for row in _page_map(each)], "caption": caption}
    return tables


def _page_map(found: Found[Failure]) -> list[dict[str, Any]]:
    evidence = found.failure.evidence
    if evidence is None or evidence.page_map is None:
        return []
    told = found.failure.finding().document()
    bug = found.failure.case.settings.bug
    names = ("sentence", "expected", "found", "token", "settings")
    return [{**evidence.page_map.document(), **{name: told[name] for name in names}, "bug": bug}]


# ---- text ------------------------------------------------------------------------------------------------------------


def _text(result: CrashResult, exercised: Exercised, *, verbose: bool) -> str:
    """Return the campaign as text: failures or counts, then doubts and the verdict."""
    lines = [*_failure_lines(result), ""] if result.found else _numbers(result, exercised, verbose=verbose)
    lines += [f"the harness failed: {sentence}" for sentence in result.faults]
    if not result.found:
        lines += _gates(result)
    cut = " (partial: stopped by a time limit or an interrupt)" if result.is_cut else ""
    hashed = f"result hash: {result.result_hash}{cut}"
    lines = [*lines, hashed] if result.found else [*lines[:-1], f"{lines[-1]}; {hashed}"]
    return "\n".join([*lines, f"verdict: {'interrupted' if result.interrupted else result.verdict.value}"])


def _failure_lines(result: CrashResult) -> list[str]:
    first, *others = result.found
    lines = [failure_text(first.failure)]
    if first.mix:
        lines += ["", f"  found by run {first.history}; the finding in the JSON document has its levels"]
    for number, each in enumerate(others, 2):
        broken = each.failure.broken
        lines += ["", f"failure {number}: contract {broken.contract} is broken: {broken.sentence}"]
        lines.append(f"    tornpage replay {each.failure.case.token()}")
    broken_histories = sum(each.times for each in result.found)
    return [*lines, "", f"{counted(result.tally.all_states, 'crash state')}, {counted(broken_histories, 'broken run')}"]


def _numbers(result: CrashResult, exercised: Exercised, *, verbose: bool) -> list[str]:
    tally = result.tally
    if not verbose:
        return [*_counts(result), _activation_line(tally)]
    stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in sorted(tally.seconds.items()))
    return [
        *_counts(result),
        f"time: {stages}",
        f"{counted(tally.work['recoveries'], 'store')} opened "
        f"({tally.work['recoveries'] / max(result.seconds, 1e-9):,.0f}/s), "
        f"{tally.work['viewed']:,} of them with the result of an earlier one; "
        f"{counted(tally.work['known'], 'state')} judged from the cache",
        f"{_pairs_sentence(exercised)} (table: --coverage-table)",
        "",
        *_activation(tally),
        "",
    ]


def _counts(result: CrashResult) -> list[str]:
    tally = result.tally
    return [
        f"{counted(tally.states, 'crash state')} counted ({tally.all_states:,} in all) from "
        f"{counted(tally.histories, 'run')} in {counted(result.shards, 'shard')}, {result.seconds:.1f} s: "
        f"{tally.states / max(result.seconds, 1e-9):,.0f} states/s",
        f"{counted(len(tally.images), 'distinct image')}, {counted(len(tally.recovered), 'distinct recovered log')}, "
        f"{counted(result.repeated, 'run')} repeated with equal results, {counted(tally.proven_legal, 'image')} "
        "proved legal",
    ]


def _activation_line(tally: Tally) -> str:
    """Return how many faults, rules and judges had an effect, and the names of the others."""
    idle = [name for name in sorted(tally.enabled) if not tally.effective[name]]
    without = f"; without effect: {_some(idle)}" if idle else ""
    count = len(tally.enabled)
    return f"{count - len(idle)} of {count} faults, rules and judges had an effect{without} (--verbose lists all)"


def _some(names: Sequence[str]) -> str:
    """Return names in words; of many only the first, and the number of the others."""
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    return ", ".join(shown_names(names[:_NAMED_MAX])) + more


def _activation(tally: Tally) -> list[str]:
    lines = [f"{'fault, rule or judge':<48}{'enabled':>10}{'hit':>10}{'effective':>10}"]
    for name in sorted(tally.enabled, key=shown_name):
        counts = f"{tally.enabled[name]:>10,}{tally.hit[name]:>10,}{tally.effective[name]:>10,}"
        lines.append(f"{shown_name(name):<48}{counts}")
    return lines


def _pairs_sentence(exercised: Exercised) -> str:
    pairs, threes = len(exercised.pairs), exercised.threes
    return (
        f"{exercised.exercised:,} of {pairs:,} pairs of levels exercised "
        f"({100 * exercised.exercised / max(1, pairs):.1f} %), {exercised.threes_exercised:,} of {threes:,} threes "
        f"({100 * exercised.threes_exercised / max(1, threes):.1f} %)"
    )


def _coverage_lines(exercised: Exercised) -> list[str]:
    """Return the coverage table: the pairs of each level, and some missing pairs."""
    lines = [_pairs_sentence(exercised), "", f"{'factor':<28}{'level':<24}{'exercised':>10}{'pairs':>8}"]
    lines += [
        f"{row['factor']:<28}{row['level']:<24}{row['exercised']:>10,}{row['pairs']:>8,}" for row in exercised.rows()
    ]
    missing = exercised.missing
    if missing:
        lines += ["", f"not exercised ({min(len(missing), _MISSING_SHOWN)} of {len(missing):,}):"]
        lines += [f"  {'='.join(one)} with {'='.join(other)}" for one, other in missing[:_MISSING_SHOWN]]
    return lines


def _gates(result: CrashResult) -> list[str]:
    silent, names = len(result.silent), _some(result.silent)
    plural = "" if silent == 1 else "s"
    lines = [f"vacuous: {silent} required name{plural} never hit: {names}; explore longer"] if silent else []
    if result.without_canary:
        shards = ", ".join(map(str, result.without_canary))
        lines.append(f"canary: no planted bug was caught in shard {shards}")
    elif result.canary:
        lines.append(f"canary: {result.canary} caught in each shard")
    else:
        lines.append("canary: not tried")
    return lines


# ---- in shards -------------------------------------------------------------------------------------------------------


def shards_outcome(
    shards: Sequence[Shard], summary: Summary, *, stopped: str, measured: Mapping[str, float]
) -> tuple[Outcome, str]:
    """Return the outcome and the text of a campaign in shards.

    `stopped` is the reason of an early end, or ""; `measured` are seconds, seconds to start, and skipped shards.
    """
    first = shards[0]
    exercised = summary.levels.exercised(excluded=EXCLUDED)
    findings = [each.document() for each in _shard_findings(summary, summary.silent(first.settings.disk))]
    if stopped and stopped != "interrupted":
        findings.append(Finding("stopped", "harness", f"{stopped}; continue with --resume").document())
    order = (("harness", "harness"), ("broken", "broken"), ("vacuous", "vacuous"))
    severities = {finding["severity"] for finding in findings}
    verdict = next((verdict for severity, verdict in order if severity in severities), "holds")
    totals, verdicts = summary.totals, summary.verdicts
    figures: dict[str, float | int] = {
        "shards": len(shards),
        "shards_complete": summary.shards_complete,
        "shards_skipped": int(measured["skipped"]),
        "shards_died": verdicts["shard", "harness"],
        "states": totals["states"],
        "all_states": totals["all_states"],
        "histories": summary.runs,
        "distinct_images": totals["images"],
        "distinct_recovered": totals["recovered"],
        "proven_legal": totals["proven_legal"],
        "repeated_histories": totals["repeated"],
        "broken_histories": verdicts["history", "broken"],
        "canaries": summary.canaries,
        **_pair_figures(exercised),
        "seconds": measured["seconds"],
        "start_s": measured["start_s"],
        "task_seconds": summary.seconds,
        "states_per_s": totals["states"] / max(measured["seconds"] - measured["start_s"], 1e-9),
    }
    activation = summary.activation()
    for row in activation:
        figures |= {f"{kind}_{row['fault']}": row[kind] for kind in ("armed", "fired", "mattered") if row[kind]}
    outcome = Outcome(
        "campaign",
        verdict,
        figures,
        ("seconds", "states_per_s", "start_s", "task_seconds"),
        findings,
        seed=first.seed,
        extra={"result_hash": summary.result_hash, "strategy": first.strategy, "settings": asdict(first.settings)},
        interrupted=stopped == "interrupted",
        tables=_shard_tables(summary, activation, exercised, seed=first.seed),
    )
    return outcome, _shards_text(outcome, exercised, stopped)


def _shard_findings(summary: Summary, silent: Sequence[str]) -> list[Finding]:
    """Return the findings: dead workers, runs, shards, and what was never hit."""
    deaths, vacuous = summary.verdicts["shard", "harness"], summary.verdicts["shard", "vacuous"]
    findings = [
        Finding("worker-died", "harness", f"{row['sentence']}; run it again with --resume") for row in summary.deaths
    ]
    if (more := deaths - len(summary.deaths)) > 0:
        findings.append(Finding("worker-died", "harness", f"the workers of {counted(more, 'more shard')} died"))
    for row in summary.broken:
        code = f"contract-{row['contract']}" if row["contract"] is not None else "harness"
        details = {"history": row["seed"], "token": row["token"], "mix": row["mix"]}
        findings.append(Finding(code, row["verdict"], row["sentence"], details))
    findings += _without_canary(summary.without_canary)
    if (more := vacuous - len(summary.without_canary)) > 0:
        findings.append(Finding("no-canary", "vacuous", f"{counted(more, 'more shard')}: no planted bug was caught"))
    if not summary.shards_complete:
        return [*findings, Finding("no-shards", "vacuous", "no shard was finished")]
    return findings + _never_fired(silent)


def _never_fired(names: Iterable[str]) -> list[Finding]:
    return [Finding("never-fired", "vacuous", f"{shown_name(name)}: never hit", {"name": name}) for name in names]


def _without_canary(shards: Iterable[int]) -> list[Finding]:
    return [Finding("no-canary", "vacuous", f"shard {number}: no planted bug was caught") for number in shards]


def _shard_tables(
    summary: Summary, activation: Sequence[Mapping[str, Any]], exercised: Exercised, *, seed: int
) -> dict[str, dict[str, Any]]:
    """Return activation, discovery, exercised pairs, and seconds of each shard.

    Distinct counts are distinct within runs only.
    """
    caption = {"source": "crash campaign in shards", "seed": seed, "command": f"tornpage {' '.join(sys.argv[1:])}"}
    stages = [
        {"stage": f"shard {number}", "seconds": seconds} for number, seconds in summary.shard_seconds[:_STAGES_MAX]
    ]
    pairs = exercised.rows() if summary.shards_complete else []
    tables = {"activation": activation, "discovery": summary.discovery(), "stages": stages, "pairs": pairs}
    return {name: {"rows": rows, "caption": caption} for name, rows in tables.items() if rows}


def _shards_text(outcome: Outcome, exercised: Exercised, stopped: str) -> str:
    figures = outcome.figures
    lines = [
        f"{counted(figures['states'], 'crash state')} counted ({figures['all_states']:,} in all) from "
        f"{counted(figures['histories'], 'run')} in {figures['shards_complete']} of "
        f"{counted(figures['shards'], 'shard')}, "
        f"{figures['seconds']:.1f} s",
        f"{counted(figures['distinct_images'], 'image')} distinct within their runs, {figures['proven_legal']:,} "
        "proved "
        f"legal, {counted(figures['repeated_histories'], 'run')} repeated with equal results, "
        f"{counted(figures['canaries'], 'canary', 'canaries')} caught",
        _pairs_sentence(exercised),
    ]
    for finding in outcome.findings[:10]:
        lines.append(f"{finding['severity']}: {finding['code']}: {finding['sentence']}")
        if finding.get("token"):
            lines.append(f"  tornpage replay {finding['token']}")
    if len(outcome.findings) > 10:
        lines.append(f"and {counted(len(outcome.findings) - 10, 'more finding')}")
    verdict = "interrupted" if stopped == "interrupted" else outcome.verdict
    return "\n".join([*lines, "", f"result hash: {outcome.extra['result_hash']}", f"verdict: {verdict}"])


# ---- cost ------------------------------------------------------------------------------------------------------------


def cost_outcome(trial: Trial, cost: Cost, *, seed: int, keep_every_s: float) -> tuple[Outcome, str]:
    """Return what a campaign will cost as a document and as text."""
    measured: dict[str, float | int] = {
        "trial_states": trial.states,
        "trial_runs": trial.runs,
        "trial_s": trial.wall_s,
        "state_ms": 1e3 * trial.explored_s / max(1, trial.states),
        "shard_s": trial.shard_s,
        "processor_s": cost.processor_s,
        "processor_s_min": cost.processor_s_min,
        "processor_s_max": cost.processor_s_max,
        "seconds": cost.seconds,
        "rows": cost.rows,
        "histories": cost.runs,
        "disk_bytes": round(cost.disk_bytes),
        "driver_bytes": round(cost.driver_bytes),
    }
    figures = {"shards": cost.shards, "states": cost.states, "cores": cost.cores, "lost_s_max": keep_every_s}
    text = "\n".join(
        [
            f"{counted(cost.states, 'counted crash state')} in {counted(cost.shards, 'shard')} on "
            f"{counted(cost.cores, 'core')}",
            f"processor time  {_hours(cost.processor_s)} ({_hours(cost.processor_s_min)} to "
            f"{_hours(cost.processor_s_max)} by the spread of the runs of the trial)",
            f"time            {_hours(cost.seconds)}, if the cores do nothing else",
            f"rows            {cost.rows:,} ({counted(cost.runs, 'run')} and {counted(cost.shards, 'shard')})",
            f"disk            {cost.disk_bytes / 1e6:,.0f} MB of Parquet in {counted(cost.shards, 'file')}",
            f"driver memory   at most {cost.driver_bytes / 1e6:,.0f} MB, without the Java process",
            f"lost worker     costs up to {keep_every_s:.0f} s of work (--keep-every)",
            "",
            f"from a trial of {counted(trial.states, 'state')} in {counted(trial.runs, 'run')}, {trial.wall_s:.1f} s: "
            f"{measured['state_ms']:.1f} ms of processor time for a state, {trial.shard_s:.1f} s for a shard, "
            f"{trial.row_bytes:,.0f} bytes for a run; nothing else was run",
        ]
    )
    return Outcome("campaign", None, figures | measured, list(measured), seed=seed), text


def _hours(seconds: float) -> str:
    if seconds < 2 * 60:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:,.1f} h"
