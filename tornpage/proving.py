"""The main job: its steps in order, and one outcome of all of them."""

from collections.abc import Sequence

from tornpage.document import Outcome
from tornpage.steps.crashes import canary, check, explore, kills
from tornpage.steps.distributed import audit, campaign
from tornpage.steps.simulation import simulate
from tornpage.steps.step import Step
from tornpage.steps.stores import against_rocketmq, inspect, write_and_read

__all__ = ["STEPS", "combined"]

STEPS = {
    kills: 2.0, check: 45.0, explore: 13.0, canary: 4.0, write_and_read: 0.2, inspect: 0.2, against_rocketmq: 1.0,
    simulate: 3.0, audit: 12.0, campaign: 18.0,
}  # fmt: skip
"""In order, each with the seconds it took on a virtual machine of 2 cores: how long it will take here is told from that
and from the steps before. Each is called with the seed. Real kills come first: they fork, and nothing has made a
thread yet."""

_WORST_FIRST = ("harness", "broken", "vacuous", "unknown")


def combined(steps: Sequence[Step], *, seed: int, seconds: float, interrupted: bool) -> Outcome:
    """Return the outcome of all steps: the worst verdict, figures under the step's name, every table once."""
    verdicts = [step.outcome.verdict for step in steps]
    worst = next((verdict for verdict in _WORST_FIRST if verdict in verdicts), "holds")
    figures: dict[str, float | int] = {"seconds": seconds}
    timings = ["seconds"]
    tables = {"steps": {"rows": [step.row() for step in steps]}}
    for step in steps:
        prefix = step.name.replace(" ", "_")
        figures |= {f"{prefix}_{name}": figure for name, figure in step.outcome.figures.items()}
        timings += [f"{prefix}_{name}" for name in step.outcome.timings]
        for name, table in step.outcome.tables.items():
            tables.setdefault(name, dict(table))
    findings = [{"step": step.name, **finding} for step in steps for finding in step.outcome.findings]
    return Outcome("prove", worst, figures, timings, findings, seed=seed, interrupted=interrupted, tables=tables)
