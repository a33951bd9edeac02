"""Describe the inspected part of a store: its range, its progress, its document."""

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
"""Called now and then with the bytes of the log read so far and their total."""


def without_progress(read_bytes: int, total_bytes: int) -> None:
    """Report no progress."""


def log_range(view: StoreView) -> tuple[int, int]:
    """Return the physical offsets at which the log files begin and end."""
    return (view.files[0].base_offset, view.files[-1].base_offset + view.file_bytes) if view.files else (0, 0)


def reading(begin: int, end: int, progress: Progress) -> Callable[[int], None]:
    """Return the `reached` callback of `iter_items` for a range of offsets."""
    return lambda offset: progress(min(max(offset - begin, 0), end - begin), end - begin)


def part_document(figures: dict[str, int], rows: list[Row], findings: Sequence[Finding]) -> Document:
    """Return the document of a part.

    It has no verdict unless that part is damaged or leaves something open.
    """
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
    """Return the severity of an inconsistent queue or index file.

    A crash may leave such a file, and so may a store at work.
    """
    if view.live:
        return "note"
    return "tear" if view.is_unclean else "damage"
