"""The rows, the text and the drawn table of a choice."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import isfinite
from typing import TYPE_CHECKING, Any

from tornpage.cli.document import Outcome
from tornpage.outcomes.choosing.sureness import Validated
from tornpage.outcomes.experiments import experiment_document
from tornpage.properties.judge.rulings import counted

if TYPE_CHECKING:
    from tornpage.sim.choosing.assessment import Assessed
    from tornpage.sim.choosing.choice import Budget

__all__ = ["choice_table", "choice_text", "policy_row"]

SHOWN = 10
CRASHES = {"power": "power loss", "kill": "process kill"}
_COLUMNS = ("put p50", "put p99", "loss", "worst loss", "flushes/s", "budget used")


def policy_row(one: "Assessed", budget: "Budget", known: Mapping[str, Validated] | None) -> dict[str, Any]:
    """Return the row of a policy in documents; `budget_used` is null if it is infinite."""
    from tornpage.sim.choosing.candidates import kind_of

    figures = {each.name: getattr(one, each.name) for each in fields(one) if each.name != "policy"}
    use, kind = budget.use(one), kind_of(one.policy)
    found = known.get(kind) if known else None
    return {
        "policy": one.policy.name,
        "kind": kind,
        "meets": use <= 1,
        "budget_used": use if isfinite(use) else None,
        **figures,
        "validated_p99_error": found.p99_worst if found else None,
        "validated_p99_floor": found.floor_p99 if found else None,
    }


def choice_text(outcome: Outcome, out: str | None) -> str:
    """Return the text: policy and lines, then the table, the frontier, how sure."""
    extra, rows = outcome.extra, outcome.extra["rows"]
    budget, load = extra["budget"], extra["load"]
    met = int(outcome.figures["policies_met"])
    named = "chosen" if met else "nearest"
    first, crash = rows[0], CRASHES[budget["crash"]]
    lines = [
        f"budget: a {crash} loses at most {_ms(budget['loss_ms'])} of acknowledged messages"
        f"{_share(budget['crash_share'])}, put p99 at most {_us(budget['put_p99_us'])}",
        f"load: {load['rate_per_s']:,g} messages/s, bodies of {load['body_bytes']:,} bytes; device {extra['device']}",
        "",
        f"{named}: {extra[named]}"
        + (f"  ({met} of {len(rows)} policies meet the budget)" if met else "  (no policy meets the budget)"),
        f"  put p99 {_us(first['put_p99_us'])}, loss {_loss(first, 'loss_ms', 'loss_messages')}, worst loss "
        f"{_loss(first, 'loss_ms_max', 'loss_messages_max')}",
    ]
    if not met:
        lines.append(f"  {_over(first, budget)}")
    lines += ["", "lines for broker.conf:"]
    lines += [f"  {name}={value}" for name, value in extra["broker_conf"].items()]
    shown = rows[: min(max(met, 3), SHOWN)]
    lines += ["", *_table("meets the budget" if met else "nearest", shown, more=max(met - len(shown), 0))]
    by = {row["policy"]: row for row in rows}
    lines += ["", *_table("frontier: a lower p99 costs loss", [by[name] for name in extra["frontier"]])]
    lines += ["", "how sure:", *(f"  {sentence}" for sentence in extra["how_sure"])]
    if "check" in extra:
        lines += ["", f"checked on the real store: {extra['check']['sentence']}"]
    said = [finding for finding in outcome.findings if finding["code"] not in ("none-meets", "check-missed")]
    lines += [f"{finding['severity']}: {finding['sentence']}" for finding in said]
    if outcome.interrupted:
        lines.append("interrupted: not all policies were simulated, or not with all seeds")
    if out is not None:
        lines.append(f"tables in {out}; `tornpage report {out}` draws them")
    return "\n".join(lines)


def _table(title: str, rows: Sequence[Mapping[str, Any]], *, more: int = 0) -> list[str]:
    width = max([len(row["policy"]) for row in rows] + [len(title)]) + 2
    lines = [f"{title:<{width}}" + "".join(f"{name:>{20 if 'loss' in name else 12}}" for name in _COLUMNS)]
    for row in rows:
        used = "over" if row["budget_used"] is None else f"{row['budget_used']:,.0%}"
        lines.append(
            f"{row['policy']:<{width}}{_us(row['put_p50_us']):>12}{_us(row['put_p99_us']):>12}"
            f"{_loss(row, 'loss_ms', 'loss_messages'):>20}{_loss(row, 'loss_ms_max', 'loss_messages_max'):>20}"
            f"{row['flushes_per_s']:>12,.1f}{used:>12}"
        )
    return [*lines, *([f"{more} more; --json lists all"] if more else [])]


def _over(row: Mapping[str, Any], budget: Mapping[str, Any]) -> str:
    """Return by how much a policy exceeds a budget."""
    parts = []
    if row["put_p99_us"] > budget["put_p99_us"]:
        parts.append(f"its p99 is {_times(row['put_p99_us'] / budget['put_p99_us'])} times the allowed one")
    if row["loss_ms"] > budget["loss_ms"]:
        parts.append(f"its loss exceeds the allowed one by {_ms(row['loss_ms'] - budget['loss_ms'])}")
    if row["put_refused"]:
        parts.append(f"it refuses {counted(row['put_refused'], 'put')}")
    return "; ".join(parts)


def _times(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _loss(row: Mapping[str, Any], ms: str, messages: str) -> str:
    return f"{_ms(row[ms])}, {row[messages]:,} msg" if row[messages] else "none"


def _share(share: float) -> str:
    return "" if share == 1 else f" in {share:.4g} of the crashes"


def _ms(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def _us(value: float) -> str:
    return _ms(value / 1e3) if value >= 1e3 else f"{value:.3g} us"


def choice_table(outcome: Outcome, *, command: str, is_whole: bool) -> dict[str, Any]:
    """Return the table that a report draws: p99 against loss, frontier, budget."""
    from tornpage.sim.experiments.values import Axis, Chart, Experiment, Overlay, Result

    extra, budget = outcome.extra, outcome.extra["budget"]
    named = extra.get("chosen") or extra["nearest"]
    marked = {named, *extra["frontier"]}
    rows = [
        {
            **{name: value for name, value in row.items() if not isinstance(value, bool)},
            "verdict": "meets the budget" if row["meets"] else "exceeds the budget",
            "label": row["policy"] if row["policy"] in marked else "",
        }
        for row in extra["rows"]
    ]
    by = {row["policy"]: row for row in extra["rows"]}
    front = [by[name] for name in extra["frontier"]]
    x = tuple(row["put_p99_us"] for row in front)
    panels = ("loss_ms", "loss_messages")
    losses = [max(row["loss_ms"] for row in rows), budget["loss_ms"]]
    overlays = (
        *(Overlay("frontier", x, tuple(row[column] for row in front), place) for place, column in enumerate(panels)),
        Overlay("budget", (budget["put_p99_us"],) * 2, (min(losses), max(losses)), 0),
        Overlay("budget", (min(row["put_p99_us"] for row in rows), budget["put_p99_us"]), (budget["loss_ms"],) * 2, 0),
    )
    crash, load = CRASHES[budget["crash"]], extra["load"]
    setting = (
        f"Open load of {load['rate_per_s']:,g} messages/s, records of {load['record_bytes']:,} bytes. A loss counts "
        f"acknowledged messages that a {crash} takes{_share(budget['crash_share']) or ', at the worst moment'}."
    )
    experiment = Experiment(
        name="choose",
        title="A flush policy for a budget",
        question=f"Which policy loses at most {_ms(budget['loss_ms'])} at a put p99 of at most "
        f"{_us(budget['put_p99_us'])}?",
        setting=setting,
        chart=Chart(
            "points",
            Axis("put_p99_us", "put latency, p99", "µs", "log"),
            (Axis("loss_ms", "loss", "ms", "log"), Axis("loss_messages", "loss", "messages", "log")),
            series="verdict",
            label="label",
        ),
        measure=lambda setup, progress: iter(()),
        caption=lambda rows: "",
    )
    answer = (
        f"{named} {'uses the least of the budget' if 'chosen' in extra else 'is the nearest; none meets the budget'}: "
        f"p99 {_us(by[named]['put_p99_us'])}, loss {_loss(by[named], 'loss_ms', 'loss_messages')}. "
        + " ".join(extra["how_sure"])
    )
    result = Result(experiment, tuple(rows), answer, overlays, extra["device"], outcome.seed or 0, is_whole)
    return experiment_document(result, 0, command)
