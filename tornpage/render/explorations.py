"""Render results of explorations: each `*_outcome` returns document and text.

Crash campaigns have a module of their own (tornpage/render/campaign.py). Nothing here runs anything.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, warn
from tornpage.properties.findings import Finding
from tornpage.properties.foreign.trial import is_in_first_open
from tornpage.properties.judge.rulings import counted
from tornpage.render.counterexample import crash_lines, failure_text, failure_texts, saved_finding
from tornpage.run.writing import write_whole

if TYPE_CHECKING:
    from tornpage.properties.contract import GuaranteeBroken
    from tornpage.properties.explore.damage.campaign import DamagePlan, DamageResult
    from tornpage.properties.explore.exhaustive.run import ExhaustResult
    from tornpage.properties.explore.foreign.campaign import TargetPlan, TargetResult
    from tornpage.properties.explore.interleavings.campaign import InterleavingResult
    from tornpage.properties.explore.interleavings.run import Ran
    from tornpage.properties.explore.interleavings.scenario import Interleaving
    from tornpage.properties.explore.kills.child import KillMode
    from tornpage.properties.explore.kills.restarts import RestartResult
    from tornpage.properties.explore.kills.run import KillResult
    from tornpage.properties.explore.machines.check import CheckResult
    from tornpage.properties.explore.real_faults.report import FaultReport, FaultsReport
    from tornpage.properties.explore.recovery.crashes import LayoutReport, RecoveryReport
    from tornpage.properties.program.case import Settings

__all__ = [
    "damage_command",
    "damage_outcome",
    "exhaust_outcome",
    "faults_outcome",
    "interleaving_finding",
    "interleaving_text",
    "interleavings_outcome",
    "kills_outcome",
    "left_out_line",
    "machines_outcome",
    "recovery_outcome",
    "restarts_outcome",
    "target_command",
    "target_outcome",
]


# ---- interleavings ---------------------------------------------------------------------------------------------------


def interleavings_outcome(
    result: InterleavingResult, *, seed: int, out: str | None, command: str
) -> tuple[Outcome, str]:
    """Return a result of interleavings; write the case file to `out` if given."""
    tally = result.tally
    seconds = max(result.seconds, 1e-9)
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
        "part_runs": tally.effects["part_programs"],
        "parts_complete_1_preemption": tally.parts.completed[1],
        "parts_complete_2_preemptions": tally.parts.completed[2],
        "parts_exhausted": tally.parts.exhausted,
        "equivalent_interleavings": tally.parts.equivalent,
        **{f"happened_{effect}": count for effect, count in sorted(tally.effects.items())},
    }
    findings: list[dict[str, Any]] = [
        Finding("never-happened", "vacuous", f"{effect} never happened").document()
        for effect in result.silent
        if result.failure is None
    ]
    if tally.unknown:
        sentence = f"no order was found in time for {counted(tally.unknown, 'history', 'histories')}"
        findings.append(Finding("unknown-history", "unknown", sentence).document())
    if not result.canary and result.failure is None:
        sentence = "interrupted before the canary" if result.interrupted else "no planted bug was caught"
        findings.append(Finding("no-canary", "vacuous", sentence).document())
    if result.failure is not None:
        failure = result.failure
        findings.append(interleaving_finding(failure.interleaving, failure.broken, failure.ran))
        if out is not None:
            _save_interleaving(failure.interleaving, out, findings[-1])
    families = [{"scenario": name, "drawn": count} for name, count in sorted(tally.families.items())]
    caption = {"source": "interleavings", "seed": seed, "command": command}
    outcome = Outcome(
        "explore",
        result.verdict.value,
        figures,
        ("seconds", "interleavings_per_s", "distinct_interleavings_per_s", "points_per_s"),
        findings,
        seed=seed,
        interrupted=result.interrupted,
        tables={
            "interleavings": {"rows": families, "caption": caption},
            "priorities": {"rows": tally.parts.bounds(), "caption": caption},
        },
    )
    return outcome, _interleavings_text(result)


def interleaving_finding(interleaving: Interleaving, broken: GuaranteeBroken, ran: Ran) -> dict[str, Any]:
    """Return a broken interleaving as an entry of a run document."""
    from tornpage.properties.explore.interleavings.token import described, token_of

    return Finding.of_broken(
        broken,
        expected=broken.expected,
        found=broken.found.strip(),
        program=described(interleaving),
        history=[str(call) for call in ran.calls],
        turns=[f"task {interleaving.task_of(t.task)} x{t.points} to {t.left_at}" for t in ran.trace.turns],
        switches=interleaving.switches,
        token=token_of(interleaving),
    ).document()


def _save_interleaving(interleaving: Interleaving, out: str, finding: dict[str, Any]) -> None:
    """Write the case file; the token is printed in any case."""
    from tornpage.properties.explore.interleavings.token import document_of

    path = Path(out) / f"interleaving-{finding['token'][4:12]}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(document_of(interleaving), indent=2) + "\n")
    except OSError as error:
        warn(f"case file not written to {out}: {error.strerror}; the token has the same content")
    else:
        finding["case_file"] = str(path)


def _interleavings_text(result: InterleavingResult) -> str:
    tally = result.tally
    if result.failure is not None:
        failure = result.failure
        told = interleaving_text(failure.interleaving, failure.broken, failure.ran)
        return f"{told}\n\n{counted(tally.interleavings, 'interleaving')} before it\n\nverdict: broken"
    seconds = max(result.seconds, 1e-9)
    tried, is_all = tally.exhausted
    lines = [
        f"{counted(tally.interleavings, 'interleaving')} of {counted(tally.scenarios, 'scenario')} in "
        f"{result.seconds:.1f} s, "
        f"{len(tally.distinct):,} of them distinct: {len(tally.distinct) / seconds:,.0f} distinct/s",
        f"{counted(len(tally.outcomes), 'distinct outcome')}, {counted(tally.points, 'yield point')}, "
        f"{counted(result.repeated, 'interleaving')} repeated with equal results",
        f"switching only at locks: {counted(tried, 'interleaving')} of the smallest scenario, "
        f"{'all' if is_all else 'not all'}",
        f"single parts: {counted(tally.effects['part_programs'], 'run')}; "
        f"every rule holds in {counted(tally.parts.completed[1], 'program')} with at most 1 preemption, "
        f" {tally.parts.completed[2]} with at most 2, {tally.parts.exhausted} in every order",
        *(
            f"by priorities: {each['runs']:,.0f} runs of {each['tasks']:.0f} tasks, depth {each['depth']:.0f}, up to "
            f"{each['steps']:,.0f} steps: at least {each['bound']:.1e} each, {each['bound_of_all']:.1e} together"
            for each in tally.parts.bounds()
        ),
        "",
        *(f"{effect:<20}{tally.effects[effect]:>10,}" for effect in sorted(tally.effects)),
        "",
    ]
    if result.silent:
        lines.append(f"vacuous: {', '.join(result.silent)} never happened; explore longer")
    if tally.unknown:
        lines.append(f"unknown: no order was found in time for {counted(tally.unknown, 'history', 'histories')}")
    not_caught = "canary: not tried" if result.interrupted else "canary: no planted bug was caught"
    lines.append(f"canary: {result.canary} caught" if result.canary else not_caught)
    return "\n".join([*lines, f"verdict: {'interrupted' if result.interrupted else result.verdict.value}"])


def interleaving_text(interleaving: Interleaving, broken: GuaranteeBroken, ran: Ran) -> str:
    """Return a broken interleaving for people."""
    told = interleaving_finding(interleaving, broken, ran)
    lines = [f"contract {broken.contract} is broken: {broken.sentence}", ""]
    if broken.expected:
        lines.append(f"  expected  {broken.expected}")
    if broken.found and "\n" not in broken.found:
        lines.append(f"  found     {broken.found}")
    lines += ["", "  program", *(f"    {line}" for line in told["program"])]
    lines += ["", "  calls, with logical start and end times", *(f"    {line}" for line in told["history"])]
    lines += ["", "  turns: task, yield points passed, and where it was interrupted"]
    lines += [f"    {line}" for line in told["turns"]]
    return "\n".join([*lines, "", "  run it again:", f"    tornpage replay {told['token']}"])


# ---- real processes --------------------------------------------------------------------------------------------------


def kills_outcome(result: KillResult, *, seed: int, mode: KillMode) -> tuple[Outcome, str]:
    """Return real writers killed by SIGKILL."""
    report = result.tally
    figures: dict[str, float | int] = {
        "cycles": report.cycles,
        "killed": report.killed,
        "completed": report.completed,
        "distinct_points": len(report.points),
        "distinct_outcomes": len(report.outcomes),
        "judged": report.judged,
        "recovered_twice": report.recovered_twice,
        "violations": len(report.violations),
        "seconds": result.seconds,
        "cycles_per_s": report.cycles / max(result.seconds, 1e-9),
        **{f"killed_in_{verb}": count for verb, count in report.killed_in.items()},
    }
    findings = [
        Finding(f"contract-{v.contract}", "broken", v.sentence, {"place": v.kept}).document() for v in report.violations
    ]
    outcome = Outcome(
        "explore",
        result.verdict.value,
        figures,
        ("seconds", "cycles_per_s"),
        findings,
        seed=seed,
        extra={"result_hash": result.result_hash},
        interrupted=result.interrupted,
    )
    lines = [
        f"{counted(report.killed, 'writer')} killed by SIGKILL at a {mode} in {counted(report.cycles, 'cycle')}, "
        f"{result.seconds:.1f} s: "
        f"{report.cycles / max(result.seconds, 1e-9):,.0f} cycles/s",
        f"{counted(len(report.points), 'distinct kill point')}, {counted(len(report.outcomes), 'distinct outcome')}",
        f"{counted(report.judged, 'directory', 'directories')} judged, {report.recovered_twice:,} of them "
        "recovered twice",
        "killed during " + ", ".join(f"{verb} {count:,}" for verb, count in sorted(report.killed_in.items())),
        *(f"contract {v.contract} is broken: {v.sentence} (kept in {v.kept})" for v in report.violations),
        f"result hash: {result.result_hash}",
        f"verdict: {'interrupted' if result.interrupted else result.verdict.value}",
    ]
    return outcome, "\n".join(lines)


def damage_command(plan: DamagePlan) -> str:
    """Return the command that runs a damage campaign again."""
    planted = f" --bug {plan.bug}" if plan.bug else ""
    stores = " ".join(shlex.quote(store) for store in plan.stores)
    return f"tornpage explore damage --damages {plan.damages} --seed {plan.seed}{planted} {stores}"


def damage_outcome(result: DamageResult, plan: DamagePlan) -> tuple[Outcome, str]:
    """Return stores that were damaged in one place at a time."""
    tally = result.tally
    rate = tally["damages"] / max(result.seconds, 1e-9)
    modes = ("read-write", "cut", "read-only", "refused")
    figures: dict[str, float | int] = {
        "damages": tally["damages"],
        **{mode.replace("-", "_"): tally[mode] for mode in modes},
        "broken": tally["broken"],
        **{name: count for name, count in sorted(tally.items()) if name.startswith(("kind_", "change_"))},
        "seconds": result.seconds,
        "damages_per_s": rate,
    }
    rows = [found.failure for found in result.found]
    findings = [
        Finding(f"contract-{row.contract}", "broken", row.sentence, {"place": f"{row.store}: {row.damage}"}).document()
        for row in rows
    ]
    findings += [Finding("harness", "harness", fault).document() for fault in result.faults]
    verdict = result.verdict.value
    lines = [
        f"{counted(tally['damages'], 'damage')} of {counted(len(plan.stores), 'store')}, {result.seconds:.1f} s, "
        f"{rate:,.0f} damages/s",
        ", ".join(f"{mode} {tally[mode]:,}" for mode in modes),
        *(f"contract {r.contract} is broken: {r.sentence}\n  {r.store}, damage {r.number}: {r.damage}" for r in rows),
        *result.faults,
        *([f"vacuous: {', '.join(result.silent)} never damaged"] if result.silent else []),
        *(["vacuous: the canary was not caught"] if result.without_canary and not rows else []),
        f"result hash: {result.result_hash}",
        f"verdict: {'interrupted' if result.interrupted and not rows else verdict}",
    ]
    outcome = Outcome(
        "explore",
        verdict,
        figures,
        ("seconds", "damages_per_s"),
        findings,
        seed=plan.seed,
        extra={"result_hash": result.result_hash, "canary": result.canary},
        interrupted=result.interrupted,
    )
    return outcome, "\n".join(lines)


def restarts_outcome(result: RestartResult, *, seed: int) -> tuple[Outcome, str]:
    """Return fresh interpreters that held a store in turn."""
    tally = result.tally
    rate = tally.restarts / max(result.seconds, 1e-9)
    figures: dict[str, float | int] = {
        "restarts": tally.restarts,
        "refused": tally.refused,
        "killed": tally.killed,
        "processes": tally.processes,
        "messages": tally.messages,
        "seconds": result.seconds,
        "restarts_per_s": rate,
    }
    broken = [each.failure for each in result.found]
    findings = [Finding(f"contract-{each.contract}", "broken", str(each)).document() for each in broken]
    verdict = result.verdict.value
    said = "interrupted" if result.interrupted and not broken else verdict
    lines = [
        f"{counted(tally.restarts, 'restart')} by {counted(tally.processes, 'fresh process', 'fresh processes')}, "
        f"{result.seconds:.1f} s: "
        f"{tally.refused:,} refused while another was running, {tally.killed:,} killed, "
        f"{counted(tally.messages, 'message')}",
        *(str(each) for each in broken),
        f"verdict: {said}",
    ]
    outcome = Outcome(
        "explore", verdict, figures, ("seconds", "restarts_per_s"), findings, seed=seed, interrupted=result.interrupted
    )
    return outcome, "\n".join(lines)


# ---- crashed recoveries, real faults ---------------------------------------------------------------------------------


def recovery_outcome(report: RecoveryReport, *, seed: int, command: str) -> tuple[Outcome, str]:
    """Return crashed recoveries; `command` is what a caption names to run them again."""
    rows = [_recovery_row(shape) for shape in report.shapes]
    figures = {
        "shapes": len(rows),
        "recovery_operations": sum(row["operations"] for row in rows),
        "kills": sum(row["kills"] for row in rows),
        "power_losses": sum(row["power_losses"] for row in rows),
        "recoveries": sum(row["recoveries"] for row in rows),
    }
    outcome = Outcome(
        "explore",
        report.verdict.value,
        figures,
        findings=[finding for shape in report.shapes for finding in _recovery_findings(shape)],
        seed=seed,
        extra={"shapes": rows},
        interrupted=report.interrupted,
        tables={"recovery": {"rows": rows, "caption": {"source": "crashed recoveries", "seed": seed,
                                                       "command": command}}},
    )  # fmt: skip
    return outcome, _recovery_text(report)


def _recovery_row(shape: LayoutReport) -> dict[str, Any]:
    crashes = shape.judgement.crashes
    return {
        "shape": shape.shape.name,
        "opens": shape.judgement.mode,
        "operations": crashes.operations,
        "kills": crashes.kinds["a kill"],
        "power_losses": crashes.kinds["a power loss"],
        "recoveries": shape.judgement.figures["recoveries"],
        "records_kept": shape.judgement.figures["records_kept"],
        "records_in_quarantine": shape.judgement.figures["records_in_quarantine"],
        "verdict": "vacuous" if shape.is_right and shape.is_vacuous else "holds" if shape.is_right else "broken",
        "broken": shape.judgement.numbers("broken"),
    }


def _recovery_findings(shape: LayoutReport) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "code": f"contract-{ruling.contract}",
            "severity": "broken",
            "shape": shape.shape.name,
            "sentence": ruling.sentence,
            "file": ruling.file or None,
            "offset": ruling.offset,
            "expected": ruling.expected,
            "found": ruling.found,
        }
        for ruling in shape.judgement.rulings
        if ruling.verdict == "broken"
    ]
    if shape.judgement.mode != shape.shape.mode:
        found.append(
            {
                "code": "contract-7",
                "severity": "broken",
                "shape": shape.shape.name,
                "sentence": "the store opens in the wrong mode",
                "expected": shape.shape.mode,
                "found": shape.judgement.mode,
            }
        )
    return found


def _recovery_text(report: RecoveryReport) -> str:
    """Return a line for each store layout, then what is broken."""
    lines = [f"{'layout':<31}{'opens':<12}{'operations':>10}{'kills':>7}{'losses':>8}  verdict"]
    for row in map(_recovery_row, report.shapes):
        lines.append(
            f"{row['shape']:<31}{row['opens']:<12}{row['operations']:>10}{row['kills']:>7}{row['power_losses']:>8}"
            f"  {row['verdict']}"
        )
    for shape in report.shapes:
        for finding in _recovery_findings(shape):
            place = f" ({finding['file']} at {finding['offset']})" if finding.get("file") else ""
            lines.append(f"{shape.shape.name}: {finding['code']} is broken: {finding['sentence']}{place}")
    return "\n".join([*lines, "", f"verdict: {'interrupted' if report.interrupted else report.verdict.value}"])


def faults_outcome(report: FaultsReport, *, command: str) -> tuple[Outcome, str]:
    """Return real faults of real disks; `command` is what a caption names to run them again."""
    figures: dict[str, float | int] = {"skipped": sum(fault.verdict is None for fault in report.faults)}
    timings = []
    for fault in report.faults:
        name = fault.name.replace("-", "_")
        figures |= {f"armed_{name}": fault.enabled, f"fired_{name}": fault.hit, f"mattered_{name}": fault.effective}
        figures[f"seconds_{name}"] = fault.seconds
        timings.append(f"seconds_{name}")
    caption = {"source": "faults of real disks", "seed": report.seed, "command": command}
    outcome = Outcome(
        "faults",
        report.verdict.value,
        figures,
        timings,
        [finding for fault in report.faults for finding in _fault_findings(fault)],
        seed=report.seed,
        interrupted=report.interrupted,
        tables={"faults": {"rows": [fault.row() for fault in report.faults], "caption": caption}},
    )
    return outcome, _faults_text(report)


def _fault_findings(fault: FaultReport) -> list[dict[str, Any]]:
    """Return findings: broken guarantees, failures of the harness, skipped and unused faults."""
    if fault.harness:
        return [{"code": "harness", "severity": "harness", "fault": fault.name, "sentence": fault.harness}]
    if fault.broken is not None:
        broken = fault.broken
        return [
            {
                "code": f"contract-{broken.contract}",
                "severity": "broken",
                "fault": fault.name,
                "sentence": broken.sentence,
                "expected": broken.expected,
                "found": broken.found,
            }
        ]
    if fault.skipped:
        return [{"code": "skipped", "severity": "note", "fault": fault.name, "sentence": fault.skipped}]
    counts = {"armed": fault.enabled, "fired": fault.hit, "mattered": fault.effective}
    never = next((count for count, times in counts.items() if not times), None)
    if never is None:
        return []
    sentence = f"{fault.name} was never armed" if never == "armed" else f"{fault.name} never {never}"
    return [{"code": f"never-{never}", "severity": "vacuous", "fault": fault.name, "sentence": sentence}]


def _faults_text(report: FaultsReport) -> str:
    """Return the table, then what was seen."""
    lines = [f"{'fault':<16}{'enabled':>8}{'hit':>7}{'effective':>11}  verdict"]
    for fault in report.faults:
        verdict = "skipped" if fault.verdict is None else fault.verdict.value
        lines.append(f"{fault.name:<16}{fault.enabled:>8}{fault.hit:>7}{fault.effective:>11}  {verdict}")
    for fault in report.faults:
        lines += ["", fault.name, *(f"  {sentence}" for sentence in fault.seen)]
        lines += [f"  {_fault_line(finding)}" for finding in _fault_findings(fault)]
    if report.faults and all(fault.verdict is None for fault in report.faults):
        lines += ["", "vacuous: no fault could be shown here; see `tornpage doctor`"]
    return "\n".join([*lines, "", f"verdict: {'interrupted' if report.interrupted else report.verdict.value}"])


def _fault_line(finding: dict[str, Any]) -> str:
    if finding["severity"] != "broken":
        return f"{finding['code']}: {finding['sentence']}"
    number = finding["code"].removeprefix("contract-")
    text = f"contract {number} is broken: {finding['sentence']}"
    if finding["expected"] or finding["found"]:
        text += f" (expected {finding['expected']}; found {finding['found']})"
    return text


# ---- exhaustive runs -------------------------------------------------------------------------------------------------


def exhaust_outcome(result: ExhaustResult, *, out: str | None) -> tuple[Outcome, str]:
    """Return an exhaustive run, writing the case file if there is a place for it."""
    from tornpage.properties.explore.exhaustive.run import canary_bug
    from tornpage.properties.explore.exhaustive.statement import figures_of, statement_of
    from tornpage.properties.program.case import describe

    figures: dict[str, float | int] = {
        **figures_of(result.tally),
        "seconds": result.seconds,
        "states_per_s": result.tally.states_per_s,
        "workloads_kept": result.tally.again,
    }
    findings: list[dict[str, Any]] = []
    if result.failure is not None:
        findings.append(saved_finding(result.failure, out))
    elif not (result.canary or result.is_cut):
        sentence = f"the planted bug {canary_bug(result.tally.plan.disk)} was not caught"
        findings.append(Finding("no-canary", "vacuous", sentence).document())
    alphabet = [
        {"letter": entry.name, "sentence": entry.sentence, "operations": [*map(describe, entry.operations)]}
        for entry in result.tally.plan.operation_set
    ]
    bound = {"statement": statement_of(result.tally), "result_hash": result.result_hash, "alphabet": alphabet}
    outcome = Outcome(
        "exhaust",
        result.verdict.value,
        figures,
        ["seconds", "states_per_s", "workloads_kept"],
        findings,
        extra=bound,
        interrupted=result.interrupted,
    )
    return outcome, _exhaust_text(result)


def _exhaust_text(result: ExhaustResult) -> str:
    """Return the failure, or the statement and what it rests on."""
    from tornpage.properties.explore.exhaustive.statement import statement_of

    states = sum(each.states for each in result.tally.explored)
    kept = f", {counted(result.tally.again, 'result')} kept from an earlier run" if result.tally.again else ""
    spent = (
        f"{counted(states, 'crash state')} in {result.seconds:.1f} s, {result.tally.states_per_s:,.0f} a second{kept}"
    )
    if result.failure is not None:
        before = f"{spent}; before it: {statement_of(result.tally)}"
        return f"{failure_text(result.failure)}\n\n{before}\n\nverdict: broken"
    canary = f"{result.canary} caught" if result.canary else "no planted bug was caught"
    stopped = result.is_cut
    lines = [
        statement_of(result.tally),
        "",
        spent,
        f"result hash {result.result_hash}",
        f"canary: {'not tried' if stopped else canary}",
        f"verdict: {'interrupted' if result.interrupted else result.verdict.value}",
    ]
    return "\n".join(lines)


# ---- machines and stores of other people -----------------------------------------------------------------------------


def machines_outcome(
    result: CheckResult, *, asked: int, seconds: float, seed: int, out: str | None, settings: Settings | None
) -> tuple[Outcome, str]:
    """Return a run of `asked` examples of machines; `settings` describe a target."""
    is_unfinished = result.interrupted and result.failure is None
    fired = result.tally.fired
    figures: dict[str, float | int] = {"examples": result.tally.examples if is_unfinished else asked}
    figures |= {"seconds": seconds} | {f"ran_{name}": number for name, number in fired.items()}
    findings: list[dict[str, Any]] = []
    lines = [", ".join(f"{number:,} {name}" for name, number in sorted(fired.items()))]
    if result.found:
        failures = [each.failure for each in result.found]
        findings += [saved_finding(failure, out) for failure in failures]
        lines = failure_texts(failures)
    for name in result.silent:
        findings.append(Finding("never-happened", "vacuous", f"{name} never happened").document())
    if settings:
        crashes, spent = fired["crash"], max(result.seconds, 1e-9)
        lines.append(
            f"{counted(result.tally.examples, 'example')} with {counted(crashes, 'crash', 'crashes')} in "
            f"{result.seconds:.1f} s, "
            f"{crashes / spent:,.0f} crashes/s{_found_after(result)}"
        )
        figures["crashes_per_s"] = crashes / spent
        if result.first_failure_seconds is not None:
            figures["first_failure_s"] = result.first_failure_seconds
    if result.silent:
        lines.append(f"vacuous: {', '.join(result.silent)} never happened; give more examples")
    if settings:
        from tornpage.properties.foreign.tracing import why_untraceable

        lines += [left_out_line(why_untraceable())] if why_untraceable() else []
    verdict = result.verdict.value
    if is_unfinished:
        lines.append(f"interrupted: {result.tally.examples:,} of {asked:,} examples are done")
        verdict = "interrupted"
    outcome = Outcome(
        "check",
        result.verdict.value,
        figures,
        [name for name in ("seconds", "crashes_per_s", "first_failure_s") if name in figures],
        findings,
        seed=seed,
        extra={"target": settings.target} if settings else {},
        interrupted=result.interrupted,
    )
    return outcome, "\n".join([*lines, "", f"verdict: {verdict}"])


def left_out_line(reason: str) -> str:
    """Return a line that says which crash faults cannot be made of a target here."""
    return f"only process kills between answers; no power loss: {reason}"


def target_command(plan: TargetPlan, *, shards: int | None = None) -> str:
    """Return the command line of a campaign, defaults spelled out.

    With `shards` it is `tornpage campaign`, and the plan is that of a shard.
    """
    settings = plan.settings
    verb = ["explore", "target"] if shards is None else ["campaign", "--shards", str(shards), "--target"]
    words = ["tornpage", *verb, settings.target, "--disk", settings.disk, "--seed", str(plan.seed)]
    states = "--states" if shards is None else "--states-per-shard"
    words += [] if plan.states is None else [states, str(plan.states)]
    words += [] if plan.seconds is None else ["--seconds", f"{plan.seconds:g}"]
    words += ["--from", plan.start]
    words += ["--failures", str(plan.failures_max), "--answer-seconds", f"{settings.answer_seconds:g}"]
    return shlex.join(words)


def target_outcome(
    result: TargetResult,
    plan: TargetPlan,
    *,
    command: str,
    out: str | None,
    verb: str = "explore",
) -> tuple[Outcome, str]:
    """Return a campaign on a foreign store, writing case files if there is a place for them."""
    tally = result.tally
    figures: dict[str, float | int] = {
        "states": tally.states,
        "histories": tally.histories,
        "seconds": result.seconds,
        "states_per_s": tally.states / max(result.seconds, 1e-9),
    }
    for kind, counts in (("armed", tally.enabled), ("fired", tally.hit), ("mattered", tally.effective)):
        figures |= {f"{kind}_{name}": count for name, count in counts.items()}
    findings = [
        saved_finding(
            each.failure, out, crash=crash_lines(each.failure), in_first_open=is_in_first_open(each.failure.case)
        )
        for each in result.found
    ]
    for name in _never_happened(result) if not result.found else ():
        findings.append(Finding("never-happened", "vacuous", f"{name} never happened").document())
    findings += [Finding("harness", "harness", fault).document() for fault in result.faults]
    extra = {
        "target": plan.settings.target,
        "command_line": command,
        "left_out": tally.left_out,
        "without_power_loss": dict(tally.without_power),
    }
    if verb == "campaign":
        figures["shards"] = result.shards
        extra["result_hash"] = result.result_hash
    if result.first_failure_seconds is not None:
        figures["first_failure_s"] = result.first_failure_seconds
    verdict = result.verdict.value
    timings = [name for name in ("seconds", "states_per_s", "first_failure_s") if name in figures]
    outcome = Outcome(verb, verdict, figures, timings, findings, plan.seed, extra=extra, interrupted=result.interrupted)
    return outcome, _target_text(result)


def _found_after(result: TargetResult | CheckResult) -> str:
    """Return the time of the first failure as a part of a line."""
    seconds = result.first_failure_seconds
    return "" if seconds is None else f"; the first failure was found after {seconds:.1f} s"


def _never_happened(result: TargetResult) -> list[str]:
    return [*result.silent, *(["canary"] if result.without_canary else [])]


def _target_text(result: TargetResult) -> str:
    tally, failures = result.tally, [each.failure for each in result.found]
    lines = [f"{text}\n" for text in failure_texts(failures)]
    rate = tally.states / max(result.seconds, 1e-9)
    counts = f"{counted(tally.states, 'crash state')} of {counted(tally.histories, 'run')}"
    lines += [f"{counts}, {rate:,.0f} states/s{_found_after(result)}", ""]
    names = sorted(tally.enabled.keys() | tally.effective.keys())
    lines += [f"  {'':<14}{'enabled':>8}{'hit':>8}{'effective':>10}"]
    lines += [
        f"  {name:<14}{tally.enabled[name]:>8,}{tally.hit[name]:>8,}{tally.effective[name]:>10,}" for name in names
    ]
    if tally.left_out:
        lines += ["", left_out_line(tally.left_out)]
    elif tally.kills_only:
        lines += ["", "only process kills were asked for"]
    if tally.reused_only:
        lines += [
            "",
            "a failure showed only in a process that had opened another directory; none is reused since",
        ]
    if tally.without_power and not tally.left_out:
        lines += ["", "states without a power loss, because it cannot be made of them:"]
        lines += [f"  {number:>8,}  {reason}" for reason, number in sorted(tally.without_power.items())]
    lines += ["", *result.faults] if result.faults else []
    if not (failures or result.interrupted) and (missing := _never_happened(result)):
        lines += ["", f"vacuous: {', '.join(missing)} never happened; give more states"]
    return "\n".join([*lines, "", f"verdict: {'interrupted' if result.interrupted else result.verdict.value}"])
