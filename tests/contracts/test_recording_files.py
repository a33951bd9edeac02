"""Test the recorded disk past the common contract: budget, syncs, versions, journal."""

import errno
import random

import pytest

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import FlushDiskType
from tornpage.impl.io.files import DiskUsage, FileStat
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.properties.disk.dirty import CompareTracker, DirtyTracker, choose_tracker, write_protect_available
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose, disk_state
from tornpage.properties.disk.journal import Entry, FileSynced, PageWritten, ProcessKilled
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.program.hand_driven import HandDriven

PAGE_BYTES = 4096


def recording_files(*, budget_bytes: int = 1 << 40) -> RecordingFiles:
    """Return an empty recorded disk."""
    return RecordingFiles(EMPTY_DISK, tracker=CompareTracker(), budget_bytes=budget_bytes)


def versions(files: RecordingFiles) -> list[bytes]:
    """Return the first three bytes of every page version, in order."""
    return [entry.content[:3] for entry in files.journal if isinstance(entry, PageWritten)]


def on_disk_for_sure(files: RecordingFiles) -> Image:
    """Return the files that survive when no un-synced write does."""
    return compose(disk_state(files.base, files.journal, len(files.journal), disk="posix-strict"), {})


# ---- budget and failing syncs ----------------------------------------------------------------------------------------


def test_allocate_beyond_the_budget_is_a_full_disk() -> None:
    files = recording_files(budget_bytes=10_000)
    first, second = files.create("/a"), files.create("/b")
    files.allocate(first, 6_000)
    assert files.disk_usage("/").free_bytes == 4_000
    with pytest.raises(OSError, match="/b") as caught:
        files.allocate(second, 4_001)
    assert caught.value.errno == errno.ENOSPC
    assert files.read(second, 0, 1) == b""
    files.allocate(second, 4_000)
    assert files.disk_usage("/").free_bytes == 0
    files.unlink("/a")
    files.close(first)
    assert files.disk_usage("/").free_bytes == 6_000


def test_disk_usage_is_the_budget_and_what_is_left_of_it() -> None:
    files = recording_files(budget_bytes=10_000)
    assert files.disk_usage("/") == DiskUsage(10_000, 10_000)
    files.allocate(files.create("/a"), 6_000)
    assert files.disk_usage("/") == files.disk_usage("/a") == DiskUsage(10_000, 4_000)


def test_a_scripted_usage_hides_the_budget_and_changes_no_allocation() -> None:
    files = recording_files(budget_bytes=10_000)
    files.scripted_usage = DiskUsage(100, 0)
    files.allocate(files.create("/a"), 6_000)
    assert files.disk_usage("/") == DiskUsage(100, 0)
    with pytest.raises(FileNotFoundError):
        files.disk_usage("/no")
    files.scripted_usage = None
    assert files.disk_usage("/") == DiskUsage(10_000, 4_000)


def test_asking_for_the_usage_is_no_event() -> None:
    files = recording_files()
    files.create("/a")
    events, journal = list(files.events), list(files.journal)
    files.disk_usage("/")
    assert (files.events, files.journal) == (events, journal)


def test_a_failing_sync_is_an_error_and_no_barrier() -> None:
    files = recording_files()
    file = files.create("/a")
    files.sync_directory("/")
    files.pwrite(file, b"abc", 0)
    files.failing_syncs = 1
    with pytest.raises(OSError, match="/a") as caught:
        files.sync(file)
    assert caught.value.errno == errno.EIO
    assert files.journal[-1] == FileSynced(0, succeeded=False)
    assert on_disk_for_sure(files).files == {"/a": b""}
    assert files.failing_syncs == 0
    files.sync(file)
    assert on_disk_for_sure(files).files == {"/a": b"abc"}


@pytest.mark.parametrize(("data", "arrived"), [(b"abcdef", b"abc"), (b"abcde", b"ab"), (b"a", b"")])
def test_a_failing_write_leaves_the_first_half_of_its_bytes(data: bytes, arrived: bytes) -> None:
    files = recording_files()
    file = files.create("/a")
    files.allocate(file, PAGE_BYTES)
    mapping = files.map(file)
    files.failing_writes = 1
    with pytest.raises(OSError, match="/a") as caught:
        files.pwrite(file, memoryview(data), 1)
    assert caught.value.errno == errno.EIO
    assert bytes(mapping.view[:10]) == (b"\0" + arrived).ljust(10, b"\0")
    assert files.events[-1] == len(files.journal), "a crash may fall between the failure and what follows"
    files.pwrite(file, memoryview(data), 1)
    assert bytes(mapping.view[1:10]) == data.ljust(9, b"\0")


