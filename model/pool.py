"""Specify the transient store pool, whose records reach the page cache by a commit.

1. A file borrows a buffer when it enters the log. If none is left, the file has none, and its records are in the page
   cache at once. Files found at open have no buffer.
2. A commit goes through the files with a buffer, in order. It stops at the first file that it leaves uncommitted, or
   that is not full. It copies all that a file has, or none of it. A round with a page rule skips a file that is not
   full and has too few new pages.
3. A full file that is committed to its end returns its buffer.
4. A failed write commits nothing of its file. The bytes stay in the buffer, and the next commit tries again.
5. A poisoned log commits like any other, since the page cache outlives the process.
6. Uncommitted bytes are lost with the process.

Source: docs/statuses.md; contract 2, 9 and 17.
"""

from dataclasses import dataclass, replace

from tornpage.model.state import PAGE_BYTES, Buffer, CommitLog, Layout

__all__ = ["Committed", "commit", "commit_round", "is_worth_it", "lacks_buffer", "with_buffer"]


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of a commit.

    It `moved` something, or met a write that `failed`. `thorough` means without a page rule.
    """

    moved: bool
    failed: bool
    thorough: bool = True


def lacks_buffer(log: CommitLog, *, layout: Layout) -> bool:
    """Return whether a new file that needs a buffer of the pool would get none."""
    return layout.has_pool and len(log.buffers) >= layout.pool_buffers


def with_buffer(log: CommitLog, *, layout: Layout) -> CommitLog:
    """Give the newest file of the log a buffer if the pool has one left."""
    if not layout.has_pool or lacks_buffer(log, layout=layout):
        return log
    base, end = (log.files - 1) * layout.file_bytes, log.files * layout.file_bytes
    return log.changed(buffers=(*log.buffers, Buffer(base, end, base)))


def is_worth_it(end: int, done: int, *, least_pages: int, is_full: bool) -> bool:
    """Return whether a file is worth a sync or a copy.

    Positions are bytes from its start. `least_pages` of 0 means that any byte suffices.
    """
    return end > done and (is_full or least_pages == 0 or end // PAGE_BYTES - done // PAGE_BYTES >= least_pages)


def commit(log: CommitLog, *, least_pages: int = 0, write_fails: bool = False) -> tuple[CommitLog, Committed]:
    """Copy the buffers into the page cache; `write_fails` fails the first write."""
    kept: list[Buffer] = []
    goes_on, moved, failed = True, False, False
    for buffer in log.buffers:
        if goes_on:
            written, is_full = min(log.end_offset, buffer.end_offset), log.end_offset >= buffer.end_offset
            base = buffer.base_offset
            if is_worth_it(written - base, buffer.committed_offset - base, least_pages=least_pages, is_full=is_full):
                failed = write_fails and not moved
                if not failed:
                    buffer, moved = replace(buffer, committed_offset=written), True
            goes_on = buffer.committed_offset == buffer.end_offset
        if buffer.committed_offset < buffer.end_offset:
            kept.append(buffer)
    return log.changed(buffers=tuple(kept)), Committed(moved, failed, least_pages == 0)


def commit_round(
    log: CommitLog, *, layout: Layout, now_ms: int, write_fails: bool = False
) -> tuple[CommitLog, Committed]:
    """Run one round of the timed commit.

    It is thorough if nothing was committed for a while, and the first time.
    """
    thorough = log.committed_ms is None or now_ms - log.committed_ms >= layout.commit_thorough_ms
    log, done = commit(log, least_pages=0 if thorough else layout.least_pages, write_fails=write_fails)
    return (log.changed(committed_ms=now_ms) if done.thorough or done.moved else log), done
