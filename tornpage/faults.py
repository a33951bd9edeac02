"""Real faults of real disks, as a document and as text."""

from collections.abc import Sequence
from typing import Any

from properties.explore.real_faults.report import FaultReport, FaultsReport
from tornpage.document import Outcome
from tornpage.progress import steps_progress

__all__ = ["faults_outcome", "outcome_of", "text_of"]


def faults_outcome(names: Sequence[str], *, seed: int) -> tuple[Outcome, str]:
    """Run the faults named, or all; return the outcome and its text."""
    from properties.contract import HarnessError
    from properties.explore.real_faults.run import FAULTS, run_faults

    try:
        with steps_progress("faults", total=len(names or FAULTS)) as show:
            report = run_faults(names, seed=seed, progress=show)
    except HarnessError as error:
        finding = {"code": "harness", "severity": "harness", "sentence": str(error)}
        return Outcome("faults", "harness", {}, findings=[finding], seed=seed), f"the harness is at fault: {error}"
    return outcome_of(report, command=_again(names, seed)), text_of(report)


def outcome_of(report: FaultsReport, *, command: str) -> Outcome:
    """Return a report as an outcome; `command` is what a caption names to run it again."""
    figures: dict[str, float | int] = {"skipped": sum(fault.verdict is None for fault in report.faults)}
    timings = []
    for fault in report.faults:
        name = fault.name.replace("-", "_")
        figures |= {f"armed_{name}": fault.armed, f"fired_{name}": fault.fired, f"mattered_{name}": fault.mattered}
        figures[f"seconds_{name}"] = fault.seconds
        timings.append(f"seconds_{name}")
    caption = {"source": "faults of real disks", "seed": report.seed, "command": command}
    return Outcome(
        "faults",
        report.verdict.value,
        figures,
        timings,
        [finding for fault in report.faults for finding in _findings(fault)],
        seed=report.seed,
        interrupted=report.interrupted,
        tables={"faults": {"rows": [fault.row() for fault in report.faults], "caption": caption}},
    )


def _again(names: Sequence[str], seed: int) -> str:
    return " ".join(["tornpage faults", *(f"--only {name}" for name in names), f"--seed {seed}"])


def _findings(fault: FaultReport) -> list[dict[str, Any]]:
    """Return what a reader has to know: a broken promise, our own fault, what was skipped, what never happened."""
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
    counts = {"armed": fault.armed, "fired": fault.fired, "mattered": fault.mattered}
    never = next((count for count, times in counts.items() if not times), None)
    if never is None:
        return []
    sentence = f"{fault.name} was never armed" if never == "armed" else f"{fault.name} never {never}"
    return [{"code": f"never-{never}", "severity": "vacuous", "fault": fault.name, "sentence": sentence}]


def text_of(report: FaultsReport) -> str:
    """Return a report for people: the table, then what was seen."""
    lines = [f"{'fault':<16}{'armed':>7}{'fired':>7}{'mattered':>10}  verdict"]
    for fault in report.faults:
        verdict = "skipped" if fault.verdict is None else fault.verdict.value
        lines.append(f"{fault.name:<16}{fault.armed:>7}{fault.fired:>7}{fault.mattered:>10}  {verdict}")
    for fault in report.faults:
        lines += ["", fault.name, *(f"  {sentence}" for sentence in fault.seen)]
        lines += [f"  {_told(finding)}" for finding in _findings(fault)]
    if report.faults and all(fault.verdict is None for fault in report.faults):
        lines += ["", "vacuous: no fault could be shown here; see `tornpage doctor`"]
    return "\n".join([*lines, "", f"verdict: {'interrupted' if report.interrupted else report.verdict.value}"])


def _told(finding: dict[str, Any]) -> str:
    if finding["severity"] != "broken":
        return f"{finding['code']}: {finding['sentence']}"
    number = finding["code"].removeprefix("contract-")
    text = f"contract {number} is broken: {finding['sentence']}"
    if finding["expected"] or finding["found"]:
        text += f" (expected {finding['expected']}; found {finding['found']})"
    return text
