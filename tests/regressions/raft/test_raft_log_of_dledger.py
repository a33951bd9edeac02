"""A directory that DLedger wrote is read or refused, and never erased.

Symptom: opening a directory of DLedger could erase all its entries. It did so without the setting for entries without
checksums, with another file size, and for a log that begins after position 0 (mixed mode, or expired files). A log
whose follower had been truncated was refused as damaged.
Cause: the log was taken to begin at position 0 in files of the configured size. What did not fit was the end of the
log, and opening erases what follows the end. Units of the index past the end were taken for durable entries, which is
true only for entries that tornpage wrote.
Fix: sizes and names of all files are checked first. The log begins with its first data file. Valid entries without
checksums are refused unless the setting is given. Units after an entry of DLedger prove nothing.
Found by: a review of `DLedgerMmapFileStore` for `tornpage peer raft`.
"""

from collections.abc import Iterator

import pytest

from tests.support.impl.dledger_files import DIRECTORY, dledger_entry, dledger_unit, write_dledger
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.raft_log import RaftLog, RaftLogDamaged, RaftLogRefused
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles

FILE_BYTES = 512
ENTRIES = [(1, bytes([at]) * 100) for at in range(1, 8)]


@pytest.fixture
def files() -> Iterator[RecordingFiles]:
    with choose_tracker("auto") as tracker:
        yield RecordingFiles(EMPTY_DISK, tracker=tracker)


def opened(files: RecordingFiles, *, file_bytes: int = FILE_BYTES, unsealed: bool = True) -> RaftLog:
    return RaftLog(files, DIRECTORY, data_file_bytes=file_bytes, index_file_bytes=FILE_BYTES, unsealed=unsealed)


def content(log: RaftLog) -> list[tuple[int, bytes]]:
    return [(log.term_at(place), log.body_at(place)) for place in range(log.begin, log.end)]


def disk(files: RecordingFiles) -> dict[str, bytes]:
    found = {}
    for folder in ("data", "index"):
        for name in files.list_directory(f"{DIRECTORY}/{folder}"):
            path = f"{DIRECTORY}/{folder}/{name}"
            stat = files.stat(path)
            file = files.open(path, writable=False)
            found[path] = files.read(file, 0, stat.size_bytes if stat else 0)
            files.close(file)
    return found


def refused(files: RecordingFiles, match: str, *, file_bytes: int = FILE_BYTES, unsealed: bool = True) -> None:
    """Check that the log is refused, and that no byte was changed."""
    before = disk(files)
    with pytest.raises(RaftLogRefused, match=match):
        opened(files, file_bytes=file_bytes, unsealed=unsealed)
    assert disk(files) == before


def test_entries_without_checksums_are_not_erased(files: RecordingFiles) -> None:
    write_dledger(files, ENTRIES, file_bytes=FILE_BYTES)
    for path in disk(files):
        if "/index/" in path:
            files.unlink(path)
    refused(files, "entry 0 at 0 has no checksums", unsealed=False)
    assert content(opened(files)) == ENTRIES


def test_another_file_size_erases_nothing(files: RecordingFiles) -> None:
    write_dledger(files, ENTRIES, file_bytes=FILE_BYTES)
    refused(files, "has 512 bytes, and data_file_bytes is 1024", file_bytes=1024)
    refused(files, "has 512 bytes, and data_file_bytes is 256", file_bytes=256)


def test_a_strange_name_is_refused(files: RecordingFiles) -> None:
    write_dledger(files, ENTRIES, file_bytes=FILE_BYTES)
    files.close(files.create(f"{DIRECTORY}/data/copy"))
    refused(files, "copy: is no file of a log")


def test_a_gap_between_files_is_refused(files: RecordingFiles) -> None:
    write_dledger(files, ENTRIES, file_bytes=FILE_BYTES)
    files.unlink(f"{DIRECTORY}/data/{FILE_BYTES:020d}")
    with pytest.raises(RaftLogDamaged, match="entry 3 at 444"):
        opened(files)
    files.unlink(f"{DIRECTORY}/index/{0:020d}")
    refused(files, "begins with entry 6 of DLedger, and the log ends with entry 2")


def test_a_log_after_an_old_commit_log_begins_at_its_first_file(files: RecordingFiles) -> None:
    positions = write_dledger(files, ENTRIES, file_bytes=FILE_BYTES, first_position=4 * FILE_BYTES)
    log = opened(files)
    assert content(log) == ENTRIES
    assert [log.position_at(place) for place in range(log.end)] == positions
    log.append([Carried(2, b"ours")])
    log.sync()
    log.close()
    assert content(opened(files)) == [*ENTRIES, (2, b"ours")]


def test_a_log_whose_first_files_expired_has_a_begin(files: RecordingFiles) -> None:
    write_dledger(files, ENTRIES, file_bytes=FILE_BYTES, first_index=40, first_position=4 * FILE_BYTES)
    log = opened(files)
    assert (log.begin, log.end, log.synced) == (40, 47, 47)
    assert content(log) == ENTRIES
    with pytest.raises(LookupError, match="entry 39 was deleted; the log begins with entry 40"):
        log.term_at(39)
    log.cut(45)
    log.append([Carried(2, b"ours")])
    log.sync()
    log.close()
    assert content(opened(files)) == [*ENTRIES[:5], (2, b"ours")]


def test_units_of_a_truncated_log_prove_nothing(files: RecordingFiles) -> None:
    stale = dledger_unit(7, 1, 1100, 148) + dledger_unit(8, 1, 1248, 148)
    write_dledger(files, ENTRIES, file_bytes=FILE_BYTES, stale=b"\1" * 90, stale_units=stale)
    log = opened(files)
    assert content(log) == ENTRIES
    log.append([Carried(2, b"ours")])
    log.sync()
    log.close()
    again = opened(files)
    assert content(again) == [*ENTRIES, (2, b"ours")]
    assert again.synced == 8


def test_a_unit_that_contradicts_an_entry_of_dledger_is_written_again(files: RecordingFiles) -> None:
    positions = write_dledger(files, ENTRIES, file_bytes=FILE_BYTES)
    path = f"{DIRECTORY}/index/{0:020d}"
    file = files.open(path, writable=True)
    files.pwrite(file, dledger_unit(5, 0, positions[5], 148), 5 * 32)
    files.close(file)
    opened(files).close()
    assert disk(files)[path][5 * 32 :][:64] == dledger_unit(5, 1, positions[5], 148) + dledger_unit(
        6, 1, positions[6], 148
    )


def test_a_lost_entry_after_one_with_checksums_is_still_damage(files: RecordingFiles) -> None:
    log = opened(files)
    log.append([Carried(1, b"a"), Carried(1, b"b")])
    log.sync()
    log.close()
    file = files.open(f"{DIRECTORY}/data/{0:020d}", writable=True)
    files.pwrite(file, dledger_entry(7, 1, 0, b"x"), 49)
    files.close(file)
    with pytest.raises(RaftLogDamaged, match="entry 1 at 49"):
        opened(files)


def test_a_first_file_of_ours_that_is_missing_is_damage(files: RecordingFiles) -> None:
    log = opened(files)
    log.append([Carried(term, body) for term, body in ENTRIES])
    log.sync()
    log.close()
    files.unlink(f"{DIRECTORY}/data/{0:020d}")
    with pytest.raises(RaftLogDamaged, match="entry 0 at 0"):
        opened(files)
