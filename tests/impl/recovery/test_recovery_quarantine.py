"""Test stores without a floor, foreign stores, and stores put together by hand."""

import errno
import shutil
from pathlib import Path

import pytest

from tests.support.impl.killed import (
    Killed,
    MakeKilled,
    codes,
    numbers,
)
from tests.support.impl.records import encoder_of
from tests.support.impl.stores import MESSAGE, FaultyFiles, caught_up, log_bytes, open_store, snapshot
from tornpage.impl.errors import BadDirectory, WrongFileSize
from tornpage.impl.message import codec
from tornpage.impl.message.message import GetStatus, Message, PutStatus

# ---- quarantine ---------------------------------------------------------------------------------------------------


def quarantined(found: Killed) -> dict[str, bytes]:
    directory = found.directory / "quarantine"
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())} if directory.exists() else {}


def test_valid_records_behind_a_cut_are_kept_aside_without_a_floor(killed: MakeKilled) -> None:
    found = killed(7)
    found.forget_floor()
    found.overwrite(found.results[1].offset + 90, b"torn")
    before = log_bytes(found.directory)
    cut = found.results[1].offset
    with open_store(found.directory) as store:
        assert numbers(store) == [0]
        assert codes(store) == [("tear", "torn_tail")]
    names = sorted(before)
    assert quarantined(found) == {
        f"{cut:020d}.0": before[names[0]][cut:],
        f"{names[1]}.0": before[names[1]],
        f"{names[2]}.0": before[names[2]],
    }


def test_the_copies_are_durable_before_anything_is_cut(killed: MakeKilled) -> None:
    found = killed(7)
    found.forget_floor()
    found.overwrite(found.results[1].offset + 90, b"torn")
    files = FaultyFiles()
    open_store(found.directory, files=files).close()
    last_copy = max(
        n for n, call in enumerate(files.calls) if call == ("sync_directory", f"{found.directory}/quarantine")
    )
    first_cut = files.calls.index(("unlink", str(found.log(2048))))
    assert last_copy < first_cut
    synced = [call for call in files.calls[:last_copy] if call == ("sync", f"{found.directory}/quarantine/unfinished")]
    assert len(synced) == len(quarantined(found)) == 3


def test_nothing_is_kept_aside_with_a_floor_or_without_valid_records(killed: MakeKilled) -> None:
    found = killed(7)
    found.overwrite(found.results[1].offset + 90, b"torn")
    open_store(found.directory).close()
    assert quarantined(found) == {}


def test_a_tear_in_the_last_record_needs_no_quarantine(killed: MakeKilled) -> None:
    found = killed(2)
    found.forget_floor()
    found.overwrite(found.results[1].offset + 90, b"torn")
    with open_store(found.directory) as store:
        assert numbers(store) == [0]
    assert quarantined(found) == {}


def test_a_copy_is_never_replaced(killed: MakeKilled) -> None:
    found = killed(3)
    found.forget_floor()
    found.overwrite(found.results[1].offset + 90, b"torn")
    cut = found.results[1].offset
    (found.directory / "quarantine").mkdir()
    (found.directory / "quarantine" / f"{cut:020d}.0").write_bytes(b"first copy")
    (found.directory / "quarantine" / "unfinished").write_bytes(b"half a copy")
    before = log_bytes(found.directory)[f"{0:020d}"]
    open_store(found.directory).close()
    assert quarantined(found) == {f"{cut:020d}.0": b"first copy", f"{cut:020d}.1": before[cut:]}


def test_no_room_for_the_copies_means_nothing_is_cut(killed: MakeKilled) -> None:
    found = killed(7)
    found.forget_floor()
    found.overwrite(found.results[1].offset + 90, b"torn")
    before = log_bytes(found.directory)
    files = FaultyFiles()
    files.fail("pwrite", code=errno.ENOSPC, part="/quarantine/")
    with pytest.raises(BadDirectory, match="No space left"):
        open_store(found.directory, files=files)
    assert log_bytes(found.directory) == before
    with open_store(found.directory) as store:
        assert numbers(store) == [0]


# ---- stores that others made, or that were put together by hand ---------------------------------------------------


def record(body: bytes, *, offset: int, queue_offset: int = 0) -> bytes:
    """Return the bytes of a record of topic T."""
    made = encoder_of(trailer=False, store_host=("127.0.0.1", 1)).encode(Message("T", body), now_ms=1)
    assert isinstance(made, bytearray)
    codec.place_record(made, queue_offset=queue_offset, physical_offset=offset, store_timestamp=1, trailer=False)
    return bytes(made)


def test_records_behind_a_blank_are_not_served(tmp_path: Path) -> None:
    """Old records may follow the blank of a closed file (contract 3).

    RocketMQ does not erase the bytes that it cuts.
    """
    stale_at = 400
    first = record(b"kept", offset=0)
    blank = codec.encode_blank(512 - len(first))
    stale = record(b"cut long ago", offset=stale_at, queue_offset=3)
    head = (first + blank).ljust(stale_at, b"\0")
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes((head + stale[:104]).ljust(512, b"\0"))
    assert len(stale) <= 104
    second = record(b"second", offset=512, queue_offset=1)
    (tmp_path / "commitlog" / f"{512:020d}").write_bytes(second.ljust(512, b"\0"))
    with open_store(tmp_path, file_bytes=512, trailer=False) as store:
        assert [stored.body for stored in store.messages()] == [b"kept", b"second"]
        assert store.get(stale_at).status is GetStatus.OFFSET_FOUND_NULL


def test_another_file_size_is_refused_without_writing(tmp_path: Path) -> None:
    """A directory without a lock file got one before it was refused."""
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
    (tmp_path / "lock").unlink()
    before = snapshot(tmp_path)
    with pytest.raises(WrongFileSize):
        open_store(tmp_path, file_bytes=2048)
    assert snapshot(tmp_path) == before


def test_a_damaged_store_that_begins_later_passes_its_own_check(tmp_path: Path) -> None:
    """The flushed end of a read-only store was 0, below its first offset (contract 9)."""
    with open_store(tmp_path / "live") as store:
        for _ in range(20):
            store.put(MESSAGE)
        store.flush()
        caught_up(store)
        shutil.copytree(tmp_path / "live", tmp_path / "copy")
    logs = sorted((tmp_path / "copy" / "commitlog").iterdir())
    logs[0].unlink()
    with open(logs[-1], "r+b") as file:
        file.write(b"\xff" * 100)
    with open_store(tmp_path / "copy") as store:
        assert store.read_only_reason is not None
        store.check()


def test_a_file_that_can_be_no_part_of_a_log_does_not_end_in_an_exception(tmp_path: Path) -> None:
    """Its twenty digits are beyond 64 bits: the next put raised struct.error."""
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / ("9" * 20)).write_bytes(bytes(1024))
    with open_store(tmp_path) as store:
        assert store.put(MESSAGE).status in set(PutStatus)


def test_a_name_that_is_no_multiple_of_the_file_size_is_not_taken_for_a_log_file(tmp_path: Path) -> None:
    """A file of zeros named 100 was adopted and written to.

    RocketMQ finds nothing in such a log.
    """
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{100:020d}").write_bytes(bytes(1024))
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
        assert store.findings
        assert not any(log_bytes(tmp_path)[f"{100:020d}"])
