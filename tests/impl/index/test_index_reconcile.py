"""Test the index against the log: correct parts stay, and all others are rebuilt."""

import errno
import os
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
from tornpage.impl.index.index_service import IndexService
from tornpage.impl.log.loading import Finding

ROW = [(number % 7 + 8 * (number % 2), number // 2 * 10, TIME + number // 2 * 700) for number in range(17)]
FILE_BYTES = 40 + 4 * 4 + 20 * 6


def reopened(directory: Path, *puts: Put, from_offset: int = 0, durable_timestamp: int = 0) -> list[Finding]:
    """Open, compare with the log and close; return the findings."""
    service = service_of(directory, clock=SetClock(TIME + 1_000_000))
    proven(service, *puts, from_offset=from_offset, durable_timestamp=durable_timestamp)
    assert_sound(service)
    service.close()
    assert [
        finding for finding in service.findings if (finding.severity, finding.code) != ("note", "index_rebuilt")
    ] == []
    return service.findings


def assert_sound(service: IndexService) -> None:
    """Compare slots and chains with the entries, and check that unused bytes are zero."""
    for index_file in service.index_files:
        data = bytes(index_file.mapped.view)
        heads, rows = [0, 0, 0, 0], entries_of(data, slots=4)
        for number, (code, _, difference, previous) in enumerate(rows, 1):
            assert (previous, difference >= 0) == (heads[code % 4], True)
            heads[code % 4] = number
        assert struct.unpack_from(">4i", data, 40) == tuple(heads)
        assert not any(data[56:76])
        assert not any(data[76 + 20 * len(rows) :])


def fresh(directory: Path, *puts: Put) -> list[bytes]:
    """Return the files of an undamaged index."""
    other = directory / "fresh"
    other.mkdir()
    filled(other, *puts)
    return contents(other)


def paths(directory: Path) -> list[Path]:
    return sorted((directory / "index").iterdir())


def overwrite(path: Path, position: int, data: bytes) -> None:
    old = path.read_bytes()
    path.write_bytes(old[:position] + data + old[position + len(data) :])


# ---- nothing wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(len(ROW) + 1))
def test_index_that_fits_stays_and_what_is_missing_is_put(tmp_path: Path, count: int) -> None:
    filled(tmp_path, *ROW[:count])
    before = {path: path.read_bytes() for path in (paths(tmp_path) if count else [])}
    assert reopened(tmp_path, *ROW[:count]) == []
    assert {path: path.read_bytes() for path in before} == before
    assert reopened(tmp_path, *ROW) == []
    assert contents(tmp_path) == fresh(tmp_path, *ROW)


def test_index_that_fits_is_not_written(tmp_path: Path) -> None:
    filled(tmp_path, *ROW)
    files = FaultyFiles()
    for verb in ("allocate", "pwrite", "create", "unlink"):
        files.fail(verb)
    service = proven(service_of(tmp_path, files=files), *ROW)
    assert service.findings == []
    service.close()


def test_index_of_nothing(tmp_path: Path) -> None:
    assert reopened(tmp_path) == []
    assert not (tmp_path / "index").exists()


def test_puts_in_batches_that_cross_files(tmp_path: Path) -> None:
    filled(tmp_path, *ROW[:12])
    service = service_of(tmp_path)
    service.load()
    service.begin_reconcile(0)
    service.reconcile(puts_of(*ROW[:8]))
    service.reconcile(puts_of())
    service.reconcile(puts_of(*ROW[8:]))
    assert not service.end_reconcile()
    service.close()
    assert contents(tmp_path) == fresh(tmp_path, *ROW)


def test_last_file_without_entries_stays_and_is_used(tmp_path: Path) -> None:
    """RocketMQ makes the next file for a record without keys too."""
    filled(tmp_path, *ROW[:6])
    last = paths(tmp_path)[1]
    header = header_of(paths(tmp_path)[0].read_bytes())
    last.write_bytes(struct.pack(">qqqqii", header[1], header[1], header[3], header[3], 0, 0).ljust(FILE_BYTES, b"\0"))
    before = contents(tmp_path)
    assert reopened(tmp_path, *ROW[:5]) == []
    assert contents(tmp_path) == before
    assert reopened(tmp_path, *ROW) == []
    assert contents(tmp_path) == fresh(tmp_path, *ROW)
    assert paths(tmp_path)[1] == last


def test_oldest_file_may_be_relative_to_one_that_is_gone(tmp_path: Path) -> None:
    filled(tmp_path, *ROW)
    paths(tmp_path)[0].unlink()
    overwrite(paths(tmp_path)[0], 76 + 12, struct.pack(">i", 3))
    before = contents(tmp_path)
    assert reopened(tmp_path, *ROW[5:], from_offset=ROW[5][1]) == []
    assert contents(tmp_path) == before


@pytest.mark.parametrize("offset", [0, 70])
def test_oldest_file_without_entries_keeps_what_it_inherited_unless_it_hides_puts(tmp_path: Path, offset: int) -> None:
    (tmp_path / "index").mkdir()
    path = tmp_path / "index" / "20231114221320001"
    path.write_bytes(struct.pack(">qqqqii", TIME, TIME, offset, offset, 0, 0).ljust(FILE_BYTES, b"\0"))
    before = contents(tmp_path)
    assert reopened(tmp_path, from_offset=50) == []
    assert contents(tmp_path) == (before if offset == 0 else [])
    assert reopened(tmp_path, (1, 50, TIME + 1000), from_offset=50) == []
    assert entries_of(contents(tmp_path)[0], slots=4) == [(1, 50, 1 if offset == 0 else 0, 0)]


# ---- ahead of the log --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(len(ROW)))
def test_entries_of_records_that_were_cut_are_erased(tmp_path: Path, count: int) -> None:
    filled(tmp_path, *ROW)
    findings = reopened(tmp_path, *ROW[:count])
    assert findings
    kept = contents(tmp_path)
    assert [row for data in kept for row in entries_of(data, slots=4)] == [
        row for data in fresh(tmp_path, *ROW[:count]) for row in entries_of(data, slots=4)
    ]
    assert reopened(tmp_path, *ROW) == []
    (tmp_path / "again").mkdir()
    assert contents(tmp_path) == fresh(tmp_path / "again", *ROW)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(kept=st.integers(0, 17), added=st.lists(st.integers(0, 20), max_size=12), from_offset=st.sampled_from([0, 30]))
def test_other_records_behind_a_cut(
    tmp_path_factory: pytest.TempPathFactory, kept: int, added: list[int], from_offset: int
) -> None:
    directory = tmp_path_factory.mktemp("cut")
    filled(directory, *ROW)
    first = ROW[:kept]
    start = first[-1][1] if first else 0
    puts = [*first, *((code, start + 5 + number, TIME + number) for number, code in enumerate(added))]
    reopened(directory, *(put for put in puts if put[1] >= from_offset), from_offset=from_offset)
    rows = [row for data in contents(directory) for row in entries_of(data, slots=4)]
    expected = [(put[0], put[1]) for put in puts if put[1] >= from_offset]
    assert [row[:2] for row in rows if row[1] >= from_offset] == expected
    assert [row[:2] for row in rows if row[1] < from_offset] == [put[:2] for put in ROW if put[1] < from_offset]
    if from_offset == 0:
        assert [data for data in contents(directory) if header_of(data)[5]] == fresh(directory, *puts)


# ---- damage ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("file", range(4))
@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_no_flipped_byte_survives(tmp_path: Path, file: int, flip: int) -> None:
    """The time of the very first entry is left out.

    It would be relative to a file before it, and there is none.
    """
    filled(tmp_path, *ROW)
    before = contents(tmp_path)
    path = paths(tmp_path)[file]
    for position in range(FILE_BYTES):
        if file == 0 and 76 + 12 <= position < 76 + 16:
            continue
        overwrite(path, position, bytes((before[file][position] ^ flip,)))
        damaged = path.read_bytes()
        findings = reopened(tmp_path, *ROW)
        assert contents(tmp_path) == before, position
        counted = header_of(before[file])[5]
        harmless = position >= 76 + 20 * (counted - 1) or 40 <= position < 56
        harmless |= header_of(damaged)[4] == counted - 1  # the count of RocketMQ up to 4.6.1
        assert findings or harmless, position
        path = paths(tmp_path)[file]


@pytest.mark.parametrize("file", range(4))
@pytest.mark.parametrize("damage", ["lost", "zeroed", "empty", "short", "long", "first_half", "second_half", "stale"])
def test_file_that_suffered_is_made_anew(tmp_path: Path, file: int, damage: str) -> None:
    filled(tmp_path, *ROW)
    before = contents(tmp_path)
    path, data = paths(tmp_path)[file], before[file]
    path.unlink()
    if damage != "lost":
        stale = struct.pack(">qqqqii", TIME, TIME, 10, 10, 1, 2) + data[40:96] + bytes(FILE_BYTES - 96)
        path.write_bytes(
            {
                "zeroed": bytes(FILE_BYTES),
                "empty": b"",
                "short": data[:-1],
                "long": data + b"\0",
                "first_half": data[:80].ljust(FILE_BYTES, b"\0"),
                "second_half": data[80:].rjust(FILE_BYTES, b"\0"),
                "stale": stale,
            }[damage]
        )
    findings = reopened(tmp_path, *ROW, durable_timestamp=EVER[1])
    assert findings
    assert contents(tmp_path) == before
    assert reopened(tmp_path, *ROW, durable_timestamp=EVER[1]) == []


def test_missing_entry_is_worth_a_word_only_if_it_was_durable(tmp_path: Path) -> None:
    filled(tmp_path, *ROW[:3])
    assert reopened(tmp_path, *ROW[:4], durable_timestamp=ROW[3][2]) == []
    (finding,) = reopened(tmp_path, *ROW[:6], durable_timestamp=ROW[4][2] + 1)
    assert (finding.file, finding.offset) == (str(tmp_path / "index"), ROW[4][1])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    patches=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, FILE_BYTES - 1), st.binary(min_size=1, max_size=40)), max_size=4
    ),
    swapped=st.booleans(),
)
def test_any_damage_is_mended(
    tmp_path_factory: pytest.TempPathFactory, patches: list[tuple[int, int, bytes]], swapped: bool
) -> None:
    directory = tmp_path_factory.mktemp("damaged")
    filled(directory, *ROW)
    before = contents(directory)
    for file, position, data in patches:
        overwrite(paths(directory)[file], position, data[: FILE_BYTES - position])
    if swapped:
        first, second = paths(directory)[1:3]
        data = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(data)
    reopened(directory, *ROW)
    after = contents(directory)
    after[0] = after[0][:88] + before[0][88:92] + after[0][92:]
    assert after == before


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    patches=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, FILE_BYTES - 1), st.binary(min_size=1, max_size=40)), max_size=4
    ),
    expired=st.integers(0, 17),
)
def test_damage_with_expired_records_in_front_hides_no_surviving_one(
    tmp_path_factory: pytest.TempPathFactory, patches: list[tuple[int, int, bytes]], expired: int
) -> None:
    directory = tmp_path_factory.mktemp("expired")
    filled(directory, *ROW)
    for file, position, data in patches:
        overwrite(paths(directory)[file], position, data[: FILE_BYTES - position])
    from_offset = ROW[expired][1] if expired < 17 else 1000
    puts = [put for put in ROW if put[1] >= from_offset]
    service = proven(service_of(directory, clock=SetClock(TIME + 1_000_000)), *puts, from_offset=from_offset)
    assert_sound(service)
    for code, offset, time in puts:
        assert offset in service.candidates(code, time, time)
    rows = [row for data in contents(directory) for row in entries_of(data, slots=4)]
    assert [row[:2] for row in rows if row[1] >= from_offset] == [put[:2] for put in puts]
    assert all(0 <= row[1] < from_offset for row in rows[: len(rows) - len(puts)])
    service.close()


