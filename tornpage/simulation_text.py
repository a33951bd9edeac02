"""What the simulation commands print for people."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.sweep import PointTables

__all__ = ["run_text", "sweep_text"]


def run_text(tables: "PointTables", numbers: Mapping[str, float | int], findings: Sequence[Mapping[str, Any]]) -> str:
    """Return one point as a table."""
    row = tables.row
    lines = [
        f"flush {row['flush']}; allocation {row['allocation']}; device {row['device']}; load {row['load']}",
        f"{numbers['messages']:,} messages in {numbers['load_us'] / 1e6:,.3f} simulated s, "
        f"{numbers['simulated_messages_per_s']:,.0f} messages/s simulated",
        "",
        f"{'':<22}{'mean':>14}{'p50':>14}{'p90':>14}{'p99':>14}{'max':>14}",
        _line("put, us", [numbers.get(f"put_{part}_us") for part in ("mean", "p50", "p90", "p99", "max")]),
        _line("exposed, us", [None, *(numbers.get(f"exposed_{part}_us") for part in ("p50", "p90", "p99", "max"))]),
        *(
            _line(
                f"at risk, {what}",
                [numbers.get(f"at_risk_{what}_{part}") for part in ("mean", "p50", "p90", "p99", "max")],
            )
            for what in ("messages", "bytes")
        ),
        _line("flush, us", [numbers["flush_mean_us"], None, None, None, numbers["flush_max_us"]]),
        _line(
            "stall at a roll, us",
            [numbers["stall_mean_us"], None, None, numbers["stall_p99_us"], numbers["stall_max_us"]],
        ),
        "",
        f"{numbers['flushes']:,} flushes, {numbers['flush_batch_mean']:,.2f} messages a round, "
        f"busy {numbers['flush_busy_share']:.1%}; {numbers['write_amplification']:.2f} bytes written per byte",
        f"{numbers['rolls']:,} file rolls, {numbers['stalls']:,} of them stalled",
    ]
    if row["law"]:
        lines.append(
            f"{row['law']} formula: mean {_number(numbers['law_mean_us'])} us; this run is "
            f"{numbers['law_errors']:+.1f} standard errors ({_number(numbers['put_mean_error_us'])} us) from it"
        )
    if row["pool"]:
        lines.append(
            f"pool of {row['pool']}: {numbers['commits']:,} commits, a process kill takes "
            f"{_number(numbers['kill_messages_mean'])} messages in the mean; {numbers['put_refused']:,} puts refused, "
            f"{numbers['files_without_buffer']:,} files without a buffer"
        )
    lines += [_crash_line(failure, numbers) for failure in ("kill", "power") if numbers.get("crashes")]
    raised = {name: count for name, count in numbers.items() if name.startswith("alarm_") and count}
    lines += [f"alarm: {name[6:].replace('_', ' ')}, {count:,} times" for name, count in raised.items()]
    lines += [f"{finding['severity']}: {finding['sentence']}" for finding in findings]
    return "\n".join(lines)


def _crash_line(failure: str, numbers: Mapping[str, float | int]) -> str:
    what = {"kill": "a process kill", "power": "a power loss"}[failure]
    return (
        f"{what} at {numbers['crashes']:,} moments: {numbers[f'{failure}_crash_share_with_loss']:.0%} of them lose "
        f"something; {_number(numbers[f'{failure}_crash_messages_mean'])} messages in the mean, "
        f"{numbers[f'{failure}_crash_messages_max']:,} at most ({numbers[f'{failure}_crash_answered_max']:,} of them "
        f"answered), the oldest {_number(numbers[f'{failure}_crash_age_max_us'])} us old"
    )


def sweep_text(
    rows: Sequence[dict[str, Any]],
    figures: dict[str, float | int],
    out: str | None,
    findings: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return a grid as a table."""
    head = (
        "put_p50_us",
        "put_p99_us",
        "at_risk_messages_mean",
        "at_risk_messages_p99",
        "flushes",
        "stalls",
        "stall_max_us",
    )
    titles = ("put p50", "put p99", "at risk", "at risk p99", "flushes", "stalls", "stall max")
    names = [(str(row["flush"]), str(row["allocation"]), f"{row['device']}, {row['load']}") for row in rows]
    widths = [max([len(name[column]) for name in names], default=0) + 2 for column in range(3)]
    lines = ["".join(f"{'':<{width}}" for width in widths) + "".join(f"{title:>13}" for title in titles)]
    for name, row in zip(names, rows, strict=True):
        left = "".join(f"{part:<{width}}" for part, width in zip(name, widths, strict=True))
        lines.append(left + "".join(f"{_number(row[column]):>13}" for column in head))
    lines += ["", "put and stalls in us; at risk: messages a power loss would take, mean and 99th percentile over time"]
    if figures["points_done"] < figures["points"]:
        lines.append(f"interrupted: {figures['points_done']} of {figures['points']} points were run")
    if out is not None:
        lines.append(f"rows in {out}")
    lines += [f"{finding['severity']}: {finding['sentence']}" for finding in findings]
    return "\n".join(lines)


def _line(title: str, values: Sequence[float | int | None]) -> str:
    return f"{title:<22}" + "".join(f"{'' if value is None else _number(value):>14}" for value in values)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"
