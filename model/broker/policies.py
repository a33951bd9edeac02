"""Specify the policies of a store: of positions, times and used shares of disks.

1. A file is flushed in a round if it has unflushed bytes, and either it is full, the page rule is 0, or the difference
   of the page numbers of both positions reaches the rule. Commits follow the same rule.
2. A round ignores the page rule once the thorough interval has passed since the last thorough one.
3. The files to create after a turn to a file are that file and as many after it as are made ahead.
4. Only a warm-up that forces pages of a synchronous store syncs. It syncs after each step of pages, and after the rest.
5. A file expires once its newest message is as old as the reserved time. Deletions begin in the hours of the day that
   the setting lists.
6. Usage above the warning level fills the store, and usage above the forcible level makes deletions urgent if forced
   deletions are enabled. Expired files go above the used ratio, which is limited to 10 to 95 percent. The fuller disk
   decides.

Source: `MappedFile.isAbleToFlush`, `FlushRealTimeService`, `MappedFileQueue.tryCreateMappedFile`,
`MappedFile.warmMappedFile`, `CleanCommitLogService`.
"""

from collections.abc import Mapping, Sequence

__all__ = ["LEAST", "hours_of", "is_due", "page_rule", "room_of", "syncs_of_warm_up"]

_PAGE_BYTES = 4096

LEAST: Mapping[str, Mapping[str, int]] = {
    "FlushPolicy": {
        "flush_interval_commit_log": 1,
        "flush_commit_log_least_pages": 0,
        "flush_commit_log_thorough_interval": 0,
        "sync_flush_timeout": 1,
    },
    "CommitPolicy": {
        "commit_interval_commit_log": 1,
        "commit_commit_log_least_pages": 0,
        "commit_commit_log_thorough_interval": 0,
    },
    "QueueFlushPolicy": {
        "flush_interval_consume_queue": 1,
        "flush_consume_queue_least_pages": 0,
        "flush_consume_queue_thorough_interval": 0,
    },
    "AllocationPolicy": {"files_ahead": 0, "flush_least_pages_when_warm_mapped_file": 1},
}
"""The least value of each field, by policy."""


def is_due(end: int, done: int, least_pages: int, *, is_full: bool) -> bool:
    """Return whether bytes up to `end` are flushed in a round if those up to `done` are."""
    pages = end // _PAGE_BYTES - done // _PAGE_BYTES
    return end > done and (is_full or pages >= least_pages)


def page_rule(pages: int, interval_ms: int, since_ms: int) -> int:
    """Return the page rule of a round, `since_ms` after the last one that ignored it."""
    return pages if since_ms < interval_ms else 0


def syncs_of_warm_up(file_pages: int, step: int) -> list[int]:
    """Return the pages of each sync of a warm-up that forces pages of a synchronous store."""
    whole, rest = divmod(file_pages, step)
    return [step] * whole + ([rest] if rest else [])


def hours_of(text: str) -> set[int]:
    """Return the hours of the day that a setting lists."""
    return {int(hour) for hour in text.split(";")}


def room_of(
    ratios: Sequence[float], *, warning: float, forcibly: float, used_percent: int, forces: bool
) -> tuple[bool, bool, bool]:
    """Return whether puts are refused, whether files are deleted, and whether that is urgent."""
    fullest = max(ratios, default=0.0)
    used = max(10, min(95, used_percent)) / 100
    return fullest > warning, fullest > used, forces and fullest > forcibly
