"""Test the files of a Raft member on a recorded disk: format, floor, cuts, damage."""

import struct
from collections.abc import Iterator

import pytest

from tornpage.impl.io.files import OpenFile
from tornpage.impl.raft import entry_codec
from tornpage.impl.raft.hard_state import HardState, HardStateDamaged
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.raft_log import RaftLog, RaftLogDamaged
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles

DIRECTORY = "/member"
FILE_BYTES = 512
DATA = f"{DIRECTORY}/data/{0:020d}"


@pytest.fixture
def tracker() -> Iterator[DirtyTracker]:
    with choose_tracker("auto") as chosen:
        yield chosen


@pytest.fixture
def files(tracker: DirtyTracker) -> RecordingFiles:
    return RecordingFiles(EMPTY_DISK, tracker=tracker)


def opened(files: RecordingFiles, *, unsealed: bool = False) -> RaftLog:
    return RaftLog(files, DIRECTORY, data_file_bytes=FILE_BYTES, index_file_bytes=FILE_BYTES, unsealed=unsealed)


def content(log: RaftLog) -> list[Carried]:
    return [Carried(log.term_at(place), log.body_at(place)) for place in range(log.end)]


def read(files: RecordingFiles, path: str) -> bytes:
    file = files.open(path, writable=False)
    try:
        return files.read(file, 0, FILE_BYTES)
    finally:
        files.close(file)


def write(files: RecordingFiles, path: str, at: int, data: bytes) -> None:
    file = files.open(path, writable=True)
    files.pwrite(file, data, at)
    files.close(file)


def test_an_entry_has_the_fields_of_dledger(files: RecordingFiles) -> None:
    log = opened(files)
    log.append([Carried(3, b"abc"), Carried(4, b"")])
    log.sync()
    data = read(files, DATA)
    magic, size, index, term, position, channel = struct.unpack_from(">iiqqqi", data)
    assert (magic, size, index, term, position, channel) == (1, 51, 0, 3, 0, 0)
    assert struct.unpack_from(">i", data, 44) == (3,)
    assert data[48:51] == b"abc"
    assert struct.unpack_from(">iiqqq", data, 51) == (1, 48, 1, 4, 51)
    units = read(files, f"{DIRECTORY}/index/{0:020d}")
    assert [struct.unpack_from(">iqiqq", units, 32 * place) for place in range(3)] == [
        (1, 0, 51, 0, 3),
        (1, 51, 48, 1, 4),
        (0, 0, 0, 0, 0),
    ]


def test_a_full_file_ends_with_a_blank(files: RecordingFiles) -> None:
    log = opened(files)
    log.append([Carried(1, bytes([at]) * 100) for at in range(1, 5)])
    log.sync()
    assert struct.unpack_from(">ii", read(files, DATA), 444) == (-1, 68)
    assert log.position_at(3) == FILE_BYTES
    log.close()
    assert [entry.body[:1] for entry in content(opened(files))] == [b"\1", b"\2", b"\3", b"\4"]


def test_a_log_is_read_again_with_its_terms(files: RecordingFiles) -> None:
    log = opened(files)
    log.append([Carried(1, b"a"), Carried(1, b""), Carried(7, b"c" * 90)])
    log.sync()
    before = content(log)
    log.close()
    again = opened(files)
    assert (content(again), again.synced) == (before, 3)


def test_a_cut_erases_entries_and_their_units(files: RecordingFiles) -> None:
    log = opened(files)
    log.append([Carried(1, bytes([at]) * 100) for at in range(1, 6)])
    log.sync()
    log.cut(1)
    assert not any(read(files, DATA)[148:])
    assert files.stat(f"{DIRECTORY}/data/{FILE_BYTES:020d}") is None
    assert not any(read(files, f"{DIRECTORY}/index/{0:020d}")[32:])
    log.append([Carried(2, b"new")])
    log.sync()
    log.close()
    assert content(opened(files)) == [Carried(1, b"\1" * 100), Carried(2, b"new")]


def test_a_tear_after_the_floor_is_erased(files: RecordingFiles) -> None:
    log = opened(files)
    log.append([Carried(1, b"kept")])
    log.sync()
    log.append([Carried(1, b"torn")])
    log.close()
    write(files, DATA, 52 + 48, b"T")
    again = opened(files)
    assert content(again) == [Carried(1, b"kept")]
    assert not any(read(files, DATA)[52:])


@pytest.mark.parametrize("at", [0, 4, 8, 16, 24, 36, 40, 44, 48])
def test_a_changed_byte_of_a_durable_entry_is_damage(files: RecordingFiles, at: int) -> None:
    log = opened(files)
    log.append([Carried(1, b"kept")])
    log.sync()
    log.close()
    write(files, DATA, at, bytes([read(files, DATA)[at] ^ 0x40]))
    with pytest.raises(RaftLogDamaged, match=r"entry 0 at 0 of .* was durable"):
        opened(files)


