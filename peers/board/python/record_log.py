"""Keep the messages of queues as one log of records, the part that all adapters share."""

import json
import shutil
import tempfile
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["RecordLog", "copied"]


class RecordLog(ABC):
    """A log of texts in a library, and the queues in it.

    An adapter implements `_open`, `_records`, `_push`, and where the library has them `flush` and `close`. `durable`
    and `kill` are the promises of its mode.
    """

    name = "store"

    def __init__(self, directory: Path | str, *, durable: str = "put", kill: str | None = None, **mode: Any) -> None:
        """Open or recover the store in a directory; read all of its records."""
        self.promises: Mapping[str, Any] = {
            "durable": durable,
            "kill": kill or durable,
            "recovered": False,
            "offsets": False,
            "queues": True,
        }
        self.directory = Path(directory)
        self._queues: dict[tuple[str, int], list[bytes]] = {}
        self.count = 0
        self._open(**mode)
        for record in self._records():
            self._remember(record)

    @abstractmethod
    def _open(self) -> None:
        """Open the library in `self.directory`. Modes are keyword arguments."""

    @abstractmethod
    def _records(self) -> Iterable[str]:
        """Return all records in the library, oldest first."""

    @abstractmethod
    def _push(self, number: int, record: str) -> None:
        """Store record `number`, counted from 0."""

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> tuple[int, int]:
        """Store a message."""
        record = json.dumps([topic, queue, b64encode(body).decode()])
        self._push(self.count, record)
        return self.count, self._remember(record)

    def read(self, topic: str, queue: int, number: int) -> bytes | None:
        """Return a message of a queue, or None if there is none."""
        bodies = self._queues.get((topic, queue), [])
        return bodies[number] if number < len(bodies) else None

    def flush(self) -> None:  # noqa: B027
        """Make earlier messages durable, if the library can."""

    def close(self) -> None:  # noqa: B027
        """Close the library."""

    def _remember(self, record: str) -> int:
        try:
            topic, queue, body = json.loads(record)
        except (TypeError, ValueError) as error:
            raise ValueError(f"record {self.count} is {str(record)[:60]!r}, which was never put") from error
        bodies = self._queues.setdefault((topic, queue), [])
        bodies.append(b64decode(body))
        self.count += 1
        return len(bodies) - 1


@contextmanager
def copied(directory: Path) -> Iterator[Path]:
    """Return a copy of a directory, to list a queue whose reads remove items."""
    with tempfile.TemporaryDirectory(prefix="board-") as work:
        yield Path(shutil.copytree(directory, Path(work) / "copy"))
