"""The gates that every put passes before anyone looks at its message.

1. A log that is read-only, a slave, and a log with a running flag that forbids writing give no service.
2. Running flags 2, 4, 8 and 16 forbid writing; flag 1, "not readable", does not.
3. A put lock held for longer than the layout allows makes the page cache count as busy; held exactly as long, not.
4. No service comes before busy. A closed store is the caller's matter: it has no log to ask.

Source: docs/statuses.md, "every put" (`DefaultMessageStore.checkStoreStatus`).
"""

from tornpage.model.message import PutStatus
from tornpage.model.state import CommitLog, Layout

__all__ = ["refusal"]

FLAGS_THAT_FORBID_WRITING = 2 | 4 | 8 | 16


def refusal(log: CommitLog, *, layout: Layout, lock_held_ms: int = 0) -> PutStatus | None:
    """Return why no put is let in, whatever it brings, or None."""
    if log.poisoned or layout.role == "SLAVE" or log.flags & FLAGS_THAT_FORBID_WRITING:
        return PutStatus.SERVICE_NOT_AVAILABLE
    if lock_held_ms > layout.page_cache_busy_ms:
        return PutStatus.OS_PAGECACHE_BUSY
    return None
