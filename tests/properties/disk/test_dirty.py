"""Compare both trackers with whole contents and with each other."""

import errno
import gc
import mmap
import os
import random
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tornpage.properties.disk import dirty, write_protect
from tornpage.properties.disk.dirty import (
    PAGE_BYTES,
    AutoTracker,
    CompareTracker,
    DirtyTracker,
    Tracked,
    TrackerForked,
    TrackerUnavailable,
    WriteProtectTracker,
    choose_tracker,
    write_protect_available,
)

UNAVAILABLE = write_protect_available()
needs_write_protect = pytest.mark.skipif(UNAVAILABLE is not None, reason=str(UNAVAILABLE))
KINDS = ["compare", pytest.param("write-protect", marks=needs_write_protect)]
SIZES_BYTES = [0, 1, 4095, 4096, 4097, 16 << 10, 64 << 10, 1 << 20]

Write = tuple[int, bytes]


@pytest.fixture(params=["auto", *KINDS])
def tracker(request: pytest.FixtureRequest) -> Iterator[DirtyTracker]:
    """Yield each tracker in turn, and close it."""
    made = choose_tracker(request.param)
    yield made
    made.close()


@pytest.fixture
def protecting() -> Iterator[WriteProtectTracker]:
    """Return a write-protecting tracker, or skip with the reason."""
    if UNAVAILABLE is not None:
        pytest.skip(UNAVAILABLE)
    with WriteProtectTracker() as made:
        yield made


