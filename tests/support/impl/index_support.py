"""Helpers of the index tests: small services, puts, and files read by their layout alone."""

import os
import struct
from pathlib import Path

from tests.support.impl.stores import SetClock
from tornpage.impl.index.index_service import IndexService
from tornpage.impl.io.files import Clock
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.dispatching import IndexPuts

__all__ = [
    "EVER",
    "TIME",
    "Put",
    "contents",
    "entries_of",
    "filled",
    "header_of",
    "proven",
    "puts_of",
    "service_of",
]

Put = tuple[int, int, int]
"""Hash, physical offset, store time in ms."""

TIME = 1_700_000_000_000
EVER = (0, (1 << 63) - 1)


def puts_of(*puts: Put) -> IndexPuts:
    """Return puts in the form that dispatch uses."""
    return IndexPuts([put[0] for put in puts], [put[1] for put in puts], [put[2] for put in puts])


def service_of(
    directory: Path,
    *,
    slots: int = 4,
    entries_max: int = 6,
    files: OsFiles | None = None,
    clock: Clock | None = None,
    writable: bool = True,
) -> IndexService:
    """Return a service of small files with nothing loaded."""
    return IndexService(
        files or OsFiles(),
        str(directory / "index"),
        slots=slots,
        entries_max=entries_max,
        clock=clock or SetClock(),
        writable=writable,
    )


def proven(service: IndexService, *puts: Put, from_offset: int = 0, durable_timestamp: int = 0) -> IndexService:
    """Load a service and compare it with a log of these puts, one batch for each."""
    service.load()
    service.begin_reconcile(from_offset, durable_timestamp=durable_timestamp)
    for put in puts:
        service.reconcile(puts_of(put))
    service.end_reconcile()
    service.check()
    return service


def filled(directory: Path, *puts: Put, slots: int = 4, entries_max: int = 6, files: OsFiles | None = None) -> None:
    """Write an index of these puts and close it."""
    service = proven(service_of(directory, slots=slots, entries_max=entries_max, files=files))
    service.put(puts_of(*puts))
    service.close()


def contents(directory: Path) -> list[bytes]:
    """Return the bytes of the index files in the order of their names."""
    index = directory / "index"
    return [(index / name).read_bytes() for name in sorted(os.listdir(index))] if index.is_dir() else []


def header_of(data: bytes) -> tuple[int, ...]:
    """Return the fields of a header."""
    return struct.unpack_from(">qqqqii", data)


def entries_of(data: bytes, *, slots: int) -> list[tuple[int, int, int, int]]:
    """Return the entries that the header counts: hash, offset, seconds, previous number."""
    first = 40 + 4 * slots + 20
    return [struct.unpack_from(">iqii", data, first + 20 * number) for number in range(header_of(data)[5] - 1)]
