"""A small store whose expired files are removed when the test asks; its clock is in UTC."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.impl.faulty_files import FaultyFiles
from tests.support.impl.stores import MESSAGE, HandRunner, SetClock, config_of
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.files import DiskUsage
from tornpage.impl.message.message import Message
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

__all__ = ["HOUR_MS", "NIGHT_MS", "NOON_MS", "Disk", "Retained", "names_in"]

HOUR_MS = 3_600_000
NOON_MS = 1_700_049_600_000
"""12 o'clock, UTC."""
NIGHT_MS = NOON_MS + 16 * HOUR_MS
"""4 o'clock in the following night."""


class Disk(FaultyFiles):
    """A real disk with a scripted usage in per cent, by path if needed."""

    def __init__(self) -> None:
        super().__init__()
        self.percent = 10
        self.percent_of: dict[str, int] = {}

    def disk_usage(self, path: str) -> DiskUsage:
        super().disk_usage(path)
        percent = next((used for part, used in self.percent_of.items() if path.endswith(part)), self.percent)
        return DiskUsage(total_bytes=100 << 30, free_bytes=(100 - percent) << 30)


@dataclass
class Retained:
    """One store in a directory; log files have 1024 bytes and take three of its messages."""

    directory: Path
    config: MessageStoreConfig = field(default_factory=lambda: replace(config_of(), time_zone="UTC"))
    parts: Parts = field(default_factory=Parts)

    def __post_init__(self) -> None:
        self.disk = Disk()
        self.clock = SetClock(NOON_MS)
        self.open()

    def open(self) -> MessageStore:
        """Open it, or open it again."""
        self.runner = HandRunner()
        self.store = MessageStore.open(
            self.directory,
            self.config,
            files=self.disk,
            clock=self.clock,
            parts=self.parts.replacing({ThreadRunner: self.runner}),
        )
        return self.store

    def put(self, count: int = 1, message: Message = MESSAGE, **changes: object) -> list[int]:
        """Put messages, three to a file; return their physical offsets."""
        message = replace(message, body=bytes(180), **changes)  # type: ignore[arg-type]
        return [self.store.put(message).offset for _ in range(count)]

    def settle(self) -> None:
        """Dispatch and flush everything."""
        self.runner.step("reput")
        self.store.flush()

    def clean(self, *, at_ms: int | None = None) -> list[int]:
        """Run the service to the end of a run; return the pauses in it, and the one after it."""
        if at_ms is not None:
            self.clock.now_ms = at_ms
        pauses: list[int] = []
        while not pauses or pauses[-1] < self.config.clean_resource_interval:
            due_ms = self.runner.step("clean")
            assert due_ms is not None
            pauses.append(due_ms - self.runner.now_ms)
            self.runner.now_ms = due_ms
        return pauses

    @property
    def log(self) -> list[int]:
        """Return the begin of each log file on the disk."""
        return [int(name) for name in names_in(self.directory / "commitlog")]


def names_in(directory: Path) -> list[str]:
    """Return the names in a directory, sorted; none where the directory is missing."""
    return sorted(path.name for path in directory.iterdir()) if directory.exists() else []
