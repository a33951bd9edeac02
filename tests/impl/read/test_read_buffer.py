"""Test buffers of reads: valid until released or taken back, then an error (contract 11).

A late use never ends the process.
"""

import gc
import logging
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.impl.reading import Log
from tornpage.impl.errors import BufferReleased
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message
from tornpage.impl.read.read_buffer import BufferLease, ReadBuffer, ReadBuffers, RecordBuffer


@pytest.fixture
def mapped(tmp_path: Path) -> Iterator[MappedFile]:
    """Map a file of 4096 bytes that begins at physical offset 8192 and holds "0123456789"."""
    files = OsFiles()
    file = files.create(str(tmp_path / "00000000000000008192"))
    files.allocate(file, 4096)
    mapped = MappedFile(files, file, base_offset=8192, written_position=0)
    mapped.append(bytearray(b"0123456789"))
    yield mapped
    mapped.close()


def lease_of(buffers: ReadBuffers, mapped: MappedFile) -> BufferLease:
    lease = buffers.lease(mapped)
    assert lease is not None
    return lease


def buffer_of(buffers: ReadBuffers, mapped: MappedFile, position: int = 2, size_bytes: int = 3) -> ReadBuffer:
    lease = lease_of(buffers, mapped)
    buffer = lease.buffer(position, size_bytes)
    lease.give_back()
    return buffer


def is_mapped(path: str) -> bool:
    """Return the answer of the kernel."""
    return any(line.rstrip().endswith(path) for line in Path("/proc/self/maps").read_text().splitlines())


def test_buffer_shows_its_bytes_without_a_copy(mapped: MappedFile) -> None:
    buffer = buffer_of(ReadBuffers(), mapped)
    assert (buffer.offset, buffer.size_bytes, len(buffer), bytes(buffer)) == (8194, 3, 3, b"234")
    mapped.view[2:5] = b"xyz"
    assert bytes(buffer.view) == b"xyz"
    assert "8194" in repr(buffer)


def test_nobody_writes_into_the_log_through_a_buffer(mapped: MappedFile) -> None:
    view = buffer_of(ReadBuffers(), mapped).view
    assert view.readonly
    with pytest.raises(TypeError):
        view[0] = 1


def test_every_method_of_a_released_buffer_is_an_error(mapped: MappedFile) -> None:
    lease = lease_of(ReadBuffers(), mapped)
    buffer = lease.record(0, 10, 7)
    assert (buffer.queue_offset, buffer.released) == (7, False)
    buffer.release()
    buffer.release()
    assert buffer.released
    assert "released" in repr(buffer)
    for use in (lambda: buffer.view, lambda: bytes(buffer), buffer.message):
        with pytest.raises(BufferReleased, match="offset 8192 was released"):
            use()


def test_file_stays_mapped_until_the_last_buffer_is_released(mapped: MappedFile) -> None:
    buffers = ReadBuffers()
    lease = lease_of(buffers, mapped)
    first, second = lease.buffer(0, 1), lease.buffer(1, 1)
    lease.give_back()
    mapped.close()
    assert buffers.lease(mapped) is None
    first.release()
    first.release()
    assert (bytes(second), is_mapped(mapped.path), buffers.held) == (b"1", True, 1)
    with second:
        pass
    assert (is_mapped(mapped.path), buffers.held, buffers.leaked) == (False, 0, 0)


def test_shut_takes_buffers_back_from_whoever_holds_them(mapped: MappedFile, caplog: pytest.LogCaptureFixture) -> None:
    buffers = ReadBuffers()
    held, given_back = buffer_of(buffers, mapped), buffer_of(buffers, mapped)
    given_back.release()
    with caplog.at_level(logging.WARNING, logger="tornpage.store"):
        assert buffers.shut() == 1
        assert buffers.shut() == 0
    assert [record.getMessage().split()[0] for record in caplog.records] == ["read_buffers_taken_back"]
    with pytest.raises(BufferReleased):
        bytes(held)
    held.release()
    assert buffers.lease(mapped) is None
    mapped.close()
    assert not is_mapped(mapped.path)


def test_only_the_buffers_of_a_deleted_file_are_taken_back(mapped: MappedFile, tmp_path: Path) -> None:
    files = OsFiles()
    file = files.create(str(tmp_path / "00000000000000012288"))
    files.allocate(file, 4096)
    other = MappedFile(files, file, base_offset=12288, written_position=0)
    buffers = ReadBuffers()
    kept, lost = buffer_of(buffers, other), buffer_of(buffers, mapped)
    assert buffers.revoke(mapped) == 1
    assert bytes(kept) == bytes(3)
    with pytest.raises(BufferReleased):
        bytes(lost)
    kept.release()
    other.close()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["view", "slice of a view", "cast", "NumPy"])
