"""Populating pages lets other threads run.

Symptom: puts stood still while the pages of a log file were populated, up to 13 ms for each MiB of a warm-up.
Cause: `mmap.madvise` keeps the interpreter until the kernel is done, and the kernel may have to find the memory first.
Fix: the advice is given through ctypes, which lets other threads run meanwhile (impl/io/memory.py, `populate_pages`).
Found by: measuring the time of a put outside its own code.
"""

import sys
from pathlib import Path
from threading import Lock, Thread

import pytest

from tornpage.impl.io.files import Mapping
from tornpage.impl.io.os_files import OsFiles

_SIZE_BYTES = 1 << 20
_TRIES = 400


def test_another_thread_runs_during_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = OsFiles()
    file = files.create(f"{tmp_path}/a")
    files.allocate(file, _SIZE_BYTES)
    mapping = files.map(file)
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1_000)  # no thread gets the interpreter unless the running one releases it
    try:
        assert any(_somebody_runs(files, mapping) for _ in range(_TRIES))
    finally:
        sys.setswitchinterval(interval_s)
    files.unmap(mapping)
    files.close(file)


def _somebody_runs(files: OsFiles, mapping: Mapping) -> bool:
    """Release a waiting thread, populate, and return whether it has run by then.

    It may be slow on a busy machine.
    """
    gate, has_run = Lock(), Lock()
    gate.acquire()
    has_run.acquire()

    def run() -> None:
        with gate:
            has_run.release()

    other = Thread(target=run)
    other.start()
    gate.release()
    files.populate(mapping, 0, _SIZE_BYTES)
    ran = not has_run.locked()
    other.join()
    return ran