def pages_that_differ(before: bytes, after: bytes) -> list[int]:
    """Return the differing pages, computed without the module under test."""
    return [at // 4096 for at in range(0, len(before), 4096) if before[at : at + 4096] != after[at : at + 4096]]


def descriptor_count() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def mapping_count() -> int:
    gc.collect()
    return len(Path("/proc/self/maps").read_text().splitlines())


@st.composite
def histories(draw: st.DrawFn) -> tuple[bytes, list[list[Write]]]:
    """Draw an initial content and the writes before each look.

    A fifth of the writes do not change the content.
    """
    size_bytes = draw(st.sampled_from(SIZES_BYTES))
    seed = draw(st.integers(0, 1 << 32))
    initial = draw(
        st.sampled_from([bytes(size_bytes), b"\x07" * size_bytes, random.Random(seed).randbytes(size_bytes)])
    )
    content = bytearray(initial)
    looks: list[list[Write]] = []
    for _ in range(draw(st.integers(1, 5))):
        writes: list[Write] = []
        for _ in range(draw(st.integers(0, 6)) if size_bytes else 0):
            offset = draw(st.integers(0, size_bytes - 1))
            length = min(draw(st.sampled_from([1, 8, 512, 4096, 5000, 70_000])), size_bytes - offset)
            data = draw(st.sampled_from([bytes(content[offset : offset + length]), b"\x01" * length, bytes(length)]))
            content[offset : offset + length] = data
            writes.append((offset, data))
        looks.append(writes)
    return initial, looks


def store_by_slice(buffer: Any, offset: int, data: bytes) -> None:
    buffer[offset : offset + len(data)] = data


def store_by_view(buffer: Any, offset: int, data: bytes) -> None:
    with memoryview(buffer) as whole, whole[offset : offset + len(data)] as part:
        part[:] = data


def store_by_struct(buffer: Any, offset: int, data: bytes) -> None:
    struct.pack_into(f"{len(data)}s", buffer, offset, data)


def store_by_byte(buffer: Any, offset: int, data: bytes) -> None:
    for index, value in enumerate(data):
        buffer[offset + index] = value


STORES: list[Callable[[Any, int, bytes], None]] = [store_by_slice, store_by_view, store_by_struct]


@given(history=histories(), store=st.sampled_from(STORES))
def test_all_trackers_name_the_pages_that_differ(
    history: tuple[bytes, list[list[Write]]], store: Callable[[Any, int, bytes], None]
) -> None:
    initial, looks = history
    trackers: list[DirtyTracker] = [CompareTracker(), AutoTracker(write_protect_bytes_min=4097)]
    if UNAVAILABLE is None:
        trackers += [WriteProtectTracker(), WriteProtectTracker(regions_max=1)]
    watched = [tracker.watch(initial) for tracker in trackers]
    assert all(bytes(each.buffer) == initial and len(each.buffer) == len(initial) for each in watched)
    content = bytearray(initial)
    for writes in looks:
        before = bytes(content)
        for offset, data in writes:
            content[offset : offset + len(data)] = data
            for each in watched:
                store(each.buffer, offset, data)
        expected = pages_that_differ(before, bytes(content))
        assert [each.changed() for each in watched] == [expected] * len(watched)
        assert all(bytes(each.buffer) == content for each in watched)
        event("silent rewrite" if writes and not expected else f"pages: {min(len(expected), 3)}")
    for tracker in trackers:
        tracker.close()
        assert tracker.leaked_exports == 0


@pytest.mark.parametrize("size_bytes", SIZES_BYTES)
def test_an_untouched_buffer_has_no_changed_pages(tracker: DirtyTracker, size_bytes: int) -> None:
    watched = tracker.watch(random.Random(1).randbytes(size_bytes))
    assert watched.changed() == []
    assert watched.changed() == []


@pytest.mark.parametrize("store", [*STORES, store_by_byte], ids=lambda store: store.__name__)
def test_each_way_of_writing_is_seen_once(tracker: DirtyTracker, store: Callable[[Any, int, bytes], None]) -> None:
    watched = tracker.watch(bytes(10 * PAGE_BYTES))
    store(watched.buffer, 3 * PAGE_BYTES - 2, b"word")
    assert watched.changed() == [2, 3]
    assert watched.changed() == []


def test_a_view_kept_across_looks_stays_under_watch(tracker: DirtyTracker) -> None:
    watched = tracker.watch(bytes(4 * PAGE_BYTES))
    with memoryview(watched.buffer) as view:
        for value in (1, 2, 3):
            view[2 * PAGE_BYTES] = value
            assert watched.changed() == [2]


def test_a_write_into_the_buffer_by_the_kernel_is_seen(tracker: DirtyTracker, tmp_path: Path) -> None:
    path = tmp_path / "source"
    path.write_bytes(b"x" * PAGE_BYTES)
    watched = tracker.watch(bytes(8 * PAGE_BYTES))
    with open(path, "rb") as file, memoryview(watched.buffer) as view, view[5 * PAGE_BYTES : 6 * PAGE_BYTES] as part:
        file.readinto(part)
    assert watched.changed() == [5]


def test_an_equal_rewrite_is_silent_and_a_change_taken_back_too(tracker: DirtyTracker) -> None:
    watched = tracker.watch(b"a" * (3 * PAGE_BYTES))
    watched.buffer[0:PAGE_BYTES] = b"a" * PAGE_BYTES
    watched.buffer[PAGE_BYTES] = 1
    watched.buffer[PAGE_BYTES] = ord("a")
    assert watched.changed() == []
    watched.buffer[0] = 1
    assert watched.changed() == [0]
    watched.buffer[0] = ord("a")
    assert watched.changed() == [0]


def test_a_page_never_touched_before_is_seen_after_a_read_and_a_write(tracker: DirtyTracker) -> None:
    watched = tracker.watch(bytes(1 << 20))
    assert watched.buffer[100 * PAGE_BYTES] == 0
    assert watched.changed() == []
    watched.buffer[100 * PAGE_BYTES] = 1
    watched.buffer[200 * PAGE_BYTES] = 1
    assert watched.changed() == [100, 200]


def test_many_separate_runs_of_pages_are_all_found(tracker: DirtyTracker) -> None:
    watched = tracker.watch(bytes(3000 * PAGE_BYTES))
    for value in (1, 2):
        for page in range(0, 3000, 2):  # more runs than one scan answers
            watched.buffer[page * PAGE_BYTES] = value
        assert watched.changed() == list(range(0, 3000, 2))
    watched.buffer[: len(watched.buffer)] = b"\xff" * len(watched.buffer)
    assert watched.changed() == list(range(3000))
    assert watched.changed() == []


def test_buffers_of_one_tracker_do_not_mix(tracker: DirtyTracker) -> None:
    first, second, third = (tracker.watch(bytes(4 * PAGE_BYTES)) for _ in range(3))
    first.buffer[0] = 1
    third.buffer[3 * PAGE_BYTES] = 1
    assert second.changed() == []
    second.close()
    assert (first.changed(), third.changed()) == ([0], [3])


@pytest.mark.parametrize("size_bytes", [0, 5, PAGE_BYTES, 100_000])
def test_a_watched_buffer_keeps_its_size(tracker: DirtyTracker, size_bytes: int) -> None:
    watched = tracker.watch(bytes(size_bytes))
    with pytest.raises((BufferError, IndexError)):
        watched.buffer[0:size_bytes] = bytes(size_bytes + 1)
    assert len(watched.buffer) == size_bytes


def test_the_initial_content_is_copied(tracker: DirtyTracker) -> None:
    content = bytearray(b"z" * 5000)
    watched = tracker.watch(content)
    content[:] = b"y" * 5000
    assert watched.changed() == []
    assert bytes(watched.buffer) == b"z" * 5000


def test_closing_twice_is_closing_once(tracker: DirtyTracker) -> None:
    watched = tracker.watch(bytes(5000))
    watched.close()
    watched.close()
    tracker.close()
    tracker.close()
    assert (watched.leaked_exports, tracker.leaked_exports) == (0, 0)
    with pytest.raises(ValueError, match="closed"):
        watched.changed()
    for size_bytes in (0, 1 << 20):
        with pytest.raises(ValueError, match="closed"):
            tracker.watch(bytes(size_bytes))


def test_closing_the_tracker_closes_its_buffers(tracker: DirtyTracker) -> None:
    watched = [tracker.watch(bytes(size_bytes)) for size_bytes in (0, 5000)]
    tracker.close()
    for each in watched:
        with pytest.raises(ValueError, match="closed"):
            each.changed()


def test_closing_under_a_view_counts_it_and_leaves_the_view_alone(tracker: DirtyTracker) -> None:
    watched, other = tracker.watch(b"a" * 5000), tracker.watch(bytes(5000))
    view = memoryview(watched.buffer)
    watched.close()
    watched.close()
    other.close()
    assert (watched.leaked_exports, other.leaked_exports, tracker.leaked_exports) == (1, 0, 1)
    view[4999] = 1
    assert view[4998:].tolist() == [ord("a"), 1]
    tracker.close()
    assert tracker.leaked_exports == 1
    view.release()


@pytest.mark.slow
def test_a_view_left_at_close_does_not_keep_its_mapping_for_ever(tracker: DirtyTracker) -> None:
    before = mapping_count()
    for _ in range(20):
        watched = tracker.watch(bytes(1 << 20))
        view = memoryview(watched.buffer)
        watched.close()
        del view
    assert mapping_count() <= before + 5
    assert tracker.leaked_exports == 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["auto", *KINDS])
