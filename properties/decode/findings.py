"""What a reader of a store directory can find wrong, and what the findings say together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Code", "Finding", "Severity", "Verdict", "verdict_of"]

Severity = Literal["damage", "tear", "note"]
"""`damage`: something promised is gone or wrong. `tear`: a crash left it, recovery will cut or rebuild it. `note`:
worth knowing, breaks nothing."""

Verdict = Literal["holds", "broken", "unknown"]

Code = Literal[
    "CL_BAD_RECORD",
    "CL_BLANK_LENGTH",
    "CL_BYTES_BEYOND_END",
    "CL_ENDS_BELOW_FLOOR",
    "CL_FILE_GONE",
    "CL_GAP",
    "CL_MISALIGNED",
    "CL_MISSING",
    "CL_MIXED_SIZES",
    "CL_MORE_FINDINGS",
    "CL_NO_ACCESS",
    "CL_READ_ERROR",
    "CL_SHORT_FILE",
    "CL_STRAY_FILE",
    "CL_TAIL_MOVING",
    "CL_ZERO_LENGTH",
    "CP_AHEAD_OF_LOG",
    "CP_BAD_SIZE",
    "CP_MISSING",
    "CP_NEGATIVE_TIME",
    "FLOOR_UNREADABLE",
    "LOCK_UNKNOWN",
]
"""Stable names of findings. CL: commit log, CP: checkpoint."""

_LEAVES_OPEN: frozenset[Code] = frozenset({"CL_TAIL_MOVING", "CL_NO_ACCESS", "CL_FILE_GONE"})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found: `file` is relative to the store directory, `offset` is physical (None: the file as a whole)."""

    code: Code
    severity: Severity
    file: str
    offset: int | None
    message: str
    remedy: str


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Return "broken" if anything is damaged, else "unknown" if something could not be judged, else "holds".

    Tears and notes break nothing: recovery deals with the first, the second are for people.
    """
    seen = tuple(findings)
    if any(finding.severity == "damage" for finding in seen):
        return "broken"
    return "unknown" if any(finding.code in _LEAVES_OPEN for finding in seen) else "holds"
