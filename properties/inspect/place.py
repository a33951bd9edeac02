"""Describe a part of a store that is looked at: its range, its progress, its document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from tornpage.properties.decode.findings import Finding, Severity, verdict_of
from tornpage.properties.decode.store import StoreView
from tornpage.properties.inspect.rows import Row

__all__ = [
    "Document",
    "Progress",
    "derived_severity",
    "log_range",
    "part_document",
    "reading",
    "without_progress",
]

Document = dict[str, Any]
Progress = Callable[[int, int], None]
"""Whom to tell, now and then, how many bytes of the log are read, and of how many."""


def without_progress(read_bytes: int, total_bytes: int) -> None:
    """Tell nobody how much of the log is read."""


def log_range(view: StoreView) -> tuple[int, int]:
    """Return the physical offsets at which the log files begin and end."""
    return (view.files[0].base_offset, view.files[-1].base_offset + view.file_bytes) if view.files else (0, 0)


def reading(begin: int, end: int, progress: Progress) -> Callable[[int], None]:
    """Return whom `iter_items` tells what it has reached, while the offsets from `begin` to `end` are read."""
    return lambda offset: progress(min(max(offset - begin, 0), end - begin), end - begin)


def part_document(figures: dict[str, int], rows: list[Row], findings: Sequence[Finding]) -> Document:
    """Return the document of a look at a part: no verdict unless that part is damaged or leaves something open."""
    verdict = verdict_of(findings)
    severities = [finding.severity for finding in findings]
    counts = {f"{severity}s": severities.count(severity) for severity in ("damage", "tear", "note")}
    return {
        "verdict": None if verdict == "holds" else verdict,
        "figures": {**figures, "rows": len(rows), "findings": len(findings), **counts},
        "rows": rows,
        "findings": [asdict(finding) for finding in findings],
    }


def derived_severity(view: StoreView) -> Severity:
    """Return how bad a derived file that does not fit is: a crash may leave it so, work in progress too."""
    if view.live:
        return "note"
    return "tear" if view.is_unclean else "damage"
