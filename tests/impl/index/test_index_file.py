"""Test one index file: bytes, order of writing, times, chains and reserved blocks."""

import errno
import os
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.impl.index_support import EVER, TIME, puts_of
from tests.support.impl.stores import FaultyFiles
from tornpage.impl.index.index_entries import TIME_DIFFERENCE_MAX, time_difference
from tornpage.impl.index.index_file import IndexFile
from tornpage.impl.index.index_layout import IndexHeader, IndexLayout, may_lie
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.dispatching import IndexPuts

NEW = IndexHeader()
Make = Callable[..., IndexFile]


@pytest.fixture
def files() -> FaultyFiles:
    """Return a disk that fails on request."""
    return FaultyFiles()


@pytest.fixture
def make(tmp_path: Path, files: FaultyFiles) -> Iterator[Make]:
    """Return a maker of new files with 4 slots and 5 entries by default."""
    made: list[IndexFile] = []

    def make(inherited: IndexHeader = NEW, *, slots: int = 4, entries_max: int = 6) -> IndexFile:
        layout = IndexLayout(slots, entries_max)
        file = files.create(str(tmp_path / f"{len(made):017d}"))
        files.pwrite(file, b"\0", layout.file_bytes - 1)
        made.append(IndexFile(files, file, layout=layout))
        made[-1].begin(inherited)
        return made[-1]

    yield make
    for index_file in made:
        index_file.close()


def offsets(index_file: IndexFile, code: int, begin_ms: int = EVER[0], end_ms: int = EVER[1]) -> list[int]:
    return list(index_file.offsets_of(code, begin_ms, end_ms))


def entry(*fields: int) -> bytes:
    return struct.pack(">iqii", *fields)


def test_new_file_is_zeros(make: Make) -> None:
    index_file = make()
    index_file.check()
    assert bytes(index_file.mapped.view) == bytes(40 + 16 + 120)
    assert not index_file.is_full
    assert offsets(index_file, 0) == []


def test_later_file_begins_where_the_one_before_ended(make: Make) -> None:
    index_file = make(IndexHeader(5, 7, 100, 200, 3, 6).inherited())
    assert bytes(index_file.mapped.view[:40]) == struct.pack(">qqqqii", 7, 7, 200, 200, 0, 0)


def test_bytes_of_entries_slots_and_header(make: Make) -> None:
    index_file = make()
    assert index_file.put(puts_of((5, 0, TIME), (9, 0, TIME), (6, 300, TIME + 1999), (1, 500, TIME + 2000)), 0) == 4
    index_file.check()
    assert bytes(index_file.mapped.view) == b"".join(
        (
            struct.pack(">qqqqii", TIME, TIME + 2000, 0, 500, 2, 5),
            struct.pack(">4i", 0, 4, 3, 0),
            bytes(20),
            entry(5, 0, 0, 0),
            entry(9, 0, 0, 1),
            entry(6, 300, 1, 0),
            entry(1, 500, 2, 2),
            bytes(20),
        )
    )


def test_full_file_takes_what_fits(make: Make) -> None:
    index_file = make()
    puts = puts_of(*((number, number * 100, TIME) for number in range(7)))
    assert index_file.put(puts, 0) == 5
    assert index_file.is_full
    assert index_file.header == IndexHeader(TIME, TIME, 0, 400, 4, 6)
    assert make(index_file.header.inherited()).put(puts, 5) == 7


def test_entry_1_of_a_later_file_is_relative_to_the_inherited_begin(make: Make) -> None:
    index_file = make(IndexHeader(TIME, TIME, 10, 10))
    index_file.put(puts_of((1, 20, TIME + 5000), (2, 30, TIME + 5999), (3, 40, TIME + 6000)), 0)
    assert [index_file.entry(number)[2] for number in (1, 2, 3)] == [5, 0, 1]
    assert index_file.header == IndexHeader(TIME + 5000, TIME + 6000, 20, 40, 3, 4)


@pytest.mark.parametrize(
    ("store_timestamp", "begin_timestamp", "seconds"),
    [
        (TIME, 0, 0),
        (TIME, -1, 0),
        (TIME - 1, TIME, 0),
        (TIME - 5000, TIME, 0),
        (TIME + 999, TIME, 0),
        (TIME + 1000, TIME, 1),
        (TIME + 1000 * TIME_DIFFERENCE_MAX + 999, TIME, TIME_DIFFERENCE_MAX),
        (TIME + 1000 * TIME_DIFFERENCE_MAX + 1000, TIME, TIME_DIFFERENCE_MAX),
    ],
)
def test_time_difference(store_timestamp: int, begin_timestamp: int, seconds: int) -> None:
    assert time_difference(store_timestamp, begin_timestamp) == seconds


