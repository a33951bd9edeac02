"""Show what kills of the leaders of a Raft group have found."""

from typing import Any

from tornpage.cli.document import Outcome
from tornpage.properties.explore.group.run import GroupReport, quantile
from tornpage.properties.findings import Finding
from tornpage.properties.judge.rulings import counted

__all__ = ["group_command", "group_outcome"]

_SHOWN = 10
_QUANTILES = (("min", 0.0), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))


def group_command(kills: int, *, seed: int, members: int, hangs: bool, messages: bool) -> str:
    """Return the command that runs a campaign again."""
    options = f"{' --hang' if hangs else ''}{' --messages' if messages else ''}"
    return f"tornpage explore group {kills} --members {members}{options} --seed {seed}"


def group_outcome(report: GroupReport, *, seed: int, command: str) -> tuple[Outcome, str]:
    """Return the outcome of a run with a group, and its text."""
    failovers = {name: quantile(report.failovers_ms, share) for name, share in _QUANTILES}
    restarts = {name: quantile(report.restarts_ms, share) for name, share in _QUANTILES}
    timings: dict[str, float | int] = {
        **{f"failover_ms_{name}": value for name, value in failovers.items()},
        **({} if report.hangs else {f"restart_ms_{name}": value for name, value in restarts.items()}),
        "appends_per_s": report.appends_per_s,
        "acknowledged": report.acknowledged,
        "entries": report.entries,
        "terms": report.terms,
        "log_bytes": report.log_bytes,
        "seconds": report.seconds,
        **{f"answers_{status.lower()}": count for status, count in report.answers.items()},
    }
    figures = {"kills": len(report.failovers_ms), "members": report.members, "lost": len(report.lost), **timings}
    findings = []
    kept = "messages" if report.messages else "entries"
    if report.lost:
        names = ", ".join(map(str, report.lost[:_SHOWN]))
        sentence = f"{len(report.lost)} acknowledged {kept} are not at their places in all members: {names}"
        findings.append(Finding("contract-15", "broken", sentence).document())
    if report.unequal:
        findings.append(Finding("contract-15", "broken", report.unequal).document())
    if not findings and report.is_vacuous and not report.interrupted:
        sentence = "too few entries were acknowledged; give more kills"
        findings.append(Finding("never-happened", "vacuous", sentence).document())
    verdict = findings[0]["severity"] if findings else "holds"
    rows = [{"failover": at, "milliseconds": value} for at, value in enumerate(report.failovers_ms)]
    caption = {"source": "group", "seed": seed, "command": command}
    outcome = Outcome(
        "explore",
        verdict,
        figures,
        list(timings),
        findings,
        seed=seed,
        interrupted=report.interrupted,
        tables={"group": {"rows": rows, "caption": caption}},
    )
    return outcome, "\n".join(_lines(report, failovers, restarts, findings, verdict, seed))


def _lines(
    report: GroupReport,
    failovers: dict[str, float],
    restarts: dict[str, float],
    findings: list[dict[str, Any]],
    verdict: str,
    seed: int,
) -> list[str]:
    what = "stops of the leader by SIGSTOP" if report.hangs else "kills of the leader by SIGKILL"
    verb, kept = ("puts", "messages") if report.messages else ("appends", "entries")
    answers = ", ".join(f"{count:,} {status}" for status, count in report.answers.most_common())
    shown = [("fail-over", failovers)] if report.hangs else [("fail-over", failovers), ("restart", restarts)]
    return [
        f"{len(report.failovers_ms)} {what}, group of {report.members}, {report.seconds:.1f} s, "
        f"{counted(report.terms, 'term')}",
        "",
        f"  {'ms':<10}" + "".join(f"{name:>9}" for name, _ in _QUANTILES),
        *(f"  {name:<10}" + "".join(f"{value:>9,.0f}" for value in row.values()) for name, row in shown),
        "",
        f"{report.appends_per_s:,.0f} {verb}/s with 64 outstanding, before the first fail-over",
        f"{verb}: {answers}",
        f"{report.acknowledged:,} acknowledged {kept}, {len(report.lost)} of them lost",
        f"logs at the end: {counted(report.entries, 'entry', 'entries')}, {report.log_bytes:,} bytes"
        + ("" if report.unequal or not report.entries else ", equal in all members"),
        *(finding["sentence"] for finding in findings),
        f"verdict: {'interrupted' if report.interrupted and not findings else verdict} (seed {seed})",
    ]