def test_what_a_failing_write_left_may_reach_the_disk_and_need_not() -> None:
    files = recording_files()
    file = files.create("/a")
    files.allocate(file, PAGE_BYTES)
    files.sync(file)
    files.sync_directory("/")
    files.map(file)
    files.failing_writes = 1
    with pytest.raises(OSError, match="/a"):
        files.pwrite(file, b"abcdef", 0)
    assert versions(files) == [b"abc"]
    assert on_disk_for_sure(files).files == {"/a": bytes(PAGE_BYTES)}


def test_writes_fail_in_mapped_files_only_and_zeroing_never() -> None:
    files = recording_files()
    checkpoint, log = files.create("/checkpoint"), files.create("/log")
    files.allocate(log, PAGE_BYTES)
    files.map(log)
    files.failing_writes = 2
    files.pwrite(checkpoint, b"abc", 0)
    files.zero(log, 0, 10)
    assert files.failing_writes == 2
    for _ in range(2):
        with pytest.raises(OSError, match="/log"):
            files.pwrite(log, b"abc", 0)
    files.pwrite(log, b"abc", 0)
    assert files.peek("/checkpoint", 0, 3) == files.peek("/log", 0, 3) == b"abc"


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EFBIG])
def test_a_failing_allocation_reserves_nothing(code: int) -> None:
    files = recording_files()
    file = files.create("/a")
    before = files.disk_usage("/")
    files.failing_allocations, files.allocation_code = 2, code
    for _ in range(2):
        with pytest.raises(OSError, match="/a") as caught:
            files.allocate(file, 100)
        assert caught.value.errno == code
    assert (files.disk_usage("/"), files.stat("/a")) == (before, FileStat("file", 0))
    files.allocate(file, 100)
    assert files.stat("/a") == FileStat("file", 100)


# ---- barriers --------------------------------------------------------------------------------------------------------


def test_closing_syncs_nothing() -> None:
    files = recording_files()
    file = files.create("/a")
    files.sync_directory("/")
    files.allocate(file, PAGE_BYTES)
    files.sync(file)
    mapping = files.map(file)
    mapping.view[:3] = b"abc"
    files.unmap(mapping)
    files.close(file)
    assert on_disk_for_sure(files).files == {"/a": bytes(PAGE_BYTES)}
    assert files.peek("/a", 0, 3) == b"abc"


def test_the_end_of_a_process_syncs_nothing_and_loses_nothing() -> None:
    files = recording_files()
    file = files.create("/a")
    files.pwrite(file, b"abc", 0)
    after = RecordingFiles(files.base, tracker=CompareTracker(), journal=(*files.journal, ProcessKilled()))
    assert after.peek("/a", 0, 10) == b"abc"
    assert after.lock(after.open("/a", writable=True))
    assert on_disk_for_sure(after).files == {}


def test_the_end_of_a_process_gives_up_its_lock() -> None:
    files = recording_files()
    file = files.create("/a")
    assert files.lock(file)
    after = RecordingFiles(files.base, tracker=CompareTracker(), journal=(*files.journal, ProcessKilled()))
    assert after.lock(after.open("/a", writable=True))


# ---- versions and events ---------------------------------------------------------------------------------------------


def test_every_mark_takes_a_version() -> None:
    files = recording_files()
    file = files.create("/a")
    files.allocate(file, PAGE_BYTES)
    mapping = files.map(file)
    for text in (b"one", b"two", b"six"):
        mapping.view[:3] = text
        files.mark("record")
    assert versions(files) == [b"one", b"two", b"six"]


