"""Making the log durable: commit the pool, flush the files, record the flushed offset.

Source: `DefaultMessageStore.flush`, `CommitLog.FlushRealTimeService`, `CommitLog.CommitRealTimeService`.
"""

import logging

from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.guards import MakeGuard
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.recovery.opening import OpenDirectory
from tornpage.impl.service.lifecycle import Lifecycle

__all__ = ["Durability"]

_LOG = logging.getLogger("tornpage.store")


class Durability:
    """Commits and flushes one store. A failed sync makes the store read-only.

    `guard` is held during each flush; `MessageStore.close` closes the files under it.
    """

    def __init__(
        self,
        held: OpenDirectory,
        commit_log: CommitLog,
        lifecycle: Lifecycle,
        reput: ReputMessages,
        *,
        guard: MakeGuard,
    ) -> None:
        self.guard = guard()
        self._held = held
        self._log = held.log
        self._commit_log = commit_log
        self._lifecycle = lifecycle
        self._reput = reput

    def flush(self, least_pages: int = 0) -> int:
        """Flush by a page rule, record the flushed offset and return it.

        A put that was appended just before `close()` may call this after the close, which has flushed the record
        already.
        """
        lifecycle, commit_log = self._lifecycle, self._commit_log
        with self.guard:
            if commit_log.interruption is not None and lifecycle.read_only_reason is None:
                lifecycle.become_read_only(f"a put was interrupted: {commit_log.interruption!r}")
            if lifecycle.read_only_reason is None and lifecycle.shut != "closed":
                try:
                    commit_log.flush(least_pages)
                except OSError as error:
                    failed = self._log.failed_path or self._log.directories.names
                    lifecycle.become_read_only(f"sync of {failed} failed: {error.strerror or error}")
                else:
                    self._held.note_flushed(commit_log.flushed_store_timestamp)
            return self._log.flushed_where

    def make_all_durable(self) -> bool:
        """Commit and flush what was put so far; return whether all of it is durable."""
        end_offset = self._log.max_offset
        self.commit_all()
        return self.flush() >= end_offset

    def commit(self, least_pages: int) -> bool:
        """Commit by a page rule; return whether bytes moved.

        After a failed write the bytes stay in their buffer for the next round.
        """
        try:
            moved = self._log.commit(least_pages)
        except OSError as error:
            _LOG.warning("commit_failed path=%r error=%r", error.filename, error.strerror)
            return False
        if moved:
            self._reput.note_readable()
        return moved

    def commit_all(self) -> str | None:
        """Commit everything; return why that failed, or None."""
        try:
            if self._log.commit():
                self._reput.note_readable()
        except OSError as error:
            return f"commit to {error.filename or self._log.directories.names} failed: {error.strerror or error}"
        return None
