"""Looks at the disk from time to time and says in the running flags whether it is full."""

import logging
import threading
from collections.abc import Sequence

from impl.disk_usage import disk_usage_of
from impl.files import Files
from impl.running_flags import RunningFlag, RunningFlags

__all__ = ["DiskWatch"]

_LOG = logging.getLogger("tornpage.store")


class DiskWatch:
    """Owns the bit DISK_FULL for the disks that hold `paths`; the least full of them counts.

    `due_ms` is when to look next and `looked_ms` when the last look was, so that a put compares two numbers and rarely
    calls `step`; both are 0 until the first look, which the store takes when it opens. Of several callers one looks.
    Two watches may not share the flags: the one would clear what the other has set. A disk that cannot be asked
    changes nothing; RocketMQ counts it as empty, which hides that the others are full.
    Source: `DefaultMessageStore.CleanCommitLogService.isSpaceFull`.
    """

    __slots__ = (
        "_files",
        "_flags",
        "_interval_ms",
        "_looking",
        "_paths",
        "_warning_level_ratio",
        "due_ms",
        "looked_ms",
    )

    def __init__(
        self,
        files: Files,
        paths: Sequence[str],
        flags: RunningFlags,
        *,
        warning_level_ratio: float,
        interval_ms: int,
    ) -> None:
        self._files = files
        self._paths = paths
        self._flags = flags
        self._warning_level_ratio = warning_level_ratio
        self._interval_ms = interval_ms
        self._looking = threading.Lock()
        self.due_ms = 0
        self.looked_ms = 0

    def step(self, now_ms: int) -> int:
        """Look if a look is due; return when the next one is. A clock that was set back makes it due."""
        if now_ms < self.due_ms <= now_ms + self._interval_ms or not self._looking.acquire(blocking=False):
            return self.due_ms
        try:
            self.looked_ms = now_ms
            self.due_ms = now_ms + self._interval_ms
            self._look()
        finally:
            self._looking.release()
        return self.due_ms

    def _look(self) -> None:
        used_ratio = self._used_ratio()
        if used_ratio is None:
            return
        if used_ratio > self._warning_level_ratio:
            if self._flags.set(RunningFlag.DISK_FULL):
                _LOG.warning("disk_full path=%r used_ratio=%.4f", ", ".join(self._paths), used_ratio)
        elif self._flags.clear(RunningFlag.DISK_FULL):
            _LOG.info("disk_has_room path=%r used_ratio=%.4f", ", ".join(self._paths), used_ratio)

    def _used_ratio(self) -> float | None:
        """Return used / total of the least full disk, or None when none says."""
        usages = [disk_usage_of(self._files, path) for path in self._paths]
        return min((usage.used_ratio for usage in usages if usage is not None), default=None)