def test_many_trackers_leak_nothing(kind: Any) -> None:
    choose_tracker(kind).close()
    descriptors, mappings = descriptor_count(), mapping_count()
    for _ in range(200):
        tracker = choose_tracker(kind)
        watched = [tracker.watch(bytes(size_bytes)) for size_bytes in (0, 100, 1 << 20)]
        watched[0].close()
        tracker.close()
    for _ in range(20):
        choose_tracker(kind).watch(bytes(1 << 20))  # forgotten, never closed
    assert descriptor_count() == descriptors
    assert mapping_count() <= mappings + 5


def in_child(body: Callable[[], bool]) -> bool:
    """Run `body` in a forked child; return its result, False after an exception."""
    pid = os.fork()
    if pid == 0:
        passed = False
        try:
            passed = body()
        finally:
            os._exit(0 if passed else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_forked_child_may_not_use_the_registration_of_its_parent(protecting: WriteProtectTracker) -> None:
    watched = protecting.watch(bytes(4 * PAGE_BYTES))
    empty = protecting.watch(b"")
    watched.buffer[0] = 1

    def child() -> bool:
        watched.buffer[2 * PAGE_BYTES] = 1  # into the child's own copy
        for use in (watched.changed, empty.changed, lambda: protecting.watch(bytes(1))):
            with pytest.raises(TrackerForked, match=f"belongs to process {os.getppid()}"):
                use()
        view = memoryview(watched.buffer)
        protecting.close()  # closes the child's copies only, although a view is left
        with WriteProtectTracker() as own:
            again = own.watch(bytes(view))
            again.buffer[PAGE_BYTES] = 1
            return again.changed() == [1]

    assert in_child(child)
    assert watched.changed() == [0]
    watched.buffer[3 * PAGE_BYTES] = 1
    assert watched.changed() == [3]


def test_a_forked_child_may_compare() -> None:
    watched = CompareTracker().watch(bytes(4 * PAGE_BYTES))

    def child() -> bool:
        watched.buffer[PAGE_BYTES] = 1
        return watched.changed() == [1]

    assert in_child(child)
    assert watched.changed() == []


def test_a_parent_sees_its_writes_while_a_child_lives(protecting: WriteProtectTracker) -> None:
    watched = protecting.watch(b"a" * (4 * PAGE_BYTES))
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)  # returns when the parent closes its end
        os._exit(0)
    watched.buffer[2 * PAGE_BYTES] = 1
    found = [watched.changed(), watched.changed()]
    os.close(reading)
    os.close(writing)
    os.waitpid(pid, 0)
    assert found == [[2], []]


