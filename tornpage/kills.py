"""Real writers killed by SIGKILL, as a document and as text."""

from dataclasses import replace
from typing import TYPE_CHECKING

from tornpage.document import Outcome, refuse
from tornpage.progress import counted_progress

if TYPE_CHECKING:
    from properties.explore.kills.child import KillMode
    from properties.explore.kills.run import KillResult

__all__ = ["kill_outcome"]

_TIMINGS = ("seconds", "cycles_per_s")


def kill_outcome(
    kills: int,
    *,
    seed: int,
    directory: str | None,
    file_bytes: int,
    bug: str,
    mode: "KillMode" = "step",
    workers: int = 1,
) -> tuple[Outcome, str]:
    """Kill `kills` writers in a new directory below `directory`, each as a step of that kind begins, by so many workers
    at the same time; return the outcome and its text.
    """
    from properties.contract import HarnessError
    from properties.explore.kills.run import KILL_SETTINGS, run_kills

    try:
        with counted_progress("killing", total=kills, unit="writers") as show:
            result = run_kills(
                kills,
                seed=seed,
                mode=mode,
                directory=directory,
                settings=replace(KILL_SETTINGS, file_bytes=file_bytes, bug=bug),
                workers=workers,
                progress=lambda cycles: show(cycles, ""),
            )
    except HarnessError as error:
        finding = {"code": "harness", "severity": "harness", "sentence": str(error)}
        return Outcome("explore", "harness", {}, findings=[finding], seed=seed), f"the harness is at fault: {error}"
    except OSError as error:
        refuse(f"cannot work in {error.filename or directory}: {error.strerror}; name another --directory")
    return _outcome_of(result, seed), _text_of(result, mode)


def _outcome_of(result: "KillResult", seed: int) -> Outcome:
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
        {"code": f"contract-{v.contract}", "severity": "broken", "sentence": v.sentence, "place": v.kept}
        for v in report.violations
    ]
    return Outcome(
        "explore",
        result.verdict.value,
        figures,
        _TIMINGS,
        findings,
        seed=seed,
        extra={"result_hash": result.result_hash},
        interrupted=result.interrupted,
    )


def _text_of(result: "KillResult", mode: "KillMode") -> str:
    report = result.tally
    lines = [
        f"{report.killed:,} writers killed by SIGKILL at a {mode} in {report.cycles:,} cycles, {result.seconds:.1f} s: "
        f"{report.cycles / max(result.seconds, 1e-9):,.0f} cycles/s",
        f"{len(report.points):,} distinct points, {len(report.outcomes):,} distinct outcomes",
        f"{report.judged:,} directories judged, {report.recovered_twice:,} of them recovered twice",
        "killed in " + ", ".join(f"{verb} {count:,}" for verb, count in sorted(report.killed_in.items())),
        *(f"contract {v.contract} is broken: {v.sentence} (kept in {v.kept})" for v in report.violations),
        f"result hash: {result.result_hash}",
        f"verdict: {'interrupted' if result.interrupted else result.verdict.value}",
    ]
    return "\n".join(lines)