def test_view_that_a_reader_keeps_keeps_the_mapping_and_is_counted(
    mapped: MappedFile, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    buffers = ReadBuffers()
    buffer = buffer_of(buffers, mapped)
    view = buffer.view
    export: object = view
    if how == "slice of a view":
        export = view[1:]
    elif how == "cast":
        export = view.cast("c")
    elif how == "NumPy":
        numpy = pytest.importorskip("numpy")
        export = numpy.frombuffer(view, dtype=numpy.uint8)
    shown = bytes(memoryview(export))  # type: ignore[arg-type]
    del view
    with caplog.at_level(logging.WARNING, logger="tornpage.store"):
        buffers.shut()
        mapped.close()
        assert buffers.log_leaks() == 1
    assert "read_views_leaked files=1" in caplog.text
    assert (is_mapped(mapped.path), bytes(memoryview(export))) == (True, shown)  # type: ignore[arg-type]
    assert buffers.leaked == 1
    del export
    gc.collect()
    assert buffers.leaked == 0
    assert not is_mapped(mapped.path)


def test_descriptor_of_a_leaked_file_is_closed(mapped: MappedFile) -> None:
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    buffers = ReadBuffers()
    view = buffer_of(buffers, mapped).view
    buffers.shut()
    mapped.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors - 1
    view.release()
    assert buffers.leaked == 0
    assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors - 1


def test_forgotten_buffers_give_the_file_back(mapped: MappedFile) -> None:
    buffers = ReadBuffers()
    lost = buffer_of(buffers, mapped)
    known = weakref.ref(lost._lease)
    mapped.close()
    del lost
    gc.collect()
    assert known() is None
    buffers.settle()
    assert (buffers.held, is_mapped(mapped.path)) == (0, False)


def test_forgotten_buffers_in_a_cycle_are_collected_inside_a_lock(mapped: MappedFile) -> None:
    """A finaliser may run while its thread holds any lock of the store, so it takes none."""
    buffers = ReadBuffers()
    cycle: list[object] = [buffer_of(buffers, mapped)]
    cycle.append(cycle)
    del cycle
    with buffers.guard, mapped._guard:
        gc.collect()
    assert len(buffers.forgotten) == 1
    assert buffers.held == 0
    mapped.close()
    assert not is_mapped(mapped.path)


def test_lease_without_buffers_ends_with_its_maker(mapped: MappedFile) -> None:
    buffers = ReadBuffers()
    lease = lease_of(buffers, mapped)
    lease.give_back()
    assert lease.ended
    assert (lease.end(), buffers.held) == (False, 0)


def test_buffers_outlive_the_log_that_has_been_closed_around_them(tmp_path: Path) -> None:
    log = Log(tmp_path)
    offset = log.put(Message("T", b"body"))
    with log.reader.session() as session:
        buffer = session.take(session.find(offset), 0)
    assert isinstance(buffer, RecordBuffer)
    log.files.close()
    assert buffer.message().body == b"body"
    log.close()
    with pytest.raises(BufferReleased):
        buffer.message()


def test_threads_release_use_and_shut_at_once(mapped: MappedFile) -> None:
    """In any order a read is right or raises BufferReleased, and at the end nothing is mapped."""
    buffers = ReadBuffers()
    shared = [buffer_of(buffers, mapped, position=n, size_bytes=5) for n in range(5) for _ in range(40)]
    wrong: list[object] = []
    start = threading.Barrier(5)

    def use() -> None:
        start.wait()
        for buffer in shared:
            try:
                if bytes(buffer) != b"0123456789"[buffer.offset - 8192 :][:5]:
                    wrong.append(buffer)
            except BufferReleased:
                pass
            except BaseException as error:
                wrong.append(error)

    def release() -> None:
        start.wait()
        for buffer in reversed(shared):
            buffer.release()

    def shut() -> None:
        start.wait()
        buffers.shut()

    threads = [threading.Thread(target=work) for work in (use, use, release, release, shut)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    mapped.close()
    assert wrong == []
    assert (buffers.held, buffers.leaked, is_mapped(mapped.path)) == (0, 0, False)


def test_process_does_not_crash_on_buffers_of_a_closed_store(tmp_path: Path) -> None:
    """This needs its own process: touching unmapped memory would end this one."""
    code = f"""
from pathlib import Path
from tornpage.impl.errors import BufferReleased
from tornpage.impl.message.message import Message
from tests.support.impl.reading import Log
log = Log(Path({str(tmp_path)!r}))
offset = log.put(Message("T", b"x" * 500))
with log.reader.session() as session:
    buffer = session.take(session.find(offset), 0)
view = buffer.view
log.close()
total = sum(view)
try:
    bytes(buffer)
except BufferReleased:
    print("released", total > 0, log.buffers.leaked)
"""
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "released True 1\n"
