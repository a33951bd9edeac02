"""Recovery crashed at its own file operations, as a document and as text."""

from typing import Any

from properties.disk.disk import Disk
from properties.explore.recovery.crashes import RecoveryReport, ShapeReport
from tornpage.document import Outcome
from tornpage.progress import steps_progress

__all__ = ["outcome_of", "recovery_outcome", "text_of"]


def recovery_outcome(*, bug: str, disk: Disk, seed: int) -> tuple[Outcome, str]:
    """Crash the recovery of every shape of store everywhere; return the outcome and its text."""
    from properties.contract import HarnessError
    from properties.explore.recovery.crashes import crash_recoveries
    from properties.explore.recovery.shapes import SHAPES
    from properties.planted import components_of

    planted = f" --bug {bug}" if bug else ""
    again = f"tornpage explore --recovery --seed {seed} --disk {disk}{planted}"
    try:
        with steps_progress("recovery", total=len(SHAPES)) as show:
            report = crash_recoveries(components=components_of(bug), disk=disk, seed=seed, progress=show)
    except HarnessError as error:
        finding = {"code": "harness", "severity": "harness", "sentence": str(error)}
        return Outcome("explore", "harness", {}, findings=[finding], seed=seed), f"the harness is at fault: {error}"
    return outcome_of(report, seed=seed, command=again), text_of(report)


def outcome_of(report: RecoveryReport, *, seed: int, command: str) -> Outcome:
    """Return a report as an outcome; `command` is what a caption names to run it again."""
    rows = [_row(shape) for shape in report.shapes]
    figures = {
        "shapes": len(rows),
        "recovery_operations": sum(row["operations"] for row in rows),
        "kills": sum(row["kills"] for row in rows),
        "power_losses": sum(row["power_losses"] for row in rows),
        "recoveries": sum(row["recoveries"] for row in rows),
    }
    return Outcome(
        "explore",
        report.verdict.value,
        figures,
        findings=[finding for shape in report.shapes for finding in _findings(shape)],
        seed=seed,
        extra={"shapes": rows},
        interrupted=report.interrupted,
        tables={"recovery": {"rows": rows, "caption": {"source": "crashed recoveries", "seed": seed,
                                                       "command": command}}},
    )  # fmt: skip


def _row(shape: ShapeReport) -> dict[str, Any]:
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


def _findings(shape: ShapeReport) -> list[dict[str, Any]]:
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
                "sentence": "the store opens otherwise than it has to",
                "expected": shape.shape.mode,
                "found": shape.judgement.mode,
            }
        )
    return found


def text_of(report: RecoveryReport) -> str:
    """Return a report for people: a line per shape, then what is broken."""
    lines = [f"{'shape':<31}{'opens':<12}{'operations':>10}{'kills':>7}{'losses':>8}  verdict"]
    for row in map(_row, report.shapes):
        lines.append(
            f"{row['shape']:<31}{row['opens']:<12}{row['operations']:>10}{row['kills']:>7}{row['power_losses']:>8}"
            f"  {row['verdict']}"
        )
    for shape in report.shapes:
        for finding in _findings(shape):
            place = f" ({finding['file']} at {finding['offset']})" if finding.get("file") else ""
            lines.append(f"{shape.shape.name}: {finding['code']} is broken: {finding['sentence']}{place}")
    return "\n".join([*lines, "", f"verdict: {'interrupted' if report.interrupted else report.verdict.value}"])
