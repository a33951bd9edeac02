"""Run `tornpage sim consumers` and `tornpage sim raft`.

Both compare a simulator with code in virtual time.
"""

from collections.abc import Callable, Iterator
from time import process_time
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome
from tornpage.cli.progress import steps_progress
from tornpage.run.directory import prepare, write_run

if TYPE_CHECKING:
    from tornpage.bench.compared import Compared

__all__ = ["consumer_groups_outcome", "raft_groups_outcome"]


def consumer_groups_outcome(*, seed: int, out: str | None) -> tuple[Outcome, str]:
    """Consume the same messages with both; return the outcome and its table.

    The verdict is "broken" for an error above 10 %, and "vacuous" if no message was repeated.
    """
    from tornpage.bench.consumers.validation import GROUPS, validate_groups

    return _compared(
        "sim consumers",
        lambda show: validate_groups(seed, show),
        steps=sum(group.seeds for group in GROUPS),
        required=("repeated_messages", "no-repeats", "no message was repeated"),
        library="library",
        seed=seed,
        out=out,
    )


def raft_groups_outcome(*, seed: int, out: str | None) -> tuple[Outcome, str]:
    """Run the same groups with both; return the outcome and its table.

    The verdict is "broken" for an error above 10 %, and "vacuous" if no election failed.
    """
    from tornpage.bench.raft.validation import RAFT_GROUPS, validate_raft

    return _compared(
        "sim raft",
        lambda show: validate_raft(seed, show),
        steps=len(RAFT_GROUPS),
        required=("failed_elections", "no-failed-elections", "no election failed"),
        library="members",
        seed=seed,
        out=out,
    )


def _compared(
    command: str,
    validate: "Callable[[Callable[[str], None]], Iterator[Compared]]",
    *,
    steps: int,
    required: tuple[str, str, str],
    library: str,
    seed: int,
    out: str | None,
) -> tuple[Outcome, str]:
    """Compare all figures.

    `required` is a figure that has to be above 0 in some group, and the code and the sentence of the finding if not.
    """
    target = None if out is None else prepare(out)
    rows: list[Compared] = []
    began, interrupted = process_time(), False
    try:
        with steps_progress("comparing", total=steps) as show:
            rows.extend(validate(show))
    except KeyboardInterrupt:
        interrupted = True
    outcome, text = _judged(command, rows, required, library, seed, process_time() - began, interrupted=interrupted)
    if target is not None:
        write_run(target, outcome)
    return outcome, text


def _judged(
    command: str,
    rows: "list[Compared]",
    required: tuple[str, str, str],
    library: str,
    seed: int,
    seconds: float,
    *,
    interrupted: bool,
) -> tuple[Outcome, str]:
    from tornpage.bench.compared import WITHIN

    needed, code, sentence = required
    far = [row for row in rows if not row.is_close]
    happened = sum(row.measured for row in rows if row.figure == needed)
    verdict = "broken" if far else "holds" if happened else "vacuous"
    findings: list[dict[str, Any]] = [
        {
            "code": "prediction-off", "severity": "broken",
            "sentence": f"{row.group}: {row.figure} is {row.measured:.4g}, predicted were {row.simulated:.4g}",
        }
        for row in far
    ]  # fmt: skip
    if verdict == "vacuous" and not interrupted:
        findings.append({"code": code, "severity": "vacuous", "sentence": sentence})
    figures: dict[str, float | int] = {
        "groups": len({row.group for row in rows}),
        "worst_error": max((row.error for row in rows), default=0.0),
        needed: happened,
        "cpu_seconds": seconds,
    }
    extra = {
        "rows": [
            {"group": row.group, "figure": row.figure, "simulated": row.simulated, "measured": row.measured,
             "error": row.error}
            for row in rows
        ]
    }  # fmt: skip
    width = max([16, *(len(row.group) for row in rows)])
    lines = [f"{'group':<{width}} {'figure':<20} {'simulated':>12} {library:>12} {'error':>8}"]
    lines += [
        f"{row.group:<{width}} {row.figure.replace('_', ' '):<20} {_shown(row.simulated):>12} "
        f"{_shown(row.measured):>12} {row.error:>8.1%}"
        for row in rows
    ]
    shown = "interrupted" if interrupted and not far else verdict
    lines += ["", f"an error of {WITHIN:.0%} is allowed: {shown}", *(each["sentence"] for each in findings)]
    outcome = Outcome(
        command, verdict, figures, ["cpu_seconds"], findings, seed=seed, interrupted=interrupted, extra=extra
    )
    return outcome, "\n".join(lines)


def _shown(value: float) -> str:
    return f"{value:.3f}" if 0 < abs(value) < 10 else f"{value:,.1f}"
