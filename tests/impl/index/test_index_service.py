"""Test the sequence of index files: bytes of RocketMQ, names, roll-over and flushes.

A put may repeat, and a query returns all candidates.
"""

import errno
import os
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.impl.golden import CASES, first_dump, golden, read
from tests.support.impl.index_support import (
    EVER,
    TIME,
    Put,
    contents,
    entries_of,
    filled,
    header_of,
    proven,
    puts_of,
    service_of,
)
from tests.support.impl.stores import FaultyFiles, SetClock
from tornpage.impl.dispatch.dispatch_records import dispatch_records
from tornpage.impl.index.index_layout import is_index_name, name_after
from tornpage.impl.index.index_service import IndexService
from tornpage.impl.message.delay_levels import DelayLevels
from tornpage.impl.message.dispatching import DispatchRules

INTACT = CASES[:8]
ROW = [(number % 7, number * 10, TIME + number * 700) for number in range(17)]


def found(service: IndexService, code: int, begin_ms: int = EVER[0], end_ms: int = EVER[1]) -> list[int]:
    return list(service.candidates(code, begin_ms, end_ms))


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory / "index"))


# ---- RocketMQ's bytes --------------------------------------------------------------------------------------------


def limits_of(folder: Path) -> tuple[int, int]:
    given = read(folder / "config.json")["store"]
    return given["maxHashSlotNum"], given["maxIndexNum"]


def stored(folder: Path) -> list[bytes]:
    """Return the files of a golden index, oldest first.

    A last file without entries is left out.
    """
    data = contents(folder / "store")
    return data if header_of(data[-1])[5] > 1 else data[:-1]


def times_of(folder: Path) -> dict[int, int]:
    """Return the store time of every record by offset, including expired and delivered ones."""
    log = first_dump(read(folder / "expected.json")["steps"])["log"]
    times = {row["phy"]: row["storeTimestamp"] for row in log if row["kind"] == "record"}
    return times | {row["commitLogOffset"]: row["storeTimestamp"] for row in read(folder / "truth.json")["records"]}


@pytest.mark.parametrize("case", CASES)
def test_entries_of_rocketmq_put_again_give_its_bytes(tmp_path: Path, case: str) -> None:
    folder = golden(case)
    slots, entries_max = limits_of(folder)
    times = times_of(folder)
    expected = stored(folder)
    puts = [(row[0], row[1], times[row[1]]) for data in expected for row in entries_of(data, slots=slots)]
    clock = SetClock(ticking=True)
    service = proven(service_of(tmp_path, slots=slots, entries_max=entries_max, clock=clock))
    for index, offset in enumerate(put[1] for put in puts):
        if index == 0 or offset != puts[index - 1][1]:  # one record at a time
            service.put(puts_of(*(put for put in puts[index : index + 50] if put[1] == offset)))
    service.check()
    service.close()
    assert contents(tmp_path) == expected


@pytest.mark.parametrize("case", [case for case in INTACT if case != "03-rollover-blanks-retention"])
def test_golden_log_dispatched_gives_the_bytes_of_rocketmq(tmp_path: Path, case: str) -> None:
    """Topics, keys and hashes are those that RocketMQ reads.

    Records that a killed store had not dispatched follow.
    """
    folder = golden(case)
    slots, entries_max = limits_of(folder)
    rules = DispatchRules(
        index=True, delay_levels=DelayLevels.parse("1s"), multi_dispatch=None, ext=False, bit_map_of=None
    )
    service = proven(service_of(tmp_path, slots=slots, entries_max=entries_max, clock=SetClock(ticking=True)))
    for path in sorted((folder / "store" / "commitlog").iterdir()):
        view = memoryview(path.read_bytes())
        service.put(dispatch_records(view, 0, len(view), rules).index)
    service.close()
    assert contents(tmp_path) == stored(folder)


@pytest.mark.parametrize("case", INTACT)
def test_golden_index_stays_as_it_is(tmp_path: Path, case: str) -> None:
    folder = golden(case)
    slots, entries_max = limits_of(folder)
    times, expected = times_of(folder), contents(folder / "store")
    (tmp_path / "index").mkdir()
    for path in (folder / "store" / "index").iterdir():
        (tmp_path / "index" / path.name).write_bytes(path.read_bytes())
    log_min = int(min(path.name for path in (folder / "store" / "commitlog").iterdir()))
    rows = [(row[0], row[1], times[row[1]]) for data in stored(folder) for row in entries_of(data, slots=slots)]
    puts = [row for row in rows if row[1] >= log_min]
    service = proven(service_of(tmp_path, slots=slots, entries_max=entries_max), *puts, from_offset=log_min)
    assert service.findings == []
    assert service.last_update == (rows[-1][2], rows[-1][1])
    for code, offset, time in puts:
        assert offset in found(service, code, time, time)
    service.close()
    assert contents(tmp_path) == expected


