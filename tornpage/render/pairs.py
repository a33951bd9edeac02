"""Show what kills of the processes of a pair have found."""

from tornpage.cli.document import Outcome
from tornpage.properties.explore.pair.run import PairReport
from tornpage.properties.findings import Finding
from tornpage.properties.judge.rulings import counted

__all__ = ["pair_outcome"]

_SHOWN = 10


def pair_outcome(report: PairReport, *, seed: int, role: str) -> tuple[Outcome, str]:
    """Return the outcome of a run with a pair, and its text."""
    figures: dict[str, float | int] = {
        "kills": report.kills.total(),
        "acknowledged": report.acknowledged,
        "lost": len(report.lost),
        "log_bytes": report.log_bytes,
        "seconds": report.seconds,
        **{f"killed_{what.replace(' ', '_')}": count for what, count in report.kills.items()},
        **{f"answers_{status.lower()}": count for status, count in report.answers.items()},
    }
    findings = []
    if report.lost:
        names = ", ".join(map(str, report.lost[:_SHOWN]))
        sentence = f"the log of the master lacks {counted(len(report.lost), 'acknowledged message')}: {names}"
        findings.append(Finding("contract-15", "broken", sentence).document())
    if report.unequal:
        findings.append(Finding("contract-15", "broken", report.unequal).document())
    if not findings and report.is_vacuous:
        sentence = "not each kind of kill happened, or too few puts were acknowledged; ask for more kills"
        findings.append(Finding("never-happened", "vacuous", sentence).document())
    verdict = findings[0]["severity"] if findings else "holds"
    timed = ["seconds", "acknowledged", "log_bytes", *(name for name in figures if name.startswith("answers_"))]
    outcome = Outcome("explore", verdict, figures, timed, findings, seed=seed, interrupted=report.interrupted)
    kills = ", ".join(f"{count} {what}" for what, count in sorted(report.kills.items()))
    answers = ", ".join(f"{count:,} {status}" for status, count in report.answers.most_common())
    lines = [
        f"{counted(report.kills.total(), 'kill')} of a {role} or its slave by SIGKILL in {report.seconds:.1f} s: "
        f"{kills}",
        f"puts: {answers}",
        f"{counted(report.acknowledged, 'acknowledged message')}, {len(report.lost)} of them lost",
        f"both logs at the end: {report.log_bytes:,} bytes" + ("" if report.unequal else ", equal"),
        *(finding["sentence"] for finding in findings),
        f"verdict: {verdict} (seed {seed})",
    ]
    return outcome, "\n".join(lines)
