"""Judge sizes and names of queue and index files by the rules of the audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tornpage.properties.decode.consumequeue import UNIT_BYTES, QueueFile
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.queue_bounds import empty_runs
from tornpage.properties.decode.store import StoreView
from tornpage.properties.inspect.place import derived_severity

__all__ = ["index_sizes", "not_contiguous", "queue_sizes", "usual_size"]

READ_BYTES_MAX = 64 << 20
"""Bytes of one queue up to which all its units are looked at."""

_REBUILD = (
    "close the store cleanly and move the whole consumequeue directory away: all queues are built again from the log "
    "(RocketMQ 4.9.3 never builds a single one)"
)
_NEW_INDEX = "move the directory index away: tornpage rebuilds it from the log when it opens the store"


def usual_size(sizes: Iterable[int]) -> int:
    """Return the size that most files with bytes have, the greatest of several; 0 without any."""
    counts = Counter(size for size in sizes if size)
    return max(counts, key=lambda each: (counts[each], each), default=0)


def queue_sizes(view: StoreView, files: Sequence[QueueFile], size: int) -> list[Finding]:
    """Return the findings about sizes and names of the files of one queue.

    `size` is the usual size of all queue files, in bytes.
    """
    severity = derived_severity(view)
    findings: list[Finding] = []
    before: QueueFile | None = None
    for file in files:
        if file.size_bytes < size or file.size_bytes % UNIT_BYTES:
            message = f"{file.size_bytes} bytes instead of {size}"
            findings.append(Finding("CQ_SHORT_FILE", severity, file.label, None, message, _REBUILD))
        elif file.size_bytes > size:
            message = f"{file.size_bytes} bytes, others have {size}"
            remedy = "find out which size was configured"
            findings.append(Finding("CQ_MIXED_SIZES", "damage", file.label, None, message, remedy))
        if before is not None and before.base + size != file.base:
            message = f"begins at byte {file.base} of the queue, the one before ends at {before.base + size}"
            findings.append(Finding("CQ_GAP", severity, file.label, None, message, _REBUILD))
        before = file
    return findings


def not_contiguous(view: StoreView, files: Sequence[QueueFile]) -> list[Finding]:
    """Return the findings about empty units before the last unit of a queue. Raises OSError."""
    if sum(file.size_bytes for file in files) > READ_BYTES_MAX:
        return []
    severity = derived_severity(view)
    return [
        Finding(
            "CQ_NOT_CONTIGUOUS",
            severity,
            file.label,
            None,
            f"empty units between units in use: queue offsets {number} to {number + count - 1}",
            _REBUILD,
        )
        for file, number, count in empty_runs(files)
    ]


def index_sizes(view: StoreView, sizes: Sequence[tuple[str, int]]) -> list[Finding]:
    """Return the findings about index files (label, bytes) of another size than most."""
    counts = Counter(size for _, size in sizes)
    usual = max(counts, key=lambda each: (counts[each], each), default=0)
    severity = derived_severity(view)
    return [
        Finding("IX_MIXED_SIZES", severity, label, None, f"{size} bytes instead of {usual}", _NEW_INDEX)
        for label, size in sizes
        if size != usual
    ]
