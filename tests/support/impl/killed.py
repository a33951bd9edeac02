"""Stores as a killed process left them, for the tests of recovery."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.impl.stores import log_bytes
from tornpage.impl.message.message import Message, PutResult
from tornpage.impl.store import MessageStore

__all__ = [
    "BODY_BYTES",
    "FILE_BYTES",
    "Killed",
    "MakeKilled",
    "assert_zeros_behind_the_end",
    "codes",
    "message",
    "numbers",
]

FILE_BYTES = 1024
BODY_BYTES = 200


def message(number: int, queue_id: int = 0) -> Message:
    return Message("T", f"{number:03d}".encode().ljust(BODY_BYTES, b"."), queue_id=queue_id)


@dataclass(frozen=True)
class Killed:
    """A store directory as a killed process left it, and its puts: three records to a file."""

    directory: Path
    results: tuple[PutResult, ...]

    def log(self, base: int) -> Path:
        """Return a log file."""
        return self.directory / "commitlog" / f"{base:020d}"

    def overwrite(self, offset: int, data: bytes) -> None:
        """Damage the log at a physical offset."""
        base = offset // FILE_BYTES * FILE_BYTES
        with open(self.log(base), "r+b") as file:
            file.seek(offset - base)
            file.write(data)

    def forget_floor(self) -> None:
        """Make it look like a store of RocketMQ."""
        (self.directory / "config" / "durableFloor").unlink()

    def exit_cleanly(self) -> None:
        """Make the exit look clean."""
        (self.directory / "abort").unlink()


MakeKilled = Callable[..., Killed]
"""Called as `make(puts, flushed=, trailer=)`."""


def numbers(store: MessageStore) -> list[int]:
    """Return the messages that the store serves.

    Each has to be served by its offset too.
    """
    found = []
    for stored in store.messages():
        again = store.get(stored.offset)
        assert again.message == stored
        found.append(int(stored.body[:3]))
    return found


def codes(store: MessageStore) -> list[tuple[str, str]]:
    """Return severity and code of each finding about the log.

    Findings about queues and index are left out.
    """
    derived = ("queue_rebuilt", "index_rebuilt")
    return [(finding.severity, finding.code) for finding in store.findings if finding.code not in derived]


def assert_zeros_behind_the_end(directory: Path, store: MessageStore) -> None:
    """Assert that a tail was erased."""
    for name, data in log_bytes(directory).items():
        end = store.max_offset - int(name)
        assert not any(data[max(end, 0) :]), name
