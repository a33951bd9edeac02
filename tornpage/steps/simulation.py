"""The simulation step: laws first, then what each policy costs and risks."""

from time import perf_counter
from typing import TYPE_CHECKING, Any

from tornpage.document import Outcome
from tornpage.steps.step import Step

if TYPE_CHECKING:
    from sim.sweep import PointTables

__all__ = ["simulate"]

MESSAGES = 20_000
LAW_MESSAGES = 50_000
LAW_ERRORS_MAX = 4.0
"""Standard errors by which a simulated mean may miss its law; by chance once in some 16,000 runs."""
RATES = (1_000.0, 5_000.0, 20_000.0)
SHOWN_RATE = 5_000.0
FILE_BYTES = 1 << 20
DEVICE = "vm-ext4"


def simulate(seed: int) -> Step:
    """Check the simulation against formulas, then sweep flush and preallocation policies."""
    started = perf_counter()
    laws = _laws(seed)
    swept = _sweep(seed)
    misses = [row for row in laws if abs(row["law_errors"]) > LAW_ERRORS_MAX]
    figures: dict[str, float | int] = {
        "points": len(swept),
        "messages": sum(int(point.row["messages"]) for point in swept),
        "law_errors_max": max(abs(row["law_errors"]) for row in laws),
        "seconds": perf_counter() - started,
    }
    findings = [
        {
            "code": "law-missed",
            "severity": "broken",
            "sentence": f"{row['law']}: mean {row['put_mean_us']:.3f} us, formula {row['law_mean_us']:.3f} us, "
            f"{row['law_errors']:.1f} standard errors apart",
        }
        for row in misses
    ]
    told = "; ".join(
        f"{row['law']} mean {row['put_mean_us']:.1f} us, formula {row['law_mean_us']:.1f} us" for row in laws
    )
    sentence = f"{told}; {figures['points']} policies swept over {figures['messages']:,} messages"
    outcome = Outcome(
        "sim", "broken" if misses else "holds", figures, ["seconds"], findings, seed=seed, tables=_tables(swept, seed)
    )
    return Step("simulate", outcome, sentence)


def _laws(seed: int) -> list[dict[str, Any]]:
    """Return the rows of two scenarios whose mean a formula gives: group commit, and a queue before the put lock."""
    from impl.policy import AllocationPolicy, FlushDiskType, FlushPolicy
    from sim.device import PRESETS
    from sim.sweep import grid, run_point
    from sim.workload import OpenPoisson, Sizes

    rows = []
    for kind, device in ((FlushDiskType.SYNC_FLUSH, "exponential-1ms"), (FlushDiskType.ASYNC_FLUSH, "put-100us")):
        points = grid(
            flushes=[FlushPolicy(kind)],
            allocations=[AllocationPolicy(1)],
            devices=[PRESETS[device]],
            workloads=[OpenPoisson(500.0, Sizes(1024, 1024))],
            file_bytes=[1 << 30],
            messages=LAW_MESSAGES,
            seeds=[seed],
        )
        rows += [dict(run_point(point)) for point in points]
    return rows


def _sweep(seed: int) -> list["PointTables"]:
    from impl.policy import AllocationPolicy, FlushDiskType, FlushPolicy
    from sim.device import PRESETS
    from sim.sweep import grid, run_points
    from sim.workload import OpenPoisson, Sizes

    points = grid(
        flushes=[
            FlushPolicy(FlushDiskType.SYNC_FLUSH),
            FlushPolicy(FlushDiskType.ASYNC_FLUSH, flush_interval_commit_log=50),
            FlushPolicy(FlushDiskType.ASYNC_FLUSH),
        ],
        allocations=[AllocationPolicy(1), AllocationPolicy(0)],
        devices=[PRESETS[DEVICE]],
        workloads=[OpenPoisson(rate, Sizes(1024, 1024)) for rate in RATES],
        file_bytes=[FILE_BYTES],
        messages=MESSAGES,
        seeds=[seed],
    )
    return list(run_points(points))


def _tables(swept: list["PointTables"], seed: int) -> dict[str, dict[str, Any]]:
    """Return the tables of the report: latency, messages at risk, stalls at file rolls."""
    rates = " ".join(f"--rate {rate:g}" for rate in RATES)
    policies = "--flush sync --flush async --interval-ms 50 --interval-ms 500"
    load = f"{rates} --messages {MESSAGES} --file-size {FILE_BYTES} --device {DEVICE}"
    again = f"tornpage sim sweep {policies} {load} --seed {seed}"
    caption = {"source": f"simulation, device {DEVICE}", "seed": seed, "command": again}
    ahead = [point for point in swept if point.row["allocation"] == "one-ahead"]
    latency = [
        {"policy": point.row["flush"], "latency_us": step["put_us"], "fraction": step["share"]}
        for point in ahead
        if point.row["rate_per_s"] == SHOWN_RATE
        for step in point.put_cdf
    ]
    risk = [
        {
            "policy": point.row["flush"],
            "rate_per_s": point.row["rate_per_s"],
            **{name: point.row[name] for name in ("put_p99_us", "at_risk_messages_mean", "at_risk_messages_p99")},
        }
        for point in ahead
    ]
    stalls = [
        {"allocation": point.row["allocation"], "roll": roll["file_index"], "stall_us": roll["stall_us"]}
        for point in swept
        if point.row["rate_per_s"] == SHOWN_RATE and point.row["flush_disk_type"] == "SYNC_FLUSH"
        for roll in point.rolls
    ]
    shown = {"put_latency": latency, "at_risk": risk, "stalls": stalls}
    return {name: {"rows": rows, "caption": caption} for name, rows in shown.items()}
