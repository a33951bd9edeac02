"""Test the disk watch: times of its looks, its limit, and disks that do not answer."""

import errno
import logging

import pytest

from tornpage.impl.config.retention_policy import RetentionPolicy
from tornpage.impl.io.files import DiskUsage
from tornpage.impl.service.disk_watch import DiskWatch
from tornpage.impl.service.running_flags import RunningFlag, RunningFlags
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles

NOW_MS = 1_700_000_000_000


class CountingDisk(RecordingFiles):
    """A disk that counts the questions for its usage, and fails while `broken`."""

    def __init__(self, used_bytes: int = 0, total_bytes: int = 100) -> None:
        super().__init__(EMPTY_DISK, tracker=CompareTracker())
        self.broken = False
        self.looks = 0
        self.use(used_bytes, total_bytes)

    def use(self, used_bytes: int, total_bytes: int = 100) -> None:
        """Script the usage."""
        self.scripted_usage = DiskUsage(total_bytes, total_bytes - used_bytes)

    def disk_usage(self, path: str) -> DiskUsage:
        self.looks += 1
        if self.broken:
            raise OSError(errno.EIO, "Input/output error", path)
        return super().disk_usage(path)


def watch_of(disk: CountingDisk, flags: RunningFlags, *, ratio: float = 0.90, path: str = "/") -> DiskWatch:
    """Return a watch that looks every ten seconds."""
    return DiskWatch(disk, [path], flags, policy=RetentionPolicy(disk_space_warning_level_ratio=ratio))


@pytest.mark.parametrize(
    ("used_bytes", "total_bytes", "ratio", "full"),
    [
        (0, 100, 0.90, False),
        (90, 100, 0.90, False),
        (91, 100, 0.90, True),
        (100, 100, 0.90, True),
        (9, 10, 0.90, False),
        (3, 10, 0.30, False),
        (7, 10, 0.70, False),
        (9 * 10**17, 10**18, 0.90, False),
        (9 * 10**17 + 10**4, 10**18, 0.90, True),
        (0, 1, 0.0, False),
        (1, 1, 1.0, False),
    ],
)
def test_full_is_what_is_above_the_level(used_bytes: int, total_bytes: int, ratio: float, full: bool) -> None:
    flags = RunningFlags()
    watch_of(CountingDisk(used_bytes, total_bytes), flags, ratio=ratio).step(NOW_MS)
    assert (flags.bits == RunningFlag.DISK_FULL) is full
    assert flags.writeable is not full


def test_the_bit_follows_the_disk_and_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tornpage.store")
    disk, flags = CountingDisk(91), RunningFlags()
    flags.set(RunningFlag.NOT_READABLE)
    watch = watch_of(disk, flags)
    for used_bytes, bits in [(91, 17), (95, 17), (90, 1), (10, 1), (92, 17)]:
        disk.use(used_bytes)
        watch.step(watch.due_ms)
        assert flags.bits == bits
    assert [record.getMessage() for record in caplog.records] == [
        "disk_full path='/' used_ratio=0.9100",
        "disk_has_room path='/' used_ratio=0.9000",
        "disk_full path='/' used_ratio=0.9200",
    ]


def test_first_look_is_due_at_once_and_the_next_one_an_interval_later() -> None:
    disk, flags = CountingDisk(), RunningFlags()
    watch = watch_of(disk, flags)
    assert watch.due_ms <= NOW_MS
    for now_ms, due_ms, looks in [
        (NOW_MS, NOW_MS + 10_000, 1),
        (NOW_MS, NOW_MS + 10_000, 1),
        (NOW_MS + 9_999, NOW_MS + 10_000, 1),
        (NOW_MS + 10_000, NOW_MS + 20_000, 2),
        (NOW_MS + 55_000, NOW_MS + 65_000, 3),
    ]:
        assert watch.step(now_ms) == due_ms
        assert watch.due_ms == due_ms
        assert disk.looks == looks


@pytest.mark.parametrize("now_ms", [0, 5, 10_000])
def test_first_look_is_due_on_a_clock_that_starts_low(now_ms: int) -> None:
    disk = CountingDisk()
    assert watch_of(disk, RunningFlags()).step(now_ms) == now_ms + 10_000
    assert disk.looks == 1


def test_a_clock_that_was_set_back_does_not_stop_the_watch() -> None:
    disk = CountingDisk()
    watch = watch_of(disk, RunningFlags())
    watch.step(NOW_MS)
    assert watch.step(NOW_MS - 1) == NOW_MS + 9_999
    assert disk.looks == 2


@pytest.mark.parametrize("was_full", [False, True])
def test_a_disk_that_cannot_be_asked_changes_nothing(was_full: bool, caplog: pytest.LogCaptureFixture) -> None:
    disk, flags = CountingDisk(99 if was_full else 0), RunningFlags()
    watch = watch_of(disk, flags)
    watch.step(NOW_MS)
    caplog.clear()
    disk.broken = True
    disk.use(0 if was_full else 99)
    assert watch.step(NOW_MS + 10_000) == NOW_MS + 20_000
    assert flags.writeable is not was_full
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "disk_unreadable path='/' error='Input/output error'")
    ]
    disk.broken = False
    watch.step(NOW_MS + 20_000)
    assert flags.writeable is was_full


def test_a_path_that_is_gone_and_a_disk_without_a_size_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    flags = RunningFlags()
    flags.set(RunningFlag.DISK_FULL)
    watch_of(CountingDisk(), flags, path="/gone").step(NOW_MS)
    watch_of(CountingDisk(total_bytes=0), flags).step(NOW_MS)
    assert flags.bits == RunningFlag.DISK_FULL
    assert [record.getMessage().split()[0] for record in caplog.records] == ["disk_unreadable"] * 2
