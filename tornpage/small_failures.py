"""How large the failures of a score are once they are made small: figures, rows and a line of text."""

from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from properties.score.small import SmallRow

__all__ = ["small_figures", "small_findings", "small_rows", "small_text"]

_LARGEST = 5


def _made(rows: Sequence[SmallRow]) -> list[SmallRow]:
    return [row for row in rows if row.token]


def small_figures(rows: Sequence[SmallRow]) -> dict[str, float | int]:
    """Return how many failures were made small, how many are 1-minimal, and medians of what is left of them."""
    made = _made(rows)
    if not made:
        return {}
    return {
        "small_failures": len(made),
        "small_one_minimal": sum(row.one_minimal is True for row in made),
        "median_small_operations": median(row.operations for row in made),
        "median_small_lost_pages": median(row.lost_pages for row in made),
        "most_small_operations": max(row.operations for row in made),
        "most_small_lost_pages": max(row.lost_pages for row in made),
    }


def small_rows(rows: Sequence[SmallRow]) -> list[dict[str, Any]]:
    """Return them as a document has them."""
    return [asdict(row) for row in rows]


def small_findings(rows: Sequence[SmallRow]) -> list[dict[str, str]]:
    """Return what went wrong on the way: each names its bug."""
    return [
        {
            "code": f"small-{row.ended or 'harness'}",
            "severity": "harness",
            "sentence": f"{row.bug}: its failure could not be made small: {row.why or 'it is not met again'}",
        }
        for row in rows
        if not row.token
    ]


def small_text(rows: Sequence[SmallRow]) -> list[str]:
    """Return lines for people, none if nothing was made small."""
    made = _made(rows)
    if not made:
        return []
    figures = small_figures(rows)
    largest = sorted(made, key=lambda row: (-row.operations, row.bug))[:_LARGEST]
    return [
        f"made small: the shortest failure of {len(made)} bugs; median {figures['median_small_operations']:g} "
        f"operations and {figures['median_small_lost_pages']:g} lost pages, "
        f"{figures['small_one_minimal']} are 1-minimal",
        "longest then: " + ", ".join(f"{row.bug} {row.operations}" for row in largest),
    ]
