"""Deleting log files from the head of the log, each durably before the next.

A file may be deleted if it is not the last one, is durable and wholly dispatched, and has expired or the disk is too
full. Its dispatched units must be durable first: the queues continue their numbers, and without the log only they know
the last number. A crash may lose any of several unlinks, so each is synced; a gap would be damage at the next open.

The age of a file is that of the first record of the next file, which is younger than every record of the file. RocketMQ
uses the modification time in the file system, which a copy renews and a mapping may not update (RMQ-B53).

A file that a reader holds leaves the log at once, so that no other read begins there. It stays on disk until the reader
releases it or its time is over. Source: `MappedFileQueue.deleteExpiredFileByTime`, `retryDeleteFirstFile`.
"""

import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass

from tornpage.impl.config.retention_policy import RetentionPolicy
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.scan import RecordChecker
from tornpage.impl.message.codec import BORN_HOST_V6

__all__ = ["CleanCommitLog"]

_LOG = logging.getLogger("tornpage.store")
_I64 = struct.Struct(">q")


@dataclass(slots=True)
class _Hanging:
    """A file that has left the log and is still on disk.

    Times are those of the service, in milliseconds.
    """

    mapped: MappedFile
    since_ms: int
    tried_ms: int


class CleanCommitLog:
    """Deletes from the head of one log; one thread at a time calls it.

    `dispatched_end` returns the offset up to which the log is in queues and index. `make_derived_durable` flushes
    these. `settle_deletions` makes the list of deleted topics durable. `revoke` ends the buffers that readers hold
    of a file.
    """

    def __init__(
        self,
        log: MappedFileQueue,
        *,
        policy: RetentionPolicy,
        check: RecordChecker,
        dispatched_end: Callable[[], int],
        make_derived_durable: Callable[[], None],
        settle_deletions: Callable[[], None],
        revoke: Callable[[MappedFile], int],
    ) -> None:
        self._log = log
        self._policy = policy
        self._check = check
        self._dispatched_end = dispatched_end
        self._make_derived_durable = make_derived_durable
        self._settle_deletions = settle_deletions
        self._revoke = revoke
        self._durable_end = 0
        self._hanging: _Hanging | None = None

    @property
    def oldest_offset(self) -> int:
        """Physical offset of the first byte on disk, including a file that waits for a reader."""
        hanging = self._hanging
        return self._log.min_offset if hanging is None else hanging.mapped.base_offset

    def wants_deletion(self, *, clock_ms: int, urgent: bool) -> bool:
        """Return whether a file may be deleted; `urgent` ignores the age of files."""
        return self._hanging is not None or self._candidate(clock_ms, urgent=urgent)

    def delete_first(self, now_ms: int, *, clock_ms: int, urgent: bool) -> bool:
        """Remove the first file if it may be deleted; return whether it was removed.

        `now_ms` is the time of the service and `clock_ms` that of the records, both in milliseconds. Raises OSError.
        """
        if self._hanging is not None:
            return self._retry(self._hanging, now_ms)
        if not self._candidate(clock_ms, urgent=urgent):
            return False
        first = self._log.mapped[0]
        if self._durable_end < first.end_offset:
            dispatched_end = self._dispatched_end()
            self._make_derived_durable()
            self._durable_end = dispatched_end
        self._settle_deletions()  # without this file the log could not tell any more
        self._hanging = _Hanging(self._log.drop_first(), now_ms, now_ms)
        return self._retry(self._hanging, now_ms)

    def retry_hanging(self, now_ms: int) -> None:
        """Try again to remove a file that waits for a reader, if that is due. Raises OSError."""
        hanging = self._hanging
        if hanging is not None and now_ms >= hanging.tried_ms + self._policy.redelete_hanged_file_interval:
            self._retry(hanging, now_ms)

    def _candidate(self, clock_ms: int, *, urgent: bool) -> bool:
        """Return whether the first file of the log may be deleted."""
        files = self._log.mapped
        if len(files) < 2 or files[0].end_offset > min(self._log.flushed_where, self._dispatched_end()):
            return False
        return urgent or self._is_expired(files[0], files[1], clock_ms)

    # planted: RMQ-B53
    def _is_expired(self, first: MappedFile, following: MappedFile, clock_ms: int) -> bool:
        newest_ms = self._first_timestamp(following)
        return newest_ms is not None and self._policy.is_expired(newest_ms=newest_ms, now_ms=clock_ms)

    def _first_timestamp(self, mapped: MappedFile) -> int | None:
        """Return the store time of the first record of a file in ms.

        Return None if it is not valid, or not committed: a commit that failed half-way may have written it.
        """
        if not mapped.hold():
            return None
        try:
            size, _ = self._check(mapped.view, 0, limit=mapped.size_bytes, offset=mapped.base_offset)
            is_committed = mapped.base_offset + size <= self._log.committed_where
            if not size or not is_committed or not mapped.may_hold_record(0):
                return None
            at = 68 if mapped.view[39] & BORN_HOST_V6 else 56
            timestamp: int = _I64.unpack_from(mapped.view, at)[0]
            return timestamp
        finally:
            mapped.release()

    def _retry(self, hanging: _Hanging, now_ms: int) -> bool:
        """Remove a file from the disk unless a reader may still hold it. Raises OSError."""
        mapped, hanging.tried_ms = hanging.mapped, now_ms
        if not mapped.is_unreferenced:
            if now_ms < hanging.since_ms + self._policy.destroy_maped_file_interval_forcibly:
                _LOG.info("log_file_hangs path=%r remedy='release what a read returns'", mapped.path)
                return False
            _LOG.warning("log_file_taken_back path=%r answers=%d", mapped.path, self._revoke(mapped))
        self._log.remove(mapped)
        self._hanging = None
        _LOG.info("log_file_deleted path=%r", mapped.path)
        return True
