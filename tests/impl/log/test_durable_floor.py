"""Test the durable floor: written after the sync that it records, trusted only when whole."""

import struct
import zlib
from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, FaultyFiles, open_store
from tornpage.impl.log.durable_floor import DurableFloor, Floor
from tornpage.properties.decode.store import read_floor

FLOOR = "config/durableFloor"


def floor_of(path: Path, files: FaultyFiles | None = None, *, file_bytes: int = 1024) -> DurableFloor:
    return DurableFloor(files or FaultyFiles(), str(path), file_bytes=file_bytes)


def test_floor_that_was_started_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "floor"
    floor = floor_of(path)
    assert floor.load() is None
    floor.start(17)
    assert floor.load() == Floor(17, 1024)
    floor.raise_to(4711)
    floor.sync()
    floor.close()
    floor.close()
    assert floor_of(path).load() == Floor(4711, 1024)
    assert path.stat().st_size == 512
    floor.start(5000)
    floor.close()
    assert floor_of(path).load() == Floor(5000, 1024)


def test_new_floor_is_durable_in_content_and_name(tmp_path: Path) -> None:
    files = FaultyFiles()
    path = tmp_path / "floor"
    floor = floor_of(path, files)
    floor.start(0)
    floor.close()
    steps = [call for call in files.calls if call[0] in ("pwrite", "sync", "sync_directory")]
    assert steps == [("pwrite", str(path)), ("sync", str(path)), ("sync_directory", str(tmp_path))]


@pytest.mark.parametrize("at", [0, 7, 8, 15, 16, 23, 24, 27])
def test_changed_floor_is_not_trusted(tmp_path: Path, at: int) -> None:
    path = tmp_path / "floor"
    floor = floor_of(path)
    floor.start(4711)
    floor.close()
    data = bytearray(path.read_bytes())
    if at >= 20 and not any(data[20:28]):
        pytest.skip("unused in this layout")
    data[at] ^= 0x10
    path.write_bytes(data)
    assert floor_of(path).load() is None


@pytest.mark.parametrize("size_bytes", [0, 1, 19, 28, 511, 513, 2048])
def test_floor_of_another_size_is_not_trusted_and_made_anew(tmp_path: Path, size_bytes: int) -> None:
    path = tmp_path / "floor"
    floor = floor_of(path)
    floor.start(4711)
    floor.close()
    path.write_bytes(path.read_bytes()[:size_bytes].ljust(size_bytes, b"\0"))
    assert floor_of(path).load() is None
    floor.start(5000)
    floor.close()
    assert path.stat().st_size == 512
    assert floor_of(path).load() == Floor(5000, 1024)


def test_foreign_and_zero_files_are_no_floor(tmp_path: Path) -> None:
    path = tmp_path / "floor"
    for data in (bytes(512), b"hello" * 200):
        path.write_bytes(data)
        assert floor_of(path).load() is None


def test_a_floor_that_cannot_be_raised_stays_low_in_silence(tmp_path: Path) -> None:
    files = FaultyFiles()
    path = tmp_path / "floor"
    floor = floor_of(path, files)
    floor.start(10)
    files.fail("pwrite")
    floor.raise_to(20)
    floor.close()
    files.mend()
    assert floor_of(path).load() == Floor(10, 1024)


def test_store_raises_the_floor_after_each_sync_and_never_before(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, sync=True, files=files) as store:
        files.calls.clear()
        for _ in range(3):
            store.put(MESSAGE)
            loaded = floor_of(tmp_path / FLOOR).load()
            assert loaded == Floor(store.flushed_offset, 1024)
        order = [path.rpartition("/")[2] for verb, path in files.calls if verb in ("sync", "pwrite")]
    assert [name for name in order if name == "durableFloor"] == ["durableFloor"] * 3
    assert order[-1] == "durableFloor"
    assert order[-2] != "durableFloor"


def test_store_leaves_the_floor_alone_without_a_sync(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
        assert floor_of(tmp_path / FLOOR).load() == Floor(0, 1024)
        store.flush()
        assert floor_of(tmp_path / FLOOR).load() == Floor(store.max_offset, 1024)


def test_failed_sync_does_not_raise_the_floor(tmp_path: Path) -> None:
    files = FaultyFiles()
    with open_store(tmp_path, sync=True, files=files) as store:
        store.put(MESSAGE)
        flushed = store.flushed_offset
        files.fail("sync", part="/commitlog/")
        store.put(MESSAGE)
        assert floor_of(tmp_path / FLOOR).load() == Floor(flushed, 1024)


def test_the_judge_reads_the_floor_that_the_store_writes(tmp_path: Path) -> None:
    """Store and format page had different layouts of config/durableFloor.

    The judge called each file of the store unreadable.
    """
    with open_store(tmp_path) as store:
        store.put(MESSAGE)
        store.flush()
        floor = read_floor(tmp_path)
        assert floor is not None
        assert floor.offset == store.flushed_offset


def test_a_floor_of_another_version_is_not_trusted(tmp_path: Path) -> None:
    """The checksum is right and the magic is not."""
    head = struct.pack(">8sqq", b"TPFLOOR2", 4711, 1024)
    (tmp_path / "floor").write_bytes((head + struct.pack(">I", zlib.crc32(head))).ljust(512, b"\0"))
    assert floor_of(tmp_path / "floor").load() is None
    head = struct.pack(">8sqq", b"TPFLOOR1", 4711, 1024)
    (tmp_path / "floor").write_bytes((head + struct.pack(">I", zlib.crc32(head))).ljust(512, b"\0"))
    assert floor_of(tmp_path / "floor").load() == Floor(4711, 1024)
