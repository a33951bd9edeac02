"""When log files may be deleted: functions of time of day, age and used disk space.

Names and defaults are those of `MessageStoreConfig` 4.9.3 and of its system properties, in snake case. Times are
milliseconds unless another unit is named. Source: `DefaultMessageStore.CleanCommitLogService`.
"""

import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

__all__ = ["DELETE_FILES_BATCH_MAX", "MAX_MANUAL_DELETE_FILE_TIMES", "RetentionPolicy", "Room", "zone_of"]

DELETE_FILES_BATCH_MAX = 10
"""The greatest number of log files deleted in one run."""

MAX_MANUAL_DELETE_FILE_TIMES = 20
"""The number of runs that delete expired files at any hour after a manual request."""

_HOUR_MS = 3_600_000
_HOURS = range(24)
_RATIO_LEAST, _RATIO_MOST = 10, 95


@dataclass(frozen=True, slots=True)
class Room:
    """The result of a disk space check.

    `is_full` forbids puts. `wants_deletion` starts a run of deletions. An `urgent` run ignores the age of files.
    """

    is_full: bool = False
    wants_deletion: bool = False
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long messages stay. Raises ValueError for invalid hours or an unknown time zone.

    `disk_max_used_space_ratio` is percent, clamped to 10 to 95. The other two ratios are shares.
    """

    file_reserved_time: int = 72
    """`fileReservedTime`, hours."""
    delete_when: str = "04"
    """`deleteWhen`: the hours of the day at which expired files are deleted, separated by `;`."""
    time_zone: str = ""
    """Not in RocketMQ: the IANA time zone of `delete_when`; empty means the zone of the machine."""
    clean_resource_interval: int = 10_000
    """`cleanResourceInterval`, ms between two runs."""
    delete_commit_log_files_interval: int = 100
    """`deleteCommitLogFilesInterval`, ms between two deletions of a run."""
    destroy_maped_file_interval_forcibly: int = 120_000
    """`destroyMapedFileIntervalForcibly`, ms that a reader may hold a file that is to be deleted."""
    redelete_hanged_file_interval: int = 120_000
    """`redeleteHangedFileInterval`, ms between two attempts to delete such a file while no other file is to be
    deleted.
    """
    delete_consume_queue_files_interval: int = 100
    """`deleteConsumeQueueFilesInterval`, ms of pause after a queue whose files were deleted."""
    clean_file_forcibly_enable: bool = True
    """`cleanFileForciblyEnable`: whether files that have not expired are deleted from a full disk."""
    disk_max_used_space_ratio: int = 75
    """`diskMaxUsedSpaceRatio`, percent: above it expired files are deleted at any hour."""
    disk_space_clean_forcibly_ratio: float = 0.85
    """Share of the disk above which files of any age are deleted."""
    disk_space_warning_level_ratio: float = 0.90
    """Share of the disk above which no put is accepted."""

    def __post_init__(self) -> None:
        self.hours()
        zone_of(self.time_zone)

    def hours(self) -> frozenset[int]:
        """Return the hours of `delete_when`.

        Raises ValueError if one is invalid; RocketMQ aborts each run then.
        """
        return _hours_of(self.delete_when)

    def is_time_to_delete(self, now_ms: int) -> bool:
        """Return whether a time lies within one of the hours."""
        return datetime.fromtimestamp(now_ms / 1000, zone_of(self.time_zone)).hour in self.hours()

    def is_expired(self, *, newest_ms: int, now_ms: int) -> bool:
        """Return whether a file has expired whose newest message was stored at `newest_ms`."""
        return now_ms >= newest_ms + self.file_reserved_time * _HOUR_MS

    def room(self, log_ratio: float | None, queue_ratio: float | None) -> Room:
        """Decide by the used shares of the disks of log and queues.

        None is a disk whose usage cannot be read. RocketMQ does not check the second disk while the first one wants a
        run, and starts a run if the usage cannot be read.
        """
        ratios = [ratio for ratio in (log_ratio, queue_ratio) if ratio is not None]
        return Room(
            is_full=any(ratio > self.disk_space_warning_level_ratio for ratio in ratios),
            wants_deletion=any(ratio > self._max_used_ratio for ratio in ratios),
            urgent=self.clean_file_forcibly_enable
            and any(ratio > self.disk_space_clean_forcibly_ratio for ratio in ratios),
        )

    @property
    def _max_used_ratio(self) -> float:
        return min(max(self.disk_max_used_space_ratio, _RATIO_LEAST), _RATIO_MOST) / 100


@lru_cache(maxsize=64)
def _hours_of(text: str) -> frozenset[int]:
    hours = frozenset(int(hour) for hour in text.split(";"))
    if not hours <= set(_HOURS):
        raise ValueError(f"no hour of the day: {max(hours, key=lambda hour: abs(hour - 12))}")
    return hours


def zone_of(name: str) -> tzinfo | None:
    """Return a time zone, None for that of the machine. Raises ValueError for an unknown name."""
    if name in ("", "UTC"):
        return UTC if name else None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"unknown time zone {name!r}") from error
