"""Compare flush policies with a budget of put latency and loss.

The rows come from a sweep (`points.jsonl`, or `points/*.json` of a sweep in tasks), and from tables of experiments
that have a policy, a put p99 and the age of the oldest loss. A loss counts acknowledged messages of a power loss at the
worst simulated moment.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tornpage.reports.errors import ReportError
from tornpage.reports.results.experiment_tables import About, Axis, Chart, ExperimentTable, Row
from tornpage.reports.results.tables import BudgetRecord, Caption
from tornpage.reports.shape import Count, Positive, read_json, shaped
from tornpage.reports.text import counted

__all__ = [
    "Against",
    "PolicyCost",
    "SweepPoint",
    "against",
    "costs_of_experiments",
    "costs_of_sweep",
    "read_sweep",
    "sweep_table",
]

_LOSSES_MS = ("loss_ms", "lost_age_max_ms")
_LOSSES_MESSAGES = ("loss_messages", "lost_messages_max")
_REMEDY = "run the sweep again, or take the file away"


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One policy under one load, as `sim sweep` wrote it (times in µs)."""

    point: Count
    seed: int
    flush: str
    flush_disk_type: str
    pool: str
    allocation: str
    warm: Count
    device: str
    load: str
    messages: Count
    put_p50_us: Positive
    put_p99_us: Positive
    at_risk_messages_max: Count
    exposed_max_us: Positive | None = None
    put_refused: Count = 0

    @property
    def policy(self) -> str:
        """The policy in words."""
        pool = f", pool of {self.pool}" if self.pool else ""
        return f"{self.flush}{pool}, {self.allocation}{', warmed' if self.warm else ''}"

    @property
    def waits(self) -> bool:
        """Whether a put is acknowledged after its sync only.

        Then a power loss takes no acknowledged message.
        """
        return self.flush_disk_type == "SYNC_FLUSH"


@dataclass(frozen=True, slots=True)
class PolicyCost:
    """A policy under one load: put p99 (µs), and what a power loss takes at most."""

    policy: str
    load: str
    put_p99_us: float
    loss_ms: float
    loss_messages: float
    refused: int = 0


@dataclass(frozen=True, slots=True)
class Against:
    """A policy beside a budget.

    `used` is the larger share of both limits, None if puts are refused.
    """

    cost: PolicyCost
    used: float | None

    @property
    def meets(self) -> bool:
        """Whether the policy stays within both limits."""
        return self.used is not None and self.used <= 1


def against(costs: Iterable[PolicyCost], budget: BudgetRecord) -> tuple[Against, ...]:
    """Return the policies by the used share of the budget, the least first."""
    rows = [Against(cost, _used(cost, budget)) for cost in costs]
    return tuple(sorted(rows, key=lambda row: (row.used is None, row.used or 0.0, row.cost.put_p99_us)))


def _used(cost: PolicyCost, budget: BudgetRecord) -> float | None:
    if cost.refused:
        return None
    loss = cost.loss_ms / budget.loss_ms if budget.loss_ms else 0.0 if not cost.loss_ms else float("inf")
    return max(cost.put_p99_us / budget.put_p99_us, loss)


def read_sweep(directory: Path) -> tuple[SweepPoint, ...]:
    """Return the finished points of a sweep, in order. Raises ReportError."""
    path = directory / "points.jsonl"
    if path.exists():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise ReportError(str(path), f"cannot be read: {error}", _REMEDY) from error
        found = [(path, f"line {number}", _decoded(path, number, line)) for number, line in enumerate(lines, 1)]
    else:
        found = [(each, "point", read_json(each)) for each in sorted((directory / "points").glob("*.json"))]
    finished = [entry for entry in found if not (isinstance(entry[2], dict) and "error" in entry[2])]
    points = [shaped(SweepPoint, value, path=file, place=place) for file, place, value in finished]
    return tuple(sorted(points, key=lambda point: point.point))


def _decoded(path: Path, number: int, line: str) -> object:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ReportError(str(path), f"line {number} is no JSON: {error}", _REMEDY) from error


def costs_of_sweep(points: Iterable[SweepPoint]) -> list[PolicyCost]:
    """Return the cost of each point.

    A put that waits for its sync is never lost after its answer.
    """
    return [
        PolicyCost(
            point.policy,
            f"{point.load}, device {point.device}",
            point.put_p99_us,
            0.0 if point.waits else (point.exposed_max_us or 0.0) / 1e3,
            0 if point.waits else point.at_risk_messages_max,
            point.put_refused,
        )
        for point in points
    ]


def sweep_table(points: Sequence[SweepPoint], caption: Caption) -> ExperimentTable:
    """Return the points of a sweep as an experiment: put p99 against the loss."""
    rows: tuple[Row, ...] = tuple(
        {
            "policy": cost.policy,
            "load": cost.load,
            "put_p50_us": point.put_p50_us,
            "put_p99_us": cost.put_p99_us,
            "loss_ms": cost.loss_ms,
            "loss_messages": cost.loss_messages,
        }
        for point, cost in zip(points, costs_of_sweep(points), strict=True)
    )
    loads = len({row["load"] for row in rows})
    return ExperimentTable(
        rows,
        caption,
        About(
            name="sweep",
            title="Cost and risk of each policy",
            question="What does each policy cost, and what does a power loss take?",
            setting=f"{counted(len(points), 'simulated point')} under {counted(loads, 'load')}.",
            answer="Lower is safer, further left is faster; a policy that waits for its sync loses nothing.",
            chart=Chart(
                "points",
                Axis("put_p99_us", "put latency, p99", "µs", "log"),
                (
                    Axis("loss_ms", "loss at worst", "ms", "log"),
                    Axis("loss_messages", "loss at worst", "messages", "log"),
                ),
                series="policy" if len({row["policy"] for row in rows}) <= 8 else "load",
            ),
        ),
    )


def costs_of_experiments(tables: Sequence[ExperimentTable]) -> list[PolicyCost]:
    """Return the costs in the first table of experiments that has any."""
    for table in tables:
        costs = [cost for row in table.rows if (cost := _cost(row, table.caption.source)) is not None]
        if costs:
            return costs
    return []


def _cost(row: Row, load: str) -> PolicyCost | None:
    loss = next((row[column] for column in _LOSSES_MS if column in row), None)
    messages = next((row[column] for column in _LOSSES_MESSAGES if column in row), None)
    policy, late = row.get("policy"), row.get("put_p99_us")
    crash = str(row.get("crash", "power loss"))
    if not (isinstance(policy, str) and isinstance(late, int | float) and isinstance(loss, int | float)):
        return None
    if not isinstance(messages, int | float) or "power" not in crash or "real" in crash:
        return None
    if row.get("lost_answered_max") == 0:
        loss, messages = 0.0, 0
    refused = row.get("put_refused")
    return PolicyCost(policy, load, late, loss, messages, refused if isinstance(refused, int) else 0)