def test_put_that_was_killed_leaves_nothing_to_say(tmp_path: Path) -> None:
    """An entry, its slot or a new file that was written before the header does not count."""
    labels = [0]

    class Killed(Exception):
        pass

    for limit in range(1, 40):
        directory = tmp_path / str(limit)
        directory.mkdir()
        filled(directory, *ROW[:4])
        files = FaultyFiles()
        left = [limit]

        def kill(label: str, left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                raise Killed

        service = proven(service_of(directory, files=files), *ROW[:4])
        files.on_mark = kill
        try:
            service.put(puts_of(*ROW[4:]))
        except Killed:
            labels[0] += 1
        service.close()
        assert reopened(directory, *ROW) == []
        assert contents(directory) == fresh(directory, *ROW)
    assert labels[0] > 20


def test_expired_entries_that_all_files_hold_stay(tmp_path: Path) -> None:
    filled(tmp_path, *ROW)
    before = contents(tmp_path)
    service = proven(service_of(tmp_path), from_offset=10_000)
    assert service.findings == []
    service.put(puts_of((3, 10_000, TIME)))
    assert next(service.candidates(3, TIME, TIME)) == 10_000
    service.close()
    assert contents(tmp_path)[:3] == before[:3]


def test_emptied_log_leaves_an_index_that_takes_the_first_record(tmp_path: Path) -> None:
    """RocketMQ keeps the index and omits every new record below its end (holes I3, I4)."""
    filled(tmp_path, *ROW)
    assert reopened(tmp_path)
    assert reopened(tmp_path, *ROW[:2]) == []
    assert contents(tmp_path) == fresh(tmp_path, *ROW[:2])


# ---- a disk that refuses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["unlink", "pwrite"])
def test_refused_mending_can_be_tried_again(tmp_path: Path, verb: str) -> None:
    filled(tmp_path, *ROW)
    files = FaultyFiles()
    service = service_of(tmp_path, files=files)
    service.load()
    service.begin_reconcile(0)
    files.fail(verb, code=errno.EROFS)
    for _ in range(2):
        with pytest.raises(OSError, match="Read-only"):
            service.reconcile(puts_of(*ROW[:2], (9, 900, TIME)))
        with pytest.raises(OSError, match="Read-only"):
            service.end_reconcile()
    files.mend()
    assert service.end_reconcile()
    service.put(puts_of(*ROW[:2], (9, 900, TIME)))
    service.check()
    service.close()
    assert contents(tmp_path) == fresh(tmp_path, *ROW[:2], (9, 900, TIME))


def test_full_disk_leaves_the_missing_puts_to_a_later_put(tmp_path: Path) -> None:
    filled(tmp_path, *ROW[:7])
    files = FaultyFiles()
    service = service_of(tmp_path, files=files, clock=SetClock(TIME + 1_000_000))
    service.load()
    service.begin_reconcile(0)
    files.fail("create", code=errno.ENOSPC)
    with pytest.raises(OSError, match="No space"):
        service.reconcile(puts_of(*ROW))
    assert not service.end_reconcile()
    service.check()
    files.mend()
    service.put(puts_of(*ROW))
    service.close()
    assert contents(tmp_path) == fresh(tmp_path, *ROW)


def test_file_that_was_never_begun_goes_from_a_full_disk(tmp_path: Path) -> None:
    """A kill between creation and header leaves a name, a size and no block for the header."""
    filled(tmp_path, *ROW[:5])
    path = tmp_path / "index" / "20231114221320009"
    path.write_bytes(bytes(FILE_BYTES))
    files = FaultyFiles()
    files.fail("pwrite", code=errno.ENOSPC)
    service = proven(service_of(tmp_path, files=files), *ROW[:5])
    assert service.findings == []
    assert not path.exists()
    service.close()


def test_mending_needs_no_blocks_on_a_full_disk(tmp_path: Path) -> None:
    filled(tmp_path, *ROW)
    files = FaultyFiles()
    service = service_of(tmp_path, files=files)
    service.load()
    service.begin_reconcile(0)
    files.fail("allocate", code=errno.ENOSPC)
    service.reconcile(puts_of(*ROW[:7]))
    assert service.end_reconcile()
    service.close()


# ---- size --------------------------------------------------------------------------------------------------------


def test_default_file_is_proven_without_touching_its_entries(tmp_path: Path) -> None:
    def default(directory: Path) -> IndexService:
        return service_of(directory, slots=5_000_000, entries_max=20_000_000)

    service = proven(default(tmp_path))
    service.put(puts_of(*ROW))
    service.flush()
    service.close()
    (path,) = paths(tmp_path)
    blocks = os.stat(path).st_blocks
    service = proven(default(tmp_path), *ROW[:9])
    assert len(service.findings) == 1
    service.flush()
    assert service.index_files[0].header.next_number == 10
    service.close()
    assert os.stat(path).st_blocks <= blocks
