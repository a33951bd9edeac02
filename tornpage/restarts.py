"""Fresh interpreters that hold a store, as a document and as text."""

from dataclasses import replace

from tornpage.document import Outcome, refuse
from tornpage.progress import counted_progress

__all__ = ["restart_outcome"]

_TIMINGS = ("seconds", "restarts_per_s")


def restart_outcome(
    restarts: int, *, seed: int, directory: str | None, file_bytes: int, bug: str
) -> tuple[Outcome, str]:
    """Restart a store so often in a new directory below `directory`; return the outcome and its text."""
    from properties.contract import HarnessError
    from properties.explore.kills.restarts import run_restarts
    from properties.explore.kills.run import KILL_SETTINGS

    settings = replace(KILL_SETTINGS, file_bytes=file_bytes, bug=bug)
    try:
        with counted_progress("restarting", total=restarts, unit="restarts") as show:
            report = run_restarts(
                restarts, seed=seed, directory=directory, settings=settings, progress=lambda done: show(done, "")
            )
    except HarnessError as error:
        finding = {"code": "harness", "severity": "harness", "sentence": str(error)}
        return Outcome("explore", "harness", {}, findings=[finding], seed=seed), f"the harness is at fault: {error}"
    except OSError as error:
        refuse(f"cannot work in {error.filename or directory}: {error.strerror}; name another --directory")
    rate = report.restarts / max(report.seconds, 1e-9)
    figures: dict[str, float | int] = {
        "restarts": report.restarts,
        "refused": report.refused,
        "killed": report.killed,
        "processes": report.processes,
        "messages": report.messages,
        "seconds": report.seconds,
        "restarts_per_s": rate,
    }
    broken = [] if report.broken is None else [report.broken]
    findings = [{"code": f"contract-{each.contract}", "severity": "broken", "sentence": str(each)} for each in broken]
    verdict = report.verdict.value
    said = "interrupted" if report.interrupted and report.broken is None else verdict
    lines = [
        f"{report.restarts:,} restarts by {report.processes:,} fresh processes, {report.seconds:.1f} s: "
        f"{report.refused:,} refused while another one lived, {report.killed:,} killed, {report.messages:,} messages",
        *(str(each) for each in broken),
        f"verdict: {said}",
    ]
    outcome = Outcome("explore", verdict, figures, _TIMINGS, findings, seed=seed, interrupted=report.interrupted)
    return outcome, "\n".join(lines)
