"""The service that deletes expired files of the log, then of queues and index.

A run begins in one of the hours of `delete_when`, when a disk is used above `disk_max_used_space_ratio`, or on request.
Between two deletions it pauses, to limit the load on the file system. The disk watch does not wait for it (RMQ-B54).
Source: `DefaultMessageStore.CleanCommitLogService`.
"""

import logging
import threading
from collections.abc import Callable, Generator

from tornpage.impl.config.retention_policy import DELETE_FILES_BATCH_MAX, MAX_MANUAL_DELETE_FILE_TIMES, RetentionPolicy
from tornpage.impl.io.files import Clock
from tornpage.impl.retention.clean_commit_log import CleanCommitLog
from tornpage.impl.retention.clean_consume_queues import CleanConsumeQueues
from tornpage.impl.service.disk_watch import DiskWatch

__all__ = ["CleanFiles"]

_LOG = logging.getLogger("tornpage.store")


class CleanFiles:
    """The service of one store.

    `clock` is the time of records and disks; `may_clean` is False once the store is closed. `followed` is called after
    each run.
    """

    name = "clean"

    def __init__(
        self,
        policy: RetentionPolicy,
        *,
        watch: DiskWatch,
        commit_log: CleanCommitLog,
        queues: CleanConsumeQueues,
        clock: Clock,
        may_clean: Callable[[], bool],
        followed: Callable[[], None],
    ) -> None:
        self._policy = policy
        self._watch = watch
        self._commit_log = commit_log
        self._queues = queues
        self._clock = clock
        self._may_clean = may_clean
        self._followed = followed
        self._manual_runs = 0
        self._manual_guard = threading.Lock()
        self._run: Generator[int, int, None] | None = None

    def delete_manually(self) -> None:
        """Start the next runs at any hour.

        Source: `executeDeleteFilesManually`; only expired files are deleted.
        """
        with self._manual_guard:
            self._manual_runs = MAX_MANUAL_DELETE_FILE_TIMES

    def _take_manual_run(self) -> bool:
        """Return whether a run was requested, and count it.

        RocketMQ may lose a request here (RMQ-B56).
        """
        with self._manual_guard:
            asked_for = self._manual_runs > 0
            self._manual_runs -= asked_for
        return asked_for

    def step(self, now_ms: int) -> int:
        """Delete up to the next pause; return the end of the pause in ms.

        Raises OSError; a new run begins then.
        """
        if not self._may_clean():
            return now_ms + self._policy.clean_resource_interval
        run, self._run = self._run, None
        try:
            if run is None:
                run = self._runs(now_ms)
                pause_ms = next(run)
            else:
                pause_ms = run.send(now_ms)
        except StopIteration:
            return now_ms + self._policy.clean_resource_interval
        self._run = run
        return now_ms + pause_ms

    def _runs(self, now_ms: int) -> Generator[int, int, None]:
        """Generator: yields a pause in milliseconds, receives the current time in milliseconds."""
        clock_ms = self._clock()
        room = self._watch.look(clock_ms)
        asked_for = self._take_manual_run()
        if asked_for or room.wants_deletion or self._policy.is_time_to_delete(clock_ms):
            deleted = 0
            while self._commit_log.delete_first(now_ms, clock_ms=clock_ms, urgent=room.urgent):
                deleted += 1
                if deleted == DELETE_FILES_BATCH_MAX:
                    break
                # A file that may be deleted only now, by a flush meanwhile, is left to the next run: it had no pause.
                if not self._commit_log.wants_deletion(clock_ms=clock_ms, urgent=room.urgent):
                    break
                now_ms = yield self._policy.delete_commit_log_files_interval
            if room.wants_deletion and not deleted:
                _LOG.warning("disk_needs_room deleted=0 remedy='give it room or lower file_reserved_time'")
        self._commit_log.retry_hanging(now_ms)
        yield from self._queues.follow()
        self._followed()
