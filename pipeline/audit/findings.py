"""The findings of an audit: rows with a stable code, and the meaning of the codes.

The codes here are those of consume queues, index and lists. Codes that begin with CL, CP, FLOOR and LOCK, and CFG of
JSON files, are those of `properties.decode.findings`. docs/findings.md lists all codes with remedies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tornpage.properties.decode.findings import Severity, Verdict

__all__ = ["CODES", "FINDINGS_MAX", "AuditFinding", "finding_of", "verdict_of"]

FINDINGS_MAX = 1000
"""The listed findings of one code and store; a further finding notes that there are more."""

_REBUILD = (
    "close the store cleanly and move the whole consumequeue directory away: at its next open the store rebuilds all "
    "queues from the log (RocketMQ 4.9.3 does so too, but never rebuilds a single queue)"
)
_FROM_LOG = (
    "the queue points to a message that the commit log no longer has: restore the log from a replica, or rebuild the "
    "queues"
)
_AGAIN = "look again when the store is closed"
_NEW_INDEX = (
    "move index/ away: tornpage rebuilds it when it opens the store; RocketMQ 4.9.3 does not, so use --repair-to"
)

CODES: dict[str, tuple[str, str]] = {
    "CFG_DELETED_UNREADABLE": (
        "the list of deleted topics cannot be read, so that their records count again",
        "restore it from a copy, or delete the topics again",
    ),
    "CQ_DUPLICATE": ("a second unit for a record that already has one", _REBUILD),
    "CQ_EXT_UNREADABLE": ("the unit points to an extension unit that is missing or damaged", _REBUILD),
    "CQ_FILE_GONE": ("the file vanished during the audit", _AGAIN),
    "CQ_GAP": ("a file of the queue is missing before this one", _REBUILD),
    "CQ_LIGHT_RESTARTED": (
        "the log counts this light queue from 0 again (RocketMQ 4.9.3 forgets its offsets at a restart)",
        "none needed for the log; messages dropped from the queue can be read from it by offset",
    ),
    "CQ_MISSING": ("a record of the log has no unit in its queue", _REBUILD),
    "CQ_MIXED_SIZES": ("the file is larger than the other queue files", "find out which size was configured"),
    "CQ_MORE_FINDINGS": ("there are more findings of this code than are listed", "see the listed findings"),
    "CQ_NOT_CONTIGUOUS": ("empty or pre-filled units between used units", _REBUILD),
    "CQ_NO_ACCESS": ("the file or directory cannot be read", "look again with permission to read it"),
    "CQ_NO_QUEUES": (
        "there is no consumequeue directory: only the log was audited",
        "none for a store without queues; otherwise open the store with tornpage, which rebuilds them",
    ),
    "CQ_OUTLIVED": (
        "the log no longer has any message of this file, which is not the last of its queue",
        "none needed: retention removes it in its next round",
    ),
    "CQ_POINTS_NOWHERE": ("no valid record begins at the offset in the unit", _FROM_LOG),
    "CQ_READ_ERROR": ("the device failed while reading", _REBUILD),
    "CQ_SHORT_FILE": ("the file is shorter than the other queue files", _REBUILD),
    "CQ_STRAY_FILE": ("a file or directory that is not part of a queue", "move it out of consumequeue"),
    "CQ_TAIL_MOVING": ("the store is running, so log and queues were read at different moments", _AGAIN),
    "CQ_TOPIC_REUSED": (
        "the topic was deleted and used again, and the log still holds records of the deleted topic",
        "none needed: the queues lead to the later messages",
    ),
    "CQ_UNWANTED": (
        "the unit points to a record that must not have one: half of a transaction, or of a deleted topic",
        _REBUILD,
    ),
    "CQ_WRONG_OFFSET": ("the unit is at another queue offset than its record states", _REBUILD),
    "CQ_WRONG_QUEUE": ("the unit points to a record of another queue", _REBUILD),
    "CQ_WRONG_SIZE": ("the unit states another size than its record has", _REBUILD),
    "CQ_WRONG_TAGS_CODE": ("the unit's tags code or due time is not that of its record", _REBUILD),
    "IX_BROKEN": ("header, slots and entries of the index file are inconsistent", _NEW_INDEX),
    "IX_DUPLICATE": ("the key already has an entry", "none needed: a look-up shows its record once"),
    "IX_KEY_MISSING": ("a key of the log has no entry in the index", _NEW_INDEX),
    "IX_MIXED_SIZES": ("the index file has another size than most", _NEW_INDEX),
    "IX_MORE_FINDINGS": ("there are more findings of this code than are listed", "see the listed findings"),
    "IX_NO_ACCESS": ("the file or directory cannot be read", "look again with permission to read it"),
    "IX_NO_INDEX": (
        "there is no index although records have keys",
        "none for a store without an index; otherwise tornpage builds it when it opens the store",
    ),
    "IX_OUTLIVED": (
        "the log no longer has any message of this file, which is not the last one",
        "none needed: retention removes it in its next round",
    ),
    "IX_POINTS_NOWHERE": ("no valid record begins at the offset in the entry", _NEW_INDEX),
    "IX_READ_ERROR": ("the device failed while reading", _NEW_INDEX),
    "IX_SLOTS_UNKNOWN": (
        "the number of slots of the file is not stored, and its bytes do not show it",
        "give the broker's settings (--broker-config)",
    ),
    "IX_STRAY_FILE": ("a file in index that is not an index file", "move it out of index"),
    "IX_TAIL_MOVING": ("the store is running, so log and index were read at different moments", _AGAIN),
    "IX_WRONG_KEY": ("the record that the entry points to has no such key", _NEW_INDEX),
    "IX_WRONG_TIME": ("the seconds of the entry are not those of its record", _NEW_INDEX),
}
"""Meaning and remedy of each code."""

_LEAVES_OPEN = frozenset(
    {
        "CL_FILE_GONE",
        "CL_NO_ACCESS",
        "CL_RECORDS_AT_RISK",
        "CL_TAIL_MOVING",
        "CQ_FILE_GONE",
        "CQ_NO_ACCESS",
        "CQ_TAIL_MOVING",
        "IX_NO_ACCESS",
        "IX_SLOTS_UNKNOWN",
        "IX_TAIL_MOVING",
    }
)


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One finding in a store.

    `file` is relative to the store directory. `offset` is physical (bytes from the start of the log): the place in the
    log, or the record of the queue unit. `position` counts bytes from the start of `file`. None means no single place.
    `items` is the number of consecutive records or units; place and numbers are those of the first.
    """

    store: str
    code: str
    severity: Severity
    file: str
    offset: int | None
    position: int | None
    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    items: int
    message: str
    remedy: str

    @property
    def order(self) -> tuple[str, str, int, int, str]:
        """Sort key: store, file and place."""
        at = self.position if self.position is not None else -1
        return (self.store, self.file, at, self.offset if self.offset is not None else -1, self.code)


def finding_of(
    store: str,
    code: str,
    severity: Severity,
    file: str,
    *,
    offset: int | None = None,
    position: int | None = None,
    key: tuple[str | None, int | None] = (None, None),
    queue_offset: int | None = None,
    items: int = 1,
    detail: str = "",
    remedy: str = "",
) -> AuditFinding:
    """Return a finding with the text of its code."""
    what, usual = CODES[code]
    message = f"{what}: {detail}" if detail else what
    return AuditFinding(
        store, code, severity, file, offset, position, *key, queue_offset, items, message, remedy or usual
    )


def verdict_of(findings: Iterable[AuditFinding]) -> Verdict:
    """Return "broken" for any damage, else "unknown" if a part was not judged, else "holds"."""
    seen = tuple(findings)
    if any(finding.severity == "damage" for finding in seen):
        return "broken"
    return "unknown" if any(finding.code in _LEAVES_OPEN for finding in seen) else "holds"
