"""A validation as rows of plain values, for files, documents and figures.

Times are us, errors are shares.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from tornpage.bench.calibration.driven import Driven
from tornpage.bench.validation.causes import INPUTS, Causes
from tornpage.bench.validation.rounds import Round
from tornpage.bench.validation.validation import BOUNDS, Case, Validation
from tornpage.sim.results.tables import quantile

__all__ = ["FIGURES", "SHARES", "cause_rows", "quantile_rows", "score_rows", "slice_rows"]

US = 1000.0
FIGURES = tuple(BOUNDS)
SHARES = (*(number / 100 for number in range(1, 100)), 0.995, 0.998, 0.999)
"""The shares of messages that a row of `quantile_rows` bounds."""

Row = dict[str, Any]


def score_rows(validation: Validation) -> list[Row]:
    """Return a row for each held-out case: measurement, error of the prediction, floor."""
    return [_score_row(case) for case in validation.cases]


def _score_row(case: Case) -> Row:
    measured, predicted = case.measured, case.predicted
    ordered = np.sort(measured.latency_ns)
    row: Row = {"case": case.name, "messages": len(ordered)}
    row |= {f"measured_p{share:g}_us": quantile(ordered, share / 100) / US for share in (50, 90, 99)}
    row |= {f"error_{name}": value for name, value in asdict(case.error).items()}
    row |= {f"floor_{name}": value for name, value in asdict(case.floor).items()}
    row |= {
        "measured_flushes_per_s": measured.flushes_per_s,
        "predicted_flushes_per_s": predicted.flushes_per_s,
        "measured_at_risk_messages": measured.at_risk,
        "predicted_at_risk_messages": predicted.at_risk,
    }
    return row | {"passes": case.passes, "passes_without_floor": case.passes_without_floor}


def quantile_rows(validation: Validation) -> Iterator[Row]:
    """Yield latency quantiles of each held-out case: all, predicted, both halves."""
    for case in validation.cases:
        observed = {"measured": case.measured, "predicted": case.predicted, "even": case.half(0), "odd": case.half(1)}
        sides = {name: np.sort(each.latency_ns) for name, each in observed.items()}
        for share in SHARES:
            yield {"case": case.name, "share": share} | {
                f"{name}_us": quantile(ordered, share) / US for name, ordered in sides.items()
            }


def cause_rows(causes: Iterable[Causes]) -> list[Row]:
    """Return a row for each held-out case: its errors and their parts by cause.

    Errors are those at p50, p90 and p99. A part is None where the case has too few samples.
    """
    return [
        {"case": found.case}
        | {f"error_{name}": getattr(found.error, name) for name in FIGURES}
        | {f"{cause}_{name}": found.part(cause, name) for cause in (*INPUTS, "rest") for name in FIGURES}
        for found in causes
    ]


def slice_rows(rounds: Sequence[Round]) -> Iterator[Row]:
    """Yield a row for each slice that drove a store."""
    for one in rounds:
        for role, slices in (("calibrating", one.calibrating), ("held out", one.held_out)):
            for name, driven in slices.items():
                yield {"round": one.number, "role": role, "case": name, **_slice_row(driven)}


def _slice_row(driven: Driven) -> Row:
    parts = {
        "late": driven.began_ns - driven.due_ns,
        "put": driven.written_ns - driven.began_ns,
        "latency": driven.latency_ns,
        "flush": driven.flushes["end_ns"] - driven.flushes["start_ns"],
    }
    row: Row = {"seed": driven.seed, "messages": len(driven.due_ns), "flushes": len(driven.flushes)}
    row["commits"] = len(driven.commits)
    for name, values in parts.items():
        ordered = np.sort(values)
        row |= {f"{name}_p{share:g}_us": quantile(ordered, share / 100) / US for share in (50, 90, 99)}
    return row