@pytest.mark.parametrize("verb", ["advise_will_need", "lock_memory", "unlock_memory"])
def test_calls_about_memory_are_places_for_a_crash_and_change_nothing(verb: str) -> None:
    files = recording_files()
    file = files.create("/a")
    files.allocate(file, PAGE_BYTES)
    mapping = files.map(file)
    entries = len(files.journal)
    getattr(files, verb)(mapping)
    assert len(files.journal) == entries
    mapping.view[:3] = b"one"
    getattr(files, verb)(mapping)
    assert versions(files) == [b"one"]
    assert files.events[-1] == len(files.journal) == entries + 1


def test_writes_between_two_calls_are_one_version() -> None:
    files = recording_files()
    file = files.create("/a")
    files.allocate(file, PAGE_BYTES)
    mapping = files.map(file)
    for text in (b"one", b"two", b"six"):
        mapping.view[:3] = text
    files.mark("record")
    files.mark("record")
    assert versions(files) == [b"six"]


def test_a_version_is_taken_before_a_barrier() -> None:
    files = recording_files()
    file = files.create("/a")
    files.allocate(file, PAGE_BYTES)
    mapping = files.map(file)
    mapping.view[:3] = b"one"
    files.sync(file)
    kinds = [type(entry) for entry in files.journal[-2:]]
    assert kinds == [PageWritten, FileSynced]
    files.sync_directory("/")
    assert on_disk_for_sure(files).files["/a"][:3] == b"one"


def test_events_fall_at_calls_only() -> None:
    files = recording_files()
    file = files.create("/a")
    files.allocate(file, PAGE_BYTES)
    mapping = files.map(file)
    before = list(files.events)
    mapping.view[:3] = b"one"
    assert files.events == before
    files.mark("record")
    assert files.events == [*before, len(files.journal)]
    files.mark("record")
    assert files.events == [*before, len(files.journal)], "nothing happened in between: the same place"
    files.sync(file)
    assert files.events[-2:] == [len(files.journal) - 1, len(files.journal)], "before the barrier, and after it"


def test_events_are_ascending_places_in_the_journal() -> None:
    files = recording_files()
    run_workload(files, seed=1)
    assert files.events == sorted(set(files.events))
    assert files.events[-1] <= len(files.journal)


# ---- trackers --------------------------------------------------------------------------------------------------------


def run_workload(files: RecordingFiles, *, seed: int) -> list[PutStatus]:
    """Open a store, put, flush, close and open again by a seed.

    Returns the answers to the puts.
    """
    rng = random.Random(seed)
    config = MessageStoreConfig(
        mapped_file_size_commit_log=16_384,
        flush_disk_type=rng.choice(list(FlushDiskType)),
        record_checksum=rng.choice(("record", "body")),
    )
    now_ms = 1_700_000_000_000

    parts = Parts({ThreadRunner: lambda service: HandDriven(service, lambda: now_ms)})

    def open_store() -> MessageStore:
        return MessageStore.open("/store", config, files=files, clock=lambda: now_ms, parts=parts)

    store, answers = open_store(), []
    for _ in range(60):
        now_ms += 1
        drawn = rng.random()
        if drawn < 0.05:
            store.close()
            store = open_store()
        elif drawn < 0.15:
            store.flush()
        else:
            message = Message("TopicA", rng.randbytes(rng.choice((0, 100, 900, 3000))), born_timestamp=now_ms)
            answers.append(store.put(message).status)
    store.close()
    return answers


def journal_with(tracker: DirtyTracker, *, seed: int) -> tuple[list[Entry], list[int]]:
    """Return journal and events of a workload."""
    files = RecordingFiles(EMPTY_DISK, tracker=tracker)
    assert set(run_workload(files, seed=seed)) == {PutStatus.PUT_OK}
    assert not files.leaks()
    return files.journal, files.events


@pytest.mark.parametrize("seed", range(4))
def test_both_trackers_record_the_same(seed: int) -> None:
    missing = write_protect_available()
    if missing is not None:
        pytest.skip(missing)
    compared = journal_with(choose_tracker("compare"), seed=seed)
    protected = journal_with(choose_tracker("write-protect"), seed=seed)
    assert sum(isinstance(entry, PageWritten) for entry in compared[0]) > 50
    assert protected == compared


def test_equal_seeds_record_the_same() -> None:
    assert journal_with(CompareTracker(), seed=9) == journal_with(CompareTracker(), seed=9)
