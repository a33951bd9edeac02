"""When log files may go, decided from values: time of day, age, and how full the disks are.

Names and defaults are those of `MessageStoreConfig` 4.9.3, in snake case, and of its system properties; times are
milliseconds where nothing else is said. Source: `DefaultMessageStore.CleanCommitLogService`.
"""

import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache

__all__ = ["DELETE_FILES_BATCH_MAX", "MAX_MANUAL_DELETE_FILE_TIMES", "RetentionPolicy", "Room", "zone_of"]

DELETE_FILES_BATCH_MAX = 10
"""So many log files go in one run."""

MAX_MANUAL_DELETE_FILE_TIMES = 20
"""So many runs follow when somebody asks for them."""

_HOUR_MS = 3_600_000
_HOURS = range(24)
_RATIO_LEAST, _RATIO_MOST = 10, 95


@dataclass(frozen=True, slots=True)
class Room:
    """What a look at the disks says: `is_full` forbids puts, `wants_deletion` begins a run, and that run asks no file
    for its age when it is `urgent`."""

    is_full: bool = False
    wants_deletion: bool = False
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long messages stay. Raises ValueError for hours and zones that there are not.

    `disk_max_used_space_ratio` is per cent, and counts as 10 below it and as 95 above; the other two ratios are shares.
    """

    file_reserved_time: int = 72
    """`fileReservedTime`, hours."""
    delete_when: str = "04"
    """`deleteWhen`: the hours of the day at which expired files go, separated by `;`."""
    time_zone: str = ""
    """Ours: where it is that hour; an IANA name, or empty for the zone of the machine."""
    clean_resource_interval: int = 10_000
    """`cleanResourceInterval`: the pause between two runs."""
    delete_commit_log_files_interval: int = 100
    """`deleteCommitLogFilesInterval`: the pause between two deletions of a run."""
    destroy_maped_file_interval_forcibly: int = 120_000
    """`destroyMapedFileIntervalForcibly`: how long a reader may keep a file that is to go."""
    redelete_hanged_file_interval: int = 120_000
    """`redeleteHangedFileInterval`: how often such a file is tried again when nothing else is to go."""
    delete_consume_queue_files_interval: int = 100
    """`deleteConsumeQueueFilesInterval`: the pause behind a queue that lost files."""
    clean_file_forcibly_enable: bool = True
    """`cleanFileForciblyEnable`: whether a disk that is too full takes files that are not expired."""
    disk_max_used_space_ratio: int = 75
    """`diskMaxUsedSpaceRatio`, per cent: above it expired files go at any hour."""
    disk_space_clean_forcibly_ratio: float = 0.85
    """Above it files go at any age."""
    disk_space_warning_level_ratio: float = 0.90
    """Above it no put is taken."""

    def __post_init__(self) -> None:
        self.hours()
        zone_of(self.time_zone)

    def hours(self) -> frozenset[int]:
        """Return the hours of `delete_when`. Raises ValueError; RocketMQ's run ends there, each time."""
        return _hours_of(self.delete_when)

    def is_time_to_delete(self, now_ms: int) -> bool:
        """Return whether this is one of the hours, all of it."""
        return datetime.fromtimestamp(now_ms / 1000, zone_of(self.time_zone)).hour in self.hours()

    def is_expired(self, *, newest_ms: int, now_ms: int) -> bool:
        """Return whether a file may go whose newest message is not younger than `newest_ms`."""
        return now_ms >= newest_ms + self.file_reserved_time * _HOUR_MS

    def room(self, log_ratio: float | None, queue_ratio: float | None) -> Room:
        """Return what follows from the used share of the log's disk and of the queues'; None is one that does not say.

        RocketMQ does not look at the second one while the first one wants a run, and takes a disk that does not say
        for one that wants it.
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
        raise ValueError(f"a day has no hour {max(hours, key=lambda hour: abs(hour - 12))}")
    return hours


def zone_of(name: str) -> tzinfo | None:
    """Return a time zone, None for that of the machine. Raises ValueError for one that nobody knows."""
    if name in ("", "UTC"):
        return UTC if name else None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"no time zone is called {name!r}") from error
