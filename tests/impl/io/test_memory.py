"""Test locked memory: private zeros on whole pages, locked or with a warning.

The memory is gone after its release.
"""

import ctypes
import errno
import mmap
import os
import re
import threading
from pathlib import Path

import pytest

from tests.support.forked import answer_of_child, forbid_locked_memory
from tornpage.impl.io.memory import LockedMemory

SIZE_BYTES = 64 << 10


def locked_kib() -> int:
    """Return the amount of locked memory of this process."""
    (line,) = re.findall(r"^VmLck:\s+(\d+) kB$", Path("/proc/self/status").read_text(encoding="utf-8"), re.MULTILINE)
    return int(line)


def address(memory: LockedMemory) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory.view))


def locked_memory(size_bytes: int = SIZE_BYTES) -> LockedMemory:
    """Return locked memory, or skip the test."""
    memory = LockedMemory(size_bytes)
    if not memory.is_locked:
        memory.release()
        pytest.skip(f"this machine locks no {size_bytes} bytes")
    return memory


@pytest.mark.parametrize("size_bytes", [1, 4096, 5000, SIZE_BYTES])
def test_memory_is_writable_zeros_on_a_page_of_its_own(size_bytes: int) -> None:
    memory = LockedMemory(size_bytes)
    assert (len(memory.view), memory.view.readonly, memory.view.format) == (size_bytes, False, "B")
    assert bytes(memory.view) == bytes(size_bytes)
    assert address(memory) % mmap.PAGESIZE == 0
    memory.view[-1] = 7
    assert memory.view[size_bytes - 1] == 7
    memory.release()


def test_memory_is_locked_until_it_is_released() -> None:
    before = locked_kib()
    memory = locked_memory()
    assert locked_kib() == before + SIZE_BYTES // 1024
    memory.release()
    assert locked_kib() == before
    assert not memory.is_locked


def test_released_memory_is_released_once_and_refuses_access() -> None:
    memory = LockedMemory(SIZE_BYTES)
    memory.release()
    memory.release()
    with pytest.raises(ValueError, match="released"):
        memory.view[0] = 1


def test_a_slice_outlives_the_release_and_is_not_locked() -> None:
    before = locked_kib()
    memory = locked_memory()
    part = memory.view[10:20]
    memory.release()
    assert locked_kib() == before
    part[:3] = b"abc"
    assert bytes(part[:4]) == b"abc\0"


def test_a_fork_shares_nothing() -> None:
    memory = LockedMemory(SIZE_BYTES)
    memory.view[:3] = b"old"

    def write() -> str:
        memory.view[:3] = b"new"
        written = bytes(memory.view[:3]).decode()
        memory.release()
        return written

    assert answer_of_child(write) == "new"
    assert bytes(memory.view[:3]) == b"old"
    memory.release()


@pytest.mark.parametrize(
    ("limit_bytes", "reason"), [(0, os.strerror(errno.EPERM)), (SIZE_BYTES - 1, os.strerror(errno.ENOMEM))]
)
def test_memory_over_the_limit_works_and_says_so_once(
    limit_bytes: int, reason: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tornpage.impl.io.memory._FIRST_REFUSAL", threading.Lock()
    )  # a lock may have failed in this process before

    def reserve_twice() -> str:
        forbid_locked_memory(limit_bytes)
        for _ in range(2):
            memory = LockedMemory(SIZE_BYTES)
            assert not memory.is_locked
            memory.view[:] = b"x" * SIZE_BYTES
            memory.release()
        return "\n".join(f"{record.name} {record.levelname} {record.getMessage()}" for record in caplog.records)

    assert answer_of_child(reserve_twice) == (
        f"tornpage.store WARNING memory_not_locked needed_bytes={SIZE_BYTES} limit_bytes={limit_bytes} "
        f"error={reason!r} remedy='raise the limit for all log files and buffers together: ulimit -l, or "
        "LimitMEMLOCK= of the systemd unit'"
    )


def test_more_memory_than_there_are_addresses_is_an_error() -> None:
    with pytest.raises(OSError, match="Cannot allocate memory"):
        LockedMemory(1 << 50)
