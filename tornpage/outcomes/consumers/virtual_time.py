"""Run `tornpage sim consumers`: the simulator of consumers against the library."""

from time import process_time
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome
from tornpage.cli.progress import steps_progress
from tornpage.run.directory import prepare, write_run

if TYPE_CHECKING:
    from tornpage.bench.consumers.validation import Compared

__all__ = ["consumer_groups_outcome"]


def consumer_groups_outcome(*, seed: int, out: str | None) -> tuple[Outcome, str]:
    """Consume the same messages with both; return the outcome and its table.

    The verdict is "broken" for an error above 10 %, and "vacuous" if no message was repeated.
    """
    from tornpage.bench.consumers.validation import GROUPS, validate_groups

    target = None if out is None else prepare(out)
    rows: list[Compared] = []
    began, interrupted = process_time(), False
    try:
        with steps_progress("comparing", total=sum(group.seeds for group in GROUPS)) as show:
            rows.extend(validate_groups(seed, show))
    except KeyboardInterrupt:
        interrupted = True
    outcome, text = _judged(rows, seed, process_time() - began)
    outcome.interrupted = interrupted
    if target is not None:
        write_run(target, outcome)
    return outcome, text


def _judged(rows: "list[Compared]", seed: int, seconds: float) -> tuple[Outcome, str]:
    from tornpage.bench.consumers.validation import WITHIN

    far = [row for row in rows if not row.is_close]
    repeated = sum(row.measured for row in rows if row.figure == "repeated_messages")
    verdict = "broken" if far else "holds" if repeated else "vacuous"
    findings: list[dict[str, Any]] = [
        {
            "code": "prediction-off", "severity": "broken",
            "sentence": f"{row.group}: {row.figure} is {row.measured:.4g}, predicted were {row.simulated:.4g}",
        }
        for row in far
    ]  # fmt: skip
    if not repeated and not far:
        findings.append({"code": "no-repeats", "severity": "vacuous", "sentence": "no message was repeated"})
    figures: dict[str, float | int] = {
        "groups": len({row.group for row in rows}),
        "worst_error": max((row.error for row in rows), default=0.0),
        "repeated_messages": repeated,
        "cpu_seconds": seconds,
    }
    extra = {
        "rows": [
            {"group": row.group, "figure": row.figure, "simulated": row.simulated, "measured": row.measured,
             "error": row.error}
            for row in rows
        ]
    }  # fmt: skip
    lines = [f"{'group':<16} {'figure':<20} {'simulated':>12} {'library':>12} {'error':>8}"]
    lines += [
        f"{row.group:<16} {row.figure.replace('_', ' '):<20} {row.simulated:>12,.1f} {row.measured:>12,.1f} "
        f"{row.error:>8.1%}"
        for row in rows
    ]
    lines += ["", f"an error of {WITHIN:.0%} is allowed: {verdict}", *(each["sentence"] for each in findings)]
    return Outcome("sim consumers", verdict, figures, ["cpu_seconds"], findings, seed=seed, extra=extra), "\n".join(
        lines
    )
