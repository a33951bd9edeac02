"""Show what was measured on a file system."""

from typing import Any

from tornpage.cli.document import Outcome
from tornpage.properties.explore.real_faults.file_systems.measure import Measured
from tornpage.properties.judge.rulings import counted

__all__ = ["measured_outcome"]

_SHOWN_MAX = 5


def measured_outcome(measured: Measured, *, command: str) -> tuple[Outcome, str]:
    """Return the outcome of a measurement and its text.

    A caption names `command` to run it again.
    """
    found = measured.comparison
    figures: dict[str, float | int] = {
        "workloads": measured.workloads,
        "states": found.states,
        "distinct_trees": len(found.distinct),
        "illegal_trees": len(found.illegal),
        "illegal_trees_journal": len(measured.common.illegal),
        "unreadable_images": len(found.unreadable),
        "departures": sum(found.departures.values()),
        "rules_never_seen": len(found.never_seen),
        "planted_rule_illegal_trees": len(measured.planted.illegal),
    }
    caption = {"source": f"power losses of {measured.kind}", "seed": measured.seed, "command": command}
    outcome = Outcome(
        "faults disk",
        measured.verdict.value,
        figures,
        [name for name in figures if name != "workloads"],
        _findings(measured),
        seed=measured.seed,
        extra={"filesystem": measured.kind},
        interrupted=measured.interrupted,
        tables={"rules": {"rows": measured.rows(), "caption": caption}},
    )
    return outcome, _text(measured)


def _findings(measured: Measured) -> list[dict[str, Any]]:
    found = measured.comparison
    findings: list[dict[str, Any]] = [
        {"code": "illegal-tree", "severity": "broken", "sentence": tree.sentence(), "tree": tree.document()}
        for tree in (*found.illegal, *measured.common.illegal)
    ]
    findings += [{"code": "unreadable-image", "severity": "broken", "sentence": text} for text in found.unreadable]
    findings += [
        {"code": "harness", "severity": "harness", "sentence": text}
        for text in (*found.refused, *measured.common.refused)
    ]
    if measured.skipped:
        findings.append({"code": "skipped", "severity": "note", "sentence": measured.skipped})
    elif not measured.caught:
        sentence = "the planted wrong rule was not found out"
        findings.append({"code": "no-canary", "severity": "vacuous", "sentence": sentence})
    findings += [
        {"code": "never-happened", "severity": "note", "sentence": f"permitted and never seen: {rule}"}
        for rule in found.never_seen
        if found.states
    ]
    return findings


def _text(measured: Measured) -> str:
    found = measured.comparison
    if measured.skipped:
        return f"skipped: {measured.skipped}\n\nverdict: {measured.verdict.value}"
    lines = [
        f"{measured.kind}: {counted(measured.workloads, 'workload')}, {counted(found.states, 'crash state')}, "
        f"{counted(len(found.distinct), 'different tree')}",
        "",
        f"{'rule':<48}{'states':>8}",
        *(f"{row['rule']:<48}{row['seen'] or 'never seen':>8}" for row in measured.rows()),
    ]
    lines += [f"{name}: {counted(count, 'state')}, outside the crash model" for name, count in found.departures.items()]
    trees = [tree.sentence() for tree in found.illegal]
    trees += [f"{tree.sentence()} (disk journal)" for tree in measured.common.illegal]
    broken = [*trees, *found.unreadable, *found.refused, *measured.common.refused]
    if broken:
        lines += ["", *broken[:_SHOWN_MAX]]
        if len(broken) > _SHOWN_MAX:
            lines.append(f"and {len(broken) - _SHOWN_MAX} more")
    lines += ["", f"the planted wrong rule was {'' if measured.caught else 'not '}found out"]
    return "\n".join([*lines, f"verdict: {'interrupted' if measured.interrupted else measured.verdict.value}"])