@given(
    inherited=st.sampled_from([-5, 0, 1, 900, 10_000]),
    times=st.lists(st.integers(-2000, 10_000) | st.integers(2**41, 2**41 + 5000), min_size=1, max_size=5),
    begin_ms=st.integers(-2500, 12_000),
    length_ms=st.integers(0, 3000),
)
def test_no_entry_of_the_window_is_left_out(inherited: int, times: list[int], begin_ms: int, length_ms: int) -> None:
    """A query omits an entry only if its record is outside, for any sequence of times."""
    header = IndexHeader(begin_timestamp=times[0])
    for number, time in enumerate(times, 1):
        difference = time_difference(time, inherited if number == 1 else times[0])
        if begin_ms <= time <= begin_ms + length_ms:
            assert may_lie(header, number, difference, begin_ms, begin_ms + length_ms)


def test_entries_outside_the_window_are_left_out(make: Make) -> None:
    index_file = make()
    index_file.put(puts_of(*((7, number * 10, TIME + number * 2000) for number in range(5))), 0)
    index_file.is_proven = True
    assert offsets(index_file, 7, TIME + 4000, TIME + 6000) == [30, 20]
    assert offsets(index_file, 7, TIME, TIME) == [0]
    assert offsets(index_file, 7, TIME + 8001, EVER[1]) == []  # the greatest time is stored exactly
    assert offsets(index_file, 7, 0, TIME - 1) == []


def test_store_times_that_go_back_hide_nothing(make: Make) -> None:
    index_file = make()
    index_file.put(puts_of((7, 0, TIME), (7, 10, TIME - 60_000), (7, 20, TIME + 60_000), (7, 30, TIME - 1)), 0)
    assert offsets(index_file, 7, TIME - 60_000, TIME - 60_000) == [30, 10]
    assert offsets(index_file, 7, TIME + 60_000, EVER[1]) == [20]


# ---- order of writes ---------------------------------------------------------------------------------------------


def test_entry_is_written_before_its_slot_and_the_header_last(make: Make, files: FaultyFiles) -> None:
    index_file = make()
    seen: list[tuple[str, int, int, int, int]] = []

    def look(label: str) -> None:
        view = index_file.mapped.view
        entry_offset, slot = struct.unpack_from(">q", view, 40 + 16 + 24)[0], view[40 + 4 + 3]
        seen.append((label, entry_offset, slot, view[39], index_file.header.next_number))

    files.on_mark = look
    index_file.put(puts_of((1, 77, TIME), (2, 88, TIME)), 0)
    assert seen == [
        ("entry", 77, 0, 0, 1),
        ("slot", 77, 1, 0, 1),
        ("entry", 77, 1, 0, 1),
        ("slot", 77, 1, 0, 1),
        ("header", 77, 1, 3, 1),
    ]
    assert index_file.header.next_number == 3


def test_readers_meet_whole_chains_while_puts_go_on(make: Make) -> None:
    """A query finds every put that was finished before it, in order, and nothing else."""
    index_file = make(slots=2, entries_max=20_001)
    done, errors, looks = 0, [], 0
    stop = threading.Event()

    def look() -> None:
        nonlocal looks
        while not stop.is_set():
            least = done
            found = offsets(index_file, 4)
            looks += 1
            if found != list(range(len(found) * 10 - 10, -1, -10)) or len(found) < least:
                errors.append((least, found[:3], len(found)))
                return

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(400):
        index_file.put(puts_of((4, number * 10, TIME), (6, number * 10, TIME), (5, number * 10, TIME)), 0)
        done = number + 1
    stop.set()
    for reader in readers:
        reader.join()
    assert errors == []
    assert looks
    assert len(offsets(index_file, 4)) == 400


# ---- damage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("previous", [3, 4, 5, 1000, -1, 2**31 - 1])
def test_chain_that_does_not_lead_down_ends(make: Make, previous: int) -> None:
    index_file = make()
    index_file.put(puts_of(*((7, number * 10, TIME) for number in range(5))), 0)
    struct.pack_into(">i", index_file.mapped.view, index_file.layout.position_of(3) + 16, previous)
    assert offsets(index_file, 7) == [40, 30, 20]


