"""New log files: made when a record needs one, or one ahead of that.

1. Files are made in ascending order, one at a time, each durable in size and name before the next. A prepared file
   costs the put that takes it nothing: neither a sync nor room on the disk.
2. Whoever takes a file asks for those behind it too, `files_ahead` in number; a service makes them. Without files ahead
   a put makes its own.
3. A file that cannot be made is gone again. It fails the put that waits for it; the next put tries at once, the service
   by itself after `allocation_retry_ms`. It fails no put whose own file is ready.
4. Prepared files that nobody took are removed at close and by the recovery after a crash.

Source: docs/statuses.md, "every put that got this far".
"""

from tornpage.model import pool
from tornpage.model.state import CommitLog, Conditions, Layout

__all__ = ["NO_TROUBLE", "allocate_round", "take"]

NO_TROUBLE = Conditions()


def take(log: CommitLog, *, layout: Layout, now_ms: int, conditions: Conditions) -> tuple[CommitLog, bool]:
    """Close the last file and go on in a new one; False if there is none to be had, and nothing is closed then."""
    if layout.fast_fail and pool.lacks_buffer(log, layout=layout):
        return log, False
    if layout.files_ahead:
        log = log.changed(asked=max(log.asked, 1 + layout.files_ahead))
    if not log.prepared:
        log, made = _made(log, layout=layout, now_ms=now_ms, conditions=conditions)
        if not made:
            return log, False
    end_offset = log.files * layout.file_bytes
    log = log.changed(end_offset=end_offset, files=log.files + 1, prepared=log.prepared - 1)
    log = log.changed(asked=max(log.asked - 1, 0))
    return pool.with_buffer(log, layout=layout), True


def allocate_round(
    log: CommitLog, *, layout: Layout, now_ms: int, conditions: Conditions = NO_TROUBLE
) -> tuple[CommitLog, bool]:
    """One step of the service, with nobody waiting: make one file, if one is wanted and it is time to try."""
    if log.prepared >= log.asked or now_ms < log.retry_ms:
        return log, False
    return _made(log, layout=layout, now_ms=now_ms, conditions=conditions)


def _made(log: CommitLog, *, layout: Layout, now_ms: int, conditions: Conditions) -> tuple[CommitLog, bool]:
    files = log.files - log.oldest_offset // layout.file_bytes + log.prepared
    no_room = conditions.no_room or files >= layout.files_max
    if no_room or conditions.sync_fails:
        return log.changed(retry_ms=now_ms + layout.allocation_retry_ms if log.asked else 0), False
    return log.changed(prepared=log.prepared + 1, retry_ms=0), True