# ---- files -------------------------------------------------------------------------------------------------------


def test_index_is_made_with_the_first_put(tmp_path: Path) -> None:
    service = proven(service_of(tmp_path))
    service.put(puts_of())
    assert not (tmp_path / "index").exists()
    assert list(service.last_update) == [None, None]
    assert found(service, 1) == []
    service.put(puts_of((1, 10, TIME)))
    assert names(tmp_path) == ["20231114221320001"]
    assert list(service.last_update) == [TIME, 10]
    service.close()


def test_full_file_is_followed_by_another(tmp_path: Path) -> None:
    service = proven(service_of(tmp_path))
    for put in ROW:
        service.put(puts_of(put))
        service.check()
    assert [index_file.header.next_number for index_file in service.index_files] == [6, 6, 6, 3]
    assert service.last_offset == 160
    for code in range(7):
        assert found(service, code) == [put[1] for put in reversed(ROW) if put[0] == code]
    service.close()
    by_one = contents(tmp_path)
    (tmp_path / "batch").mkdir()
    filled(tmp_path / "batch", *ROW)
    assert contents(tmp_path / "batch") == by_one
    assert found(service, 1) == []


def test_names_ascend_whatever_the_clock_says(tmp_path: Path) -> None:
    clock = SetClock()
    service = proven(service_of(tmp_path, entries_max=2, clock=clock))
    service.put(puts_of(*ROW[:2]))
    clock.now_ms -= 3_600_000
    service.put(puts_of(ROW[2]))
    clock.now_ms += 7_200_000
    service.put(puts_of(ROW[3]))
    service.close()
    assert names(tmp_path) == ["20231114221320001", "20231114221320002", "20231114221320003", "20231114231320001"]


def test_name_follows_one_from_the_future(tmp_path: Path) -> None:
    filled(tmp_path, *ROW[:5])
    os.rename(tmp_path / "index" / names(tmp_path)[0], tmp_path / "index" / "20991231235959999")
    service = proven(service_of(tmp_path), *ROW[:5])
    service.put(puts_of(ROW[5]))
    service.close()
    assert names(tmp_path) == ["20991231235959999", "21000101000000000"]


@pytest.mark.parametrize(
    "name",
    [
        "2023111422132000",
        "202311142213200011",
        "20231314221320001",
        "99990101000000000",
        "2023111422132000a",
    ],
)
def test_name_that_is_no_moment(name: str) -> None:
    assert not is_index_name(name)


@given(now_ms=st.integers(0, 2**42), later_ms=st.integers(-(2**41), 2**41))
def test_next_name_is_greater(now_ms: int, later_ms: int) -> None:
    first = name_after("", now_ms)
    assert is_index_name(first)
    assert first < name_after(first, max(0, now_ms + later_ms))


def test_strange_things_are_left_alone(tmp_path: Path) -> None:
    filled(tmp_path, *ROW[:3])
    before = contents(tmp_path)
    (tmp_path / "index" / "notes.txt").write_text("mine")
    (tmp_path / "index" / "20231114221320009").mkdir()
    service = proven(service_of(tmp_path), *ROW[:3])
    assert [(finding.severity, finding.code) for finding in service.findings] == [("note", "stray_file")] * 2
    service.close()
    assert names(tmp_path) == ["20231114221320001", "20231114221320009", "notes.txt"]
    assert (tmp_path / "index" / "20231114221320001").read_bytes() == before[0]


# ---- a disk that refuses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["create", "pwrite", "allocate", "map", "make_directory"])
def test_refused_file_is_tried_again_and_nothing_is_doubled(tmp_path: Path, verb: str) -> None:
    files = FaultyFiles()
    service = proven(service_of(tmp_path, files=files, clock=SetClock(ticking=True)))
    if verb != "make_directory":
        service.put(puts_of(*ROW[:3]))
    files.fail(verb, code=errno.ENOSPC)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            service.put(puts_of(*ROW[:9]))
        service.check()
    files.mend()
    service.put(puts_of(*ROW[:9]))
    service.put(puts_of(*ROW[9:]))
    service.check()
    service.close()
    (tmp_path / "other").mkdir()
    filled(tmp_path / "other", *ROW)
    assert contents(tmp_path) == contents(tmp_path / "other")