@pytest.mark.parametrize("head", [-1, 6, 2**31 - 1, -(2**31)])
def test_slot_that_leads_nowhere_is_empty(make: Make, head: int) -> None:
    index_file = make()
    index_file.put(puts_of((7, 10, TIME)), 0)
    struct.pack_into(">i", index_file.mapped.view, 40 + 3 * 4, head)
    assert offsets(index_file, 7) == []


# ---- blocks ------------------------------------------------------------------------------------------------------


def test_default_file_takes_only_the_blocks_it_needs(tmp_path: Path) -> None:
    files = OsFiles()
    layout = IndexLayout(5_000_000, 20_000_000)
    assert layout.file_bytes == 420_000_040
    path = tmp_path / "20231114221320001"
    file = files.create(str(path))
    files.pwrite(file, b"\0", layout.file_bytes - 1)
    index_file = IndexFile(files, file, layout=layout)
    index_file.begin(IndexHeader())
    index_file.put(puts_of((2**31 - 1, 10, TIME)), 0)
    assert offsets(index_file, 2**31 - 1) == [10]
    index_file.flush(0)
    index_file.close()
    assert path.stat().st_size == layout.file_bytes
    assert 20_000_040 <= path.stat().st_blocks * 512 < 30_000_000


def test_full_disk_refuses_a_put_before_it_changes_anything(make: Make, files: FaultyFiles) -> None:
    index_file = make(slots=4, entries_max=500_000)
    one = puts_of((1, 10, TIME))
    many = IndexPuts([1] * 300_000, list(range(300_000)), [TIME] * 300_000)
    index_file.put(one, 0)
    before = bytes(index_file.mapped.view)
    files.fail("allocate", code=errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        index_file.put(many, 0)
    index_file.check()
    assert bytes(index_file.mapped.view) == before
    assert index_file.put(one, 0) == 1  # the file has blocks for a few more entries
    files.mend()
    assert index_file.put(many, 0) == 300_000
    assert [call for call in files.calls if call[0] == "allocate"][1:] == [("allocate", index_file.path)] * 2


def test_file_that_somebody_else_made_gets_its_blocks_before_it_is_written(tmp_path: Path, files: FaultyFiles) -> None:
    """The files of RocketMQ are sparse."""
    layout = IndexLayout(4, 6)
    path = tmp_path / "20231114221320001"
    path.touch()
    os.truncate(path, layout.file_bytes)
    index_file = IndexFile(files, files.open(str(path), writable=True), layout=layout)
    assert ("allocate", str(path)) not in files.calls
    index_file.put(puts_of((1, 10, TIME)), 0)
    assert ("allocate", str(path)) in files.calls
    index_file.close()


# ---- flush and close ---------------------------------------------------------------------------------------------


def test_flush_goes_by_pages_or_takes_everything(make: Make, files: FaultyFiles) -> None:
    index_file = make(entries_max=1000)
    index_file.flush(0)
    index_file.put(puts_of((1, 10, TIME)), 0)
    assert index_file.waiting == 1
    assert not index_file.flush(1)
    assert index_file.flush(0)
    assert index_file.waiting == 0
    assert not index_file.flush(0)
    index_file.put(IndexPuts([1] * 500, list(range(500)), [TIME] * 500), 0)
    assert index_file.flush(2)
    index_file.put(IndexPuts([1] * 498, list(range(498)), [TIME] * 498), 0)
    assert index_file.is_full
    assert index_file.flush(1000)
    assert index_file.waiting == 0


def test_long_chain_is_walked_while_its_offsets_are_taken(make: Make) -> None:
    count = 200
    index_file = make(entries_max=count + 2)
    index_file.put(IndexPuts([7] * count, list(range(count)), [TIME] * count), 0)
    assert offsets(index_file, 7) == list(reversed(range(count)))
    found = iter(index_file.offsets_of(7, *EVER))
    index_file.put(puts_of((7, count, TIME)), 0)
    assert next(found) == count - 1
    index_file.close()
    first = list(found)
    assert first == list(reversed(range(count - 1 - len(first), count - 1)))
    assert 0 < len(first) < count - 1, "the rest of a closed file was read"
    assert offsets(index_file, 7) == []
