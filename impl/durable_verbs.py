"""The verbs that make a store durable: flush, and close with all that a clean exit promises. Source:
`DefaultMessageStore.flush`, `shutdown`.
"""

import logging
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tornpage.impl.background import Background
from tornpage.impl.delay.delayed_delivery import DelayedDelivery
from tornpage.impl.groups.progress import Progress
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.read.pull_hold import PullHold
from tornpage.impl.read.read_path import ReadPath
from tornpage.impl.retention.retention import Retention
from tornpage.impl.store_views import StoreViews

__all__ = ["DurableVerbs", "FlushResult"]

_LOG = logging.getLogger("tornpage.store")


@dataclass(frozen=True, slots=True)
class FlushResult:
    """`durable` says whether everything put before the call is on disk; `flushed_offset` up to where it is."""

    durable: bool
    flushed_offset: int


class DurableVerbs(StoreViews):
    """A base class of the store."""

    _background: Background
    _close_guard: AbstractContextManager[object]
    _closing: bool
    _commit_log: CommitLog
    _delivery: DelayedDelivery
    _flush_guard: AbstractContextManager[object]
    _progress: Progress
    _pull_hold: PullHold
    _reads: ReadPath
    _retention: Retention

    def flush(self) -> FlushResult:
        """Make everything put so far durable: what is in a buffer is committed first."""
        self._lifecycle.require_open()
        commit_failure = self._commit_failure()
        flushed_offset = self._make_durable()
        return FlushResult(self.read_only_reason is None and commit_failure is None, flushed_offset)

    def _make_all_durable(self) -> bool:
        """Make durable what was put so far, and return whether it is."""
        end_offset = self.max_offset
        self._commit_failure()
        return self._make_durable() >= end_offset

    def _commit_failure(self) -> str | None:
        """Commit everything; return why that did not work, or None."""
        try:
            if self._log.commit():
                self._reput.note_readable()
        except OSError as error:
            return f"commit to {error.filename or self._log.directories.names} failed: {error.strerror or error}"
        return None

    def _commit(self, least_pages: int) -> bool:
        """Commit what is worth it; what the disk refuses stays in its buffer for the next round."""
        try:
            moved = self._log.commit(least_pages)
        except OSError as error:
            _LOG.warning("commit_failed path=%r error=%r", error.filename, error.strerror)
            return False
        if moved:
            self._reput.note_readable()
        return moved

    def _make_durable(self, least_pages: int = 0) -> int:
        """Flush what is worth it, note it, and return the flushed offset; a failed sync makes the store read-only.

        A put that was appended just before `close()` may come here behind it: close has flushed the record then.
        """
        with self._flush_guard:
            if self._commit_log.interruption is not None and self.read_only_reason is None:
                self._lifecycle.become_read_only(f"a put was broken off: {self._commit_log.interruption!r}")
            if self.read_only_reason is None and self._lifecycle.shut != "closed":
                try:
                    self._commit_log.flush(least_pages)
                except OSError as error:
                    failed = self._failed_file() or self._log.directories.names
                    self._lifecycle.become_read_only(f"sync of {failed} failed: {error.strerror or error}")
                else:
                    self._held.note_flushed(self._commit_log.flushed_store_timestamp)
            return self._log.flushed_where

    def close(self) -> None:
        """Answer who waits, dispatch, flush, note the clean exit, give up the lock. Idempotent.

        A store that is read-only, or whose last dispatch or flush fails, keeps its abort marker; `read_only_reason`
        says why. Of several closers one does the work and the others return at once: one of them may be a callback the
        first waits for. Not for signal handlers: a flush or put under way in the same thread would wait for itself.
        """
        self._lifecycle.require_opener()
        with self._close_guard:
            if self._closing:
                return
            self._closing = True
        try:
            self._close()
        except BaseException:
            self._closing = False
            raise

    def _close(self) -> None:
        self._puts.stop()
        self._pull_hold.stop()
        self._held.stop_allocation()
        self._retention.stop()
        self._delivery.stop()
        self._progress.stop()
        self._background.stop()
        commit_failure = self._commit_failure()
        self._make_durable()
        dispatch_failure = self._dispatch_failure()
        self._lifecycle.read_only_reason = self.read_only_reason or commit_failure or dispatch_failure
        if self.read_only_reason is None:
            try:
                self._progress.save_all()
                self._held.note_clean_exit()
            except OSError as error:
                self._lifecycle.read_only_reason = f"clean exit not noted: {error}"
        with self._flush_guard:
            self._lifecycle.shut = "closed"
            self._reads.shut()
            self._held.close()
            self._reads.note_leaks()

    def _dispatch_failure(self) -> str | None:
        """Dispatch everything that is readable; return why that did not work, or None."""
        try:
            self._reput.drain()
        except OSError as error:
            return f"dispatch at offset {self.reput_from_offset} failed: {error}"
        return self.dispatch_error