@pytest.mark.parametrize("by_hand", [False, True], ids=["the store", "an operator"])
def test_next_file_replaces_what_is_left_of_a_refused_one(tmp_path: Path, by_hand: bool) -> None:
    files = FaultyFiles()
    service = proven(service_of(tmp_path, files=files, clock=SetClock(ticking=True)))
    service.put(puts_of(*ROW[:3]))
    files.fail("pwrite", code=errno.ENOSPC)
    files.fail("unlink")
    for _ in range(2):  # once the file cannot be made, once the remains of it cannot be removed
        with pytest.raises(OSError):  # noqa: PT011
            service.put(puts_of(*ROW[:9]))
    assert all(path.stat().st_size for path in (tmp_path / "index").iterdir())
    left = next((tmp_path / "index.unfinished").iterdir())
    if by_hand:
        left.unlink()
    files.mend()
    service.put(puts_of(*ROW[:9]))
    assert not left.exists()
    service.check()
    service.close()


@pytest.mark.parametrize("done", range(9))
def test_puts_that_come_again_are_recognised_in_the_middle_of_a_record(tmp_path: Path, done: int) -> None:
    """The keys of one record may end up in two files, with one key twice.

    RocketMQ indexes its last record again.
    """
    record = [(1, 30, TIME + 5), (2, 30, TIME + 5), (1, 30, TIME + 5), (1, 30, TIME + 5)]
    puts = [*ROW[:2], *ROW[2:3], *record, *[(3, 40, TIME + 9), (3, 50, TIME + 9)]]
    service = proven(service_of(tmp_path, entries_max=4))
    service.put(puts_of(*puts[:done]))
    service.put(puts_of(*puts))
    service.put(puts_of(*puts))
    service.put(puts_of((9, 60, TIME)))
    service.close()
    (tmp_path / "other").mkdir()
    filled(tmp_path / "other", *puts, (9, 60, TIME), entries_max=4)
    assert contents(tmp_path) == contents(tmp_path / "other")


def test_record_at_offset_0_is_put(tmp_path: Path) -> None:
    service = proven(service_of(tmp_path))
    for _ in range(2):
        service.put(puts_of((1, 0, TIME), (2, 0, TIME)))
    assert service.index_files[0].header.next_number == 3
    service.close()


# ---- candidates --------------------------------------------------------------------------------------------------


def test_offset_that_a_record_notes_twice_comes_once(tmp_path: Path) -> None:
    service = proven(service_of(tmp_path, slots=1))
    service.put(puts_of((1, 10, TIME), (1, 20, TIME), (2, 20, TIME), (1, 20, TIME), (2, 20, TIME), (1, 20, TIME)))
    assert found(service, 1) == [20, 10]
    service.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    puts=st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0, 1, 1, 2]), st.integers(-5000, 9000)), max_size=25),
    window=st.tuples(st.integers(-6000, 9000), st.integers(0, 4000)),
    start=st.sampled_from([0, 1, 3000, TIME]),
    reopened=st.booleans(),
)
def test_candidates_are_complete_for_every_window(
    tmp_path_factory: pytest.TempPathFactory,
    puts: list[tuple[int, int, int]],
    window: tuple[int, int],
    start: int,
    reopened: bool,
) -> None:
    """Times go back and forth, across file ends, before and after a reopening."""
    directory = tmp_path_factory.mktemp("candidates")
    offset, rows = 0, list[Put]()
    for code, step, time in puts:
        offset += step
        rows.append((code, offset, start + time))
    service = proven(service_of(directory, slots=2, entries_max=5))
    for row in rows:
        service.put(puts_of(row))
    if reopened:
        service.close()
        service = proven(service_of(directory, slots=2, entries_max=5), *merged(rows))
    begin_ms, end_ms = start + window[0], start + window[0] + window[1]
    for code in range(6):
        candidates = found(service, code, begin_ms, end_ms)
        assert candidates == sorted(set(candidates), reverse=True)
        assert {row[1] for row in merged(rows) if row[0] == code and begin_ms <= row[2] <= end_ms} <= set(candidates)
        assert set(candidates) <= {row[1] for row in rows if row[0] == code}
    service.close()


def merged(rows: list[Put]) -> list[Put]:
    """Return the content of an index after these single puts.

    A repeated last put is not doubled.
    """
    kept: list[Put] = []
    for row in rows:
        tail = [put for put in kept if put[1] == row[1]]
        if not tail or row[0] != tail[0][0]:
            kept.append(row)
    return kept


# ---- a store that may not write ----------------------------------------------------------------------------------


