"""Periodic checks of the disks, for the running flag DISK_FULL and for retention."""

import logging
import threading
from collections.abc import Sequence

from tornpage.impl.config.retention_policy import RetentionPolicy, Room
from tornpage.impl.io.disk_usage import disk_usage_of
from tornpage.impl.io.files import Files
from tornpage.impl.service.running_flags import RunningFlag, RunningFlags

__all__ = ["DiskWatch"]

_LOG = logging.getLogger("tornpage.store")


class DiskWatch:
    """Owns the running flag DISK_FULL.

    It is set for the least full of the disks that hold `paths`, and for the disk of the queues, if `queue_path` is
    given. `due_ms` is when the next check is due and `checked_ms` the time of the last one, so that a put compares two
    numbers and rarely calls `step`. Both are 0 until the first check, at open. If several threads call, one checks. Two
    watches must not share the flags: each would clear what the other has set. RocketMQ has two that share them, and for
    long only the check after slow deletions counted (RMQ-B54). A disk whose usage cannot be read changes nothing.
    Source: `DefaultMessageStore.CleanCommitLogService.isSpaceFull`, `isSpaceToDelete`.
    """

    __slots__ = (
        "_checking",
        "_files",
        "_flags",
        "_log_ratio",
        "_paths",
        "_policy",
        "_queue_path",
        "_queue_ratio",
        "checked_ms",
        "due_ms",
        "room",
    )

    def __init__(
        self,
        files: Files,
        paths: Sequence[str],
        flags: RunningFlags,
        *,
        policy: RetentionPolicy,
        queue_path: str | None = None,
    ) -> None:
        self._files = files
        self._paths = paths
        self._flags = flags
        self._policy = policy
        self._queue_path = queue_path
        self._checking = threading.Lock()
        self._log_ratio: float | None = None
        self._queue_ratio: float | None = None
        self.due_ms = 0
        self.checked_ms = 0
        self.room = Room()

    def step(self, now_ms: int) -> int:
        """Check if a check is due; return when the next one is, in ms.

        A clock that was set back makes it due.
        """
        if not now_ms < self.due_ms <= now_ms + self._policy.clean_resource_interval:
            self.look(now_ms)
        return self.due_ms

    def look(self, now_ms: int) -> Room:
        """Check now, unless another thread does; return the last result."""
        if self._checking.acquire(blocking=False):
            try:
                self.checked_ms = now_ms
                self.due_ms = now_ms + self._policy.clean_resource_interval
                self._look()
            finally:
                self._checking.release()
        return self.room

    def _look(self) -> None:
        log_ratio = self._used_ratio()
        queue_ratio = None if self._queue_path is None else self._used_ratio_of(self._queue_path)
        if log_ratio is None and queue_ratio is None:
            return
        self._log_ratio = self._log_ratio if log_ratio is None else log_ratio
        self._queue_ratio = self._queue_ratio if queue_ratio is None else queue_ratio
        self.room = self._policy.room(self._log_ratio, self._queue_ratio)
        used_ratio = max(self._log_ratio or 0.0, self._queue_ratio or 0.0)
        if self.room.is_full:
            if self._flags.set(RunningFlag.DISK_FULL):
                _LOG.warning("disk_full path=%r used_ratio=%.4f", ", ".join(self._paths), used_ratio)
        elif self._flags.clear(RunningFlag.DISK_FULL):
            _LOG.info("disk_has_room path=%r used_ratio=%.4f", ", ".join(self._paths), used_ratio)

    def _used_ratio(self) -> float | None:
        """Return the used share of the least full disk of the log, or None if none can be read."""
        ratios = [self._used_ratio_of(path) for path in self._paths]
        return min((ratio for ratio in ratios if ratio is not None), default=None)

    def _used_ratio_of(self, path: str) -> float | None:
        usage = disk_usage_of(self._files, path)
        return None if usage is None else usage.used_ratio