def test_entries_without_checksums_need_a_setting(files: RecordingFiles) -> None:
    opened(files).close()
    file = files.create(DATA)
    files.allocate(file, FILE_BYTES)
    files.pwrite(file, struct.pack(">iiqqqiiii", 1, 50, 0, 2, 0, 0, 0, 0, 2) + b"jv", 0)
    files.close(file)
    with_dledger = opened(files, unsealed=True)
    assert content(with_dledger) == [Carried(2, b"jv")]


def test_an_entry_larger_than_a_file_is_refused(files: RecordingFiles) -> None:
    log = opened(files)
    with pytest.raises(ValueError, match="does not fit into a file of 512"):
        log.append([Carried(1, bytes(FILE_BYTES))])
    assert log.end == 0


def test_a_failed_sync_confirms_nothing(files: RecordingFiles) -> None:
    log = opened(files)
    log.append([Carried(1, b"a")])
    files.failing_syncs = 1
    with pytest.raises(OSError, match=r"Errno"):
        log.sync()
    assert log.synced == 0
    with pytest.raises(OSError, match="takes no entries"):
        log.append([Carried(1, b"b")])


def test_a_term_and_a_vote_are_read_again(files: RecordingFiles) -> None:
    files.make_directory(DIRECTORY)
    state = HardState(files, DIRECTORY)
    assert (state.term, state.vote) == (0, None)
    state.save(4, 2)
    state.save(5, None)
    again = HardState(files, DIRECTORY)
    assert (again.term, again.vote) == (5, None)
    assert read(files, f"{DIRECTORY}/currterm") == b"voteLeader=\ncurrTerm=5\n"


def test_a_file_without_a_term_is_damage(files: RecordingFiles) -> None:
    files.make_directory(DIRECTORY)
    HardState(files, DIRECTORY).save(4, 2)
    write(files, f"{DIRECTORY}/currterm", 0, b"?" * 24)
    with pytest.raises(HardStateDamaged, match="has no term and vote"):
        HardState(files, DIRECTORY)


def opening(files: RecordingFiles) -> list[Carried] | str:
    """Return the entries of the log, or why it does not open."""
    try:
        log = opened(files)
    except RaftLogDamaged as error:
        return str(error)
    found = content(log)
    log.close()
    return found


@pytest.mark.parametrize("floor", [2, 6])
def test_blocks_of_entries_are_read_as_single_ones(
    tracker: DirtyTracker, floor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever byte has changed: of entries with and without an index unit, in two files."""
    log_files = RecordingFiles(EMPTY_DISK, tracker=tracker)
    log = opened(log_files)
    entries = [Carried(1 + at // 3, bytes([65 + at]) * 60) for at in range(6)]
    log.append(entries[:floor])
    log.sync()
    log.append(entries[floor:])
    log.close()
    journal, base = tuple(log_files.journal), log_files.base
    for path in (DATA, f"{DIRECTORY}/data/{FILE_BYTES:020d}", f"{DIRECTORY}/index/{0:020d}"):
        for at in range(0, FILE_BYTES, 3):
            results = []
            for skims in (True, False):
                files = RecordingFiles(base, tracker=tracker, journal=journal)
                write(files, path, at, bytes([read(files, path)[at] ^ 1]))
                with monkeypatch.context() as patch:
                    if not skims:
                        patch.setattr(RaftLog, "_skim", lambda log, position: position)
                        patch.setattr(RaftLog, "_equal_units", lambda log: 0)
                    results.append(opening(files))
            assert results[0] == results[1], (path, at)


def test_a_long_log_is_read_in_blocks(files: RecordingFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RaftLog(files, DIRECTORY, data_file_bytes=1 << 16, index_file_bytes=1 << 16)
    log.append([Carried(1, b"x")] * 2_000)
    log.sync()
    log.close()
    reads: list[int] = []
    read_of = RecordingFiles.read

    def counted(files: RecordingFiles, file: OpenFile, offset: int, size_bytes: int) -> bytes:
        reads.append(size_bytes)
        return read_of(files, file, offset, size_bytes)

    monkeypatch.setattr(RecordingFiles, "read", counted)
    assert RaftLog(files, DIRECTORY, data_file_bytes=1 << 16, index_file_bytes=1 << 16).end == 2_000
    assert len(reads) < 50


def test_a_block_ends_at_the_first_entry_that_is_not_plainly_right() -> None:
    first = entry_codec.entry(4, 2, 100, b"abc")
    second = entry_codec.entry(5, 3, 151, b"")
    rows = [(100, 2, 51), (151, 3, 48)]
    assert entry_codec.skimmed(first + second, 100, 4, 2) == rows
    unsealed = second[:36] + bytes(8) + second[44:]
    for other in (
        entry_codec.entry(6, 3, 151, b""),
        entry_codec.entry(5, 1, 151, b""),
        entry_codec.entry(5, 3, 152, b""),
        entry_codec.blank(512 - 151) + bytes(60),
        second[:47],
        unsealed,
        b"",
    ):
        assert entry_codec.skimmed(first + other, 100, 4, 2) == rows[:1]
    assert entry_codec.skimmed(first, 100, 4, 3) == []