def test_pages_given_back_to_the_kernel_are_seen(protecting: WriteProtectTracker) -> None:
    watched = protecting.watch(b"a" * (600 * PAGE_BYTES))
    assert isinstance(watched.buffer, mmap.mmap)
    watched.buffer.madvise(mmap.MADV_DONTNEED, 5 * PAGE_BYTES, 520 * PAGE_BYTES)
    assert watched.changed() == list(range(5, 525))
    watched.buffer[6 * PAGE_BYTES] = 1
    assert watched.changed() == [6]


def test_the_kernel_reports_no_more_than_was_written(protecting: WriteProtectTracker) -> None:
    """Without this the answers stay right, because pages are compared again.

    A look at a large file would cost too much.
    """
    watched = protecting.watch(b"a" * PAGE_BYTES + bytes(1 << 20))
    assert isinstance(watched, write_protect._Protected)
    assert watched._written() == []
    watched.buffer[0] = ord("a")
    watched.buffer[3 * PAGE_BYTES] = 1
    assert watched._written() == [0, 3]
    assert watched._written() == []


def test_a_mapping_kept_alive_by_a_view_is_no_longer_protected(protecting: WriteProtectTracker) -> None:
    def protected_mapping_count() -> int:
        flags = [line for line in Path("/proc/self/smaps").read_text().splitlines() if line.startswith("VmFlags:")]
        return sum("uw" in line.split() for line in flags)

    before = protected_mapping_count()
    watched = protecting.watch(bytes(1 << 20))
    view = memoryview(watched.buffer)
    assert protected_mapping_count() == before + 1
    watched.close()
    assert protected_mapping_count() == before
    view.release()


def test_writes_of_other_threads_are_not_lost(tracker: DirtyTracker) -> None:
    watched, found, stop = tracker.watch(bytes(64 * PAGE_BYTES)), set[int](), threading.Event()

    def write() -> None:
        for page in range(64):
            watched.buffer[page * PAGE_BYTES] = 1
        stop.set()

    thread = threading.Thread(target=write)
    thread.start()
    while not stop.is_set():
        found.update(watched.changed())
    thread.join()
    found.update(watched.changed())
    assert found == set(range(64))


