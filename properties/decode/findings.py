"""Findings about a store directory, and the verdict that they give together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Code", "Finding", "Severity", "Verdict", "verdict_of"]

Severity = Literal["damage", "tear", "note"]
"""`damage`: promised data is missing or wrong. `tear`: left by a crash; recovery will cut or rebuild it. `note`: worth
knowing, breaks nothing.
"""

Verdict = Literal["holds", "broken", "unknown"]

Code = Literal[
    "CFG_BEYOND_QUEUE",
    "CFG_FROM_BACKUP",
    "CFG_UNREADABLE",
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
    "CQ_DELAYS_UNKNOWN",
    "CQ_EXT_UNREADABLE",
    "CQ_FILE_GONE",
    "CQ_GAP",
    "CQ_MIXED_SIZES",
    "CQ_NOT_CONTIGUOUS",
    "CQ_NO_ACCESS",
    "CQ_POINTS_NOWHERE",
    "CQ_SHORT_FILE",
    "CQ_STRAY_FILE",
    "CQ_TAIL_MOVING",
    "CQ_WRONG_OFFSET",
    "CQ_WRONG_QUEUE",
    "CQ_WRONG_SIZE",
    "CQ_WRONG_TAGS_CODE",
    "FLOOR_UNREADABLE",
    "IX_BROKEN",
    "IX_KEY_MISSING",
    "IX_MIXED_SIZES",
    "IX_NO_ACCESS",
    "IX_POINTS_NOWHERE",
    "IX_SLOTS_UNKNOWN",
    "IX_STRAY_FILE",
    "LOCK_UNKNOWN",
    "LOOK_LOG_CUT",
    "LOOK_NOTHING",
    "LOOK_OTHER_HOST",
    "LOOK_SCANNED",
]
"""Stable names of findings. CFG: JSON files below config, CL: commit log, CP: checkpoint, CQ: consume queues, IX: index
files, LOOK: single look-ups.
"""

_LEAVES_OPEN: frozenset[Code] = frozenset(
    {
        "CL_FILE_GONE",
        "CL_NO_ACCESS",
        "CL_TAIL_MOVING",
        "CQ_DELAYS_UNKNOWN",
        "CQ_FILE_GONE",
        "CQ_NO_ACCESS",
        "CQ_TAIL_MOVING",
        "IX_NO_ACCESS",
        "IX_SLOTS_UNKNOWN",
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    `file` is relative to the store directory, and `offset` is physical (None: the file as a whole).
    """

    code: Code
    severity: Severity
    file: str
    offset: int | None
    message: str
    remedy: str


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Return "broken" for damage, else "unknown" if a part is not judged, else "holds".

    Tears and notes break nothing: recovery handles tears, and notes are for operators.
    """
    seen = tuple(findings)
    if any(finding.severity == "damage" for finding in seen):
        return "broken"
    return "unknown" if any(finding.code in _LEAVES_OPEN for finding in seen) else "holds"