def test_read_only_index_shows_what_is_there_and_changes_nothing(tmp_path: Path) -> None:
    filled(tmp_path, *ROW)
    before = contents(tmp_path)
    path = tmp_path / "index" / names(tmp_path)[1]
    path.write_bytes(path.read_bytes()[:-1])
    files = FaultyFiles()
    service = service_of(tmp_path, files=files, writable=False)
    service.load()
    assert [(finding.severity, finding.code) for finding in service.findings] == [("note", "index_rebuilt")]
    assert found(service, 3) == [100, 30]
    assert found(service, 3, TIME - 5, TIME - 5) == [100, 30]  # no time is trusted
    service.flush()
    service.close()
    assert contents(tmp_path) == [before[0], before[1][:-1], *before[2:]]
    assert not [call for call in files.calls if call[0] in ("allocate", "pwrite", "create", "unlink", "sync_directory")]


def test_unproven_chain_is_followed_beyond_what_the_header_counts(tmp_path: Path) -> None:
    filled(tmp_path, *ROW[:5])
    path = tmp_path / "index" / names(tmp_path)[0]
    path.write_bytes(bytes(40) + path.read_bytes()[40:])
    service = service_of(tmp_path, writable=False)
    service.load()
    assert [found(service, put[0]) for put in ROW[:5]] == [[put[1]] for put in ROW[:5]]
    service.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.binary(min_size=176, max_size=176), code=st.integers(0, 2**31 - 1))
def test_random_bytes_never_make_a_reader_loop(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, code: int
) -> None:
    directory = tmp_path_factory.mktemp("random")
    (directory / "index").mkdir()
    (directory / "index" / "20231114221320001").write_bytes(data)
    service = service_of(directory, writable=False)
    service.load()
    assert len(found(service, code)) <= 5
    for number in range(5):
        (noted,) = struct.unpack_from(">i", data, 40 + 16 + 20 * (number + 1))
        assert len(found(service, noted % 2**31)) <= 5
    service.close()


# ---- flush -------------------------------------------------------------------------------------------------------


def barriers(files: FaultyFiles, directory: Path) -> list[str]:
    """Return the files synced since the last call, as paths below the store."""
    synced = [path for verb, path in files.calls if verb in ("sync", "sync_directory")]
    files.calls.clear()
    return [os.path.relpath(path, directory) for path in synced]


def test_flush_syncs_files_with_news_then_new_names(tmp_path: Path) -> None:
    files = FaultyFiles()
    service = proven(service_of(tmp_path, files=files))
    assert service.flush() == 0
    assert barriers(files, tmp_path) == []
    service.put(puts_of(*ROW[:8]))
    first, second = (f"index/{name}" for name in names(tmp_path))
    assert barriers(files, tmp_path) == ["index.unfinished/file.part"] * 2
    assert service.flush() == 0
    assert barriers(files, tmp_path) == [first, second, "index", "."]
    service.put(puts_of(ROW[8]))
    assert service.flush(1) == 1
    assert barriers(files, tmp_path) == []
    service.flush()
    assert barriers(files, tmp_path) == [second]
    service.close()


def test_reopened_index_is_flushed_once_as_a_killed_process_may_have_left_it(tmp_path: Path) -> None:
    filled(tmp_path, *ROW[:5])
    files = FaultyFiles()
    service = proven(service_of(tmp_path, files=files), *ROW[:5])
    service.flush()
    assert barriers(files, tmp_path) == [f"index/{names(tmp_path)[0]}", "index", "."]
    service.flush()
    assert barriers(files, tmp_path) == []
    service.close()


@pytest.mark.parametrize("part", ["index", ""])
def test_failed_sync_of_names_is_tried_again(tmp_path: Path, part: str) -> None:
    files = FaultyFiles()
    service = proven(service_of(tmp_path, files=files))
    service.put(puts_of(*ROW[:3]))
    files.fail("sync_directory", part=part, times=1)
    with pytest.raises(OSError, match="Input/output"):
        service.flush()
    barriers(files, tmp_path)
    service.flush()
    assert barriers(files, tmp_path) == ["index", "."]
    service.close()


def test_failed_sync_of_a_file_is_not_forgotten(tmp_path: Path) -> None:
    files = FaultyFiles()
    service = proven(service_of(tmp_path, files=files))
    service.put(puts_of(*ROW[:3]))
    files.fail("sync", times=1)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            service.flush()
    service.close()


def test_file_that_arrives_during_a_flush_is_named_by_the_next(tmp_path: Path) -> None:
    files = FaultyFiles()
    service = proven(service_of(tmp_path, files=files))
    service.put(puts_of(*ROW[:5]))

    def put_meanwhile(_: str) -> None:
        files.faults.clear()
        service.put(puts_of(*ROW[5:8]))

    files.faults["sync_directory"] = put_meanwhile
    assert service.flush() == 3
    barriers(files, tmp_path)
    assert service.flush() == 0
    assert barriers(files, tmp_path) == [f"index/{names(tmp_path)[1]}", "index", "."]
    service.close()