@needs_write_protect
def test_auto_chooses_by_size() -> None:
    with AutoTracker(write_protect_bytes_min=100) as tracker:
        assert isinstance(tracker.watch(bytes(99)).buffer, bytearray)
        assert isinstance(tracker.watch(bytes(100)).buffer, mmap.mmap)
        assert tracker.fallback_reason is None


def test_auto_compares_where_the_kernel_cannot_help() -> None:
    with AutoTracker(write_protect_bytes_min=100, machine="s390x") as tracker:
        watched = tracker.watch(bytes(5000))
        watched.buffer[4999] = 1
        assert watched.changed() == [1]
        assert "s390x" in (tracker.fallback_reason or "")


def test_an_unknown_machine_is_a_reason() -> None:
    assert "riscv64" in (write_protect_available(machine="riscv64") or "")
    with pytest.raises(TrackerUnavailable, match="riscv64") as caught:
        WriteProtectTracker(machine="riscv64")
    assert caught.value.reason.endswith(".")


@pytest.mark.parametrize(
    ("step", "code", "said"),
    [
        ("userfaultfd", errno.EPERM, "not permit"),
        ("pagemap", errno.EACCES, "not permit"),
        ("userfaultfd", errno.ENOSYS, "without userfaultfd"),
        ("userfaultfd", errno.EINVAL, "too old"),
        ("features", errno.EINVAL, "too old"),
        ("scan", errno.ENOTTY, "too old"),
        ("protect", errno.ENOMEM, "failed"),
    ],
)
def test_a_refusal_is_explained_in_one_sentence(step: Any, code: int, said: str) -> None:
    reason = write_protect._explain(step, OSError(code, os.strerror(code)))
    assert said in reason
    assert reason.endswith(".")
    assert os.strerror(code) in reason


def test_no_descriptors_left_is_a_reason_and_leaks_nothing() -> None:
    """The first descriptor is closed too when the second one cannot be opened."""
    if UNAVAILABLE is not None:
        pytest.skip(UNAVAILABLE)
    program = """
import os, resource
from tornpage.properties.disk.dirty import WriteProtectTracker, TrackerUnavailable
WriteProtectTracker().close()
before = len(os.listdir("/proc/self/fd"))
first_free = os.open("/dev/null", os.O_RDONLY)
os.close(first_free)
for room in (0, 1):
    resource.setrlimit(resource.RLIMIT_NOFILE, (first_free + room, 4096))
    try:
        WriteProtectTracker()
    except TrackerUnavailable as error:
        print(error.reason)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096))
assert len(os.listdir("/proc/self/fd")) == before
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert "userfaultfd: Too many open files" in run.stdout
    assert "pagemap: Too many open files" in run.stdout


def test_choose_tracker_makes_each_kind() -> None:
    kinds = get_args(get_type_hints(choose_tracker)["kind"])
    for kind in kinds:
        if kind == "write-protect" and UNAVAILABLE is not None:
            continue
        tracker = choose_tracker(kind)
        assert tracker.name == kind
        tracker.close()
    unknown: Any = "guess"
    with pytest.raises(ValueError, match="guess"):
        choose_tracker(unknown)


def test_the_module_loads_without_numpy_and_test_libraries() -> None:
    program = "import sys, properties.disk.dirty; print({'numpy', 'hypothesis', 'pytest'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "set()"


def test_public_names_are_sorted_and_exist() -> None:
    assert sorted(dirty.__all__) == [
        "AUTO_WRITE_PROTECT_BYTES_MIN",
        "AutoTracker",
        "CompareTracker",
        "DirtyTracker",
        "PAGE_BYTES",
        "Tracked",
        "TrackerForked",
        "TrackerUnavailable",
        "WriteProtectTracker",
        "choose_tracker",
        "write_protect_available",
    ]
    assert all(hasattr(dirty, name) for name in dirty.__all__)


def _conforms(tracker: DirtyTracker) -> Tracked:
    """Never called: the type checker compares every implementation with the protocols."""
    trackers: list[DirtyTracker] = [CompareTracker(), WriteProtectTracker(), AutoTracker()]
    return trackers[0].watch(b"")
