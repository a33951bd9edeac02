"""Test warm-up: every page present before the first record, synced by policy, all zero."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.smaps import kib_of
from tornpage.impl.config.policy import PAGE_BYTES, AllocationPolicy, FlushDiskType, WarmUp
from tornpage.impl.io.files import Mapping, OpenFile
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.io.warm_up import warm_up
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.disk.journal import PageWritten
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles

FILE_PAGES = 600
SYNC, ASYNC = FlushDiskType.SYNC_FLUSH, FlushDiskType.ASYNC_FLUSH


class WatchedFiles(OsFiles):
    """The real disk; it records each call and how many KiB of the mapping were present then."""

    def __init__(self, *, locks: bool = True) -> None:
        self.calls: list[tuple[str, int]] = []
        self.populated: list[tuple[int, int]] = []
        self.path = ""
        self._locks = locks

    def _note(self, verb: str) -> None:
        self.calls.append((verb, kib_of(self.path, "Rss")[0]))

    def populate(self, mapping: Mapping, position: int, size_bytes: int) -> None:
        """Record the range and call the disk."""
        self.populated.append((position, size_bytes))
        super().populate(mapping, position, size_bytes)

    def sync(self, file: OpenFile) -> None:
        """Record the call and do it."""
        self._note("sync")
        super().sync(file)

    def advise_will_need(self, mapping: Mapping) -> None:
        """Record the call and do it."""
        self._note("advise")
        super().advise_will_need(mapping)

    def lock_memory(self, mapping: Mapping) -> bool:
        """Record the call and return the set answer."""
        self._note("lock")
        return self._locks


class Fresh:
    """A fresh file of 600 pages and some bytes."""

    def __init__(self, directory: Path, files: WatchedFiles) -> None:
        self.files = files
        files.path = str(directory / "a")
        self.file = files.create(files.path)
        files.allocate(self.file, FILE_PAGES * PAGE_BYTES - 7)
        self.mapping = files.map(self.file)

    def warm(self, kind: WarmUp, flush_disk_type: FlushDiskType, *, pages: int = 4096) -> bool:
        """Warm the file up."""
        policy = AllocationPolicy(1, kind, pages)
        return warm_up(self.files, self.file, self.mapping, policy=policy, flush_disk_type=flush_disk_type)

    def close(self) -> None:
        """Release everything; the file must still be zeros."""
        assert not any(self.mapping.view)
        self.files.unmap(self.mapping)
        self.files.close(self.file)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Fresh]:
    """Make a fresh file on the real disk."""
    fresh = Fresh(tmp_path, WatchedFiles())
    yield fresh
    fresh.close()


FULL_KIB = FILE_PAGES * 4


@pytest.mark.parametrize("flush_disk_type", [SYNC, ASYNC])
def test_nothing_is_done_where_nothing_is_wanted(fresh: Fresh, flush_disk_type: FlushDiskType) -> None:
    assert not fresh.warm(WarmUp.NONE, flush_disk_type)
    assert fresh.files.calls == []
    assert kib_of(fresh.files.path, "Rss") == [0]


@pytest.mark.parametrize("kind", [WarmUp.TOUCH, WarmUp.TOUCH_AND_FORCE])
def test_touching_leaves_every_page_dirty_under_async_flush(fresh: Fresh, kind: WarmUp) -> None:
    assert fresh.warm(kind, ASYNC)
    assert fresh.files.calls == [("lock", FULL_KIB), ("advise", FULL_KIB)]


def test_touching_alone_syncs_nothing_under_sync_flush_either(fresh: Fresh) -> None:
    assert fresh.warm(WarmUp.TOUCH, SYNC)
    assert [verb for verb, _ in fresh.files.calls] == ["lock", "advise"]


@pytest.mark.parametrize(
    ("pages", "synced_kib"), [(4096, [2400]), (600, [2400]), (250, [1000, 2000, 2400]), (300, [1200, 2400])]
)
def test_forcing_syncs_each_so_many_pages_and_at_the_end(fresh: Fresh, pages: int, synced_kib: list[int]) -> None:
    assert fresh.warm(WarmUp.TOUCH_AND_FORCE, SYNC, pages=pages)
    syncs = [("sync", kib) for kib in synced_kib]
    assert fresh.files.calls == [*syncs, ("lock", FULL_KIB), ("advise", FULL_KIB)]


@pytest.mark.parametrize("flush_disk_type", [SYNC, ASYNC])
def test_populating_goes_in_steps_over_the_whole_file(fresh: Fresh, flush_disk_type: FlushDiskType) -> None:
    assert fresh.warm(WarmUp.POPULATE, flush_disk_type)
    size_bytes = FILE_PAGES * PAGE_BYTES - 7
    mib = 1 << 20
    assert fresh.files.populated == [(0, mib), (mib, mib), (2 * mib, size_bytes - 2 * mib)]
    assert [verb for verb, _ in fresh.files.calls] == ["lock", "advise"]


def test_a_refused_lock_is_the_answer(tmp_path: Path) -> None:
    fresh = Fresh(tmp_path, WatchedFiles(locks=False))
    assert not fresh.warm(WarmUp.TOUCH, ASYNC)
    assert [verb for verb, _ in fresh.files.calls] == ["lock", "advise"]
    fresh.close()


@pytest.mark.parametrize("kind", list(WarmUp))
def test_warming_changes_no_byte_of_a_recorded_disk(kind: WarmUp) -> None:
    files = RecordingFiles(EMPTY_DISK, tracker=CompareTracker())
    file = files.create("/a")
    files.allocate(file, 5 * PAGE_BYTES)
    mapping = files.map(file)
    policy = AllocationPolicy(1, kind, 2)
    assert warm_up(files, file, mapping, policy=policy, flush_disk_type=SYNC) == (kind is not WarmUp.NONE)
    assert not [entry for entry in files.journal if isinstance(entry, PageWritten)]


def test_a_sync_that_fails_ends_the_warm_up() -> None:
    files = RecordingFiles(EMPTY_DISK, tracker=CompareTracker())
    file = files.create("/a")
    files.allocate(file, 5 * PAGE_BYTES)
    files.failing_syncs = 1
    with pytest.raises(OSError, match="/a"):
        warm_up(
            files,
            file,
            files.map(file),
            policy=AllocationPolicy(1, WarmUp.TOUCH_AND_FORCE),
            flush_disk_type=SYNC,
        )
