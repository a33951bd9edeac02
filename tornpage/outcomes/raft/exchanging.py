"""Run `tornpage peer raft`: exchange directories with DLedger."""

from __future__ import annotations

from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import steps_progress
from tornpage.properties.judge.rulings import counted

if TYPE_CHECKING:
    from tornpage.peers.rocketmq.raft_exchange import Exchanged

__all__ = ["exchange_outcome"]


def exchange_outcome(*, entries: int, seed: int) -> tuple[Outcome, str]:
    """Carry out all runs; return the outcome and its text.

    The verdict is "broken" for a difference, and "vacuous" if the store of 4.9.3 serves the messages after an entry
    without a body, which the page lists as a difference.
    """
    from tornpage.peers.errors import PeerFailed, PeerUnavailable
    from tornpage.peers.rocketmq.installing import DLEDGER, REFERENCE, installed
    from tornpage.peers.rocketmq.raft_exchange import RUNS, Exchanged, exchange

    began, used = perf_counter(), process_time()
    found, interrupted = Exchanged(), False
    try:
        release = installed(REFERENCE, DLEDGER)
        with steps_progress("exchanging", total=len(RUNS), unit="runs") as show_step:
            exchange(release, entries=entries, seed=seed, found=found, progress=show_step)
    except (PeerUnavailable, PeerFailed) as error:
        refuse(str(error))
    except KeyboardInterrupt:
        interrupted = True
    return _outcome(found, seed, perf_counter() - began, process_time() - used, interrupted=interrupted)


def _outcome(
    found: Exchanged, seed: int, seconds: float, cpu_seconds: float, *, interrupted: bool
) -> tuple[Outcome, str]:
    verdict = "broken" if found.differing else "holds" if found.skipped or interrupted else "vacuous"
    findings: list[dict[str, Any]] = [
        {
            "code": "differs-from-dledger", "severity": "broken",
            "sentence": f"{each.run}: {each.what} differs", "expected": each.expected, "found": each.found,
        }
        for each in found.differences
    ]  # fmt: skip
    if verdict == "vacuous":
        findings.append(
            {
                "code": "unused-difference", "severity": "vacuous",
                "sentence": "the store of 4.9.3 serves all messages after an entry without a body",
            }
        )  # fmt: skip
    figures: dict[str, float | int] = {
        "runs": found.runs,
        "turns": found.turns,
        "kills": found.kills,
        "cuts": found.cuts,
        "entries": found.entries,
        **{f"compared_{name.replace(' ', '_')}": count for name, count in sorted(found.compared.items())},
        "comparisons": sum(found.compared.values()),
        "differing": found.differing,
        "skipped_after_empty_entry": found.skipped,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
    }
    outcome = Outcome(
        "peer raft", verdict, figures, ["seconds", "cpu_seconds"], findings, seed=seed, interrupted=interrupted
    )
    lines = [f"{name:<22} {count:>8,} compared" for name, count in sorted(found.compared.items())]
    for each in found.differences:
        lines += ["", f"{each.run}: {each.what}", f"  expected  {each.expected}", f"  found     {each.found}"]
    lines += [
        "",
        f"{counted(found.entries, 'entry', 'entries')} in {counted(found.turns, 'turn')} of "
        f"{counted(found.runs, 'run')}, {counted(found.kills, 'kill')}, "
        f"{counted(found.cuts, 'cut')}: {counted(sum(found.compared.values()), 'comparison')}, "
        f"{found.differing:,} differ",
        f"known difference: the store of 4.9.3 does not serve {counted(found.skipped, 'message')} after an entry "
        "without a body",
        f"verdict: {'interrupted' if interrupted and not found.differing else verdict}",
    ]
    return outcome, "\n".join(lines)
