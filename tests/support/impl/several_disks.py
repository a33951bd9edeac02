"""Stores with a log in several directories: a disk for each, with scripted room."""

import errno
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.impl.stores import FaultyFiles, HandRunner, SetClock, config_of
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.files import DiskUsage
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

__all__ = ["TOTAL_BYTES", "SeveralDisks", "Spread", "spread_config"]

TOTAL_BYTES = 1 << 30


class SeveralDisks(FaultyFiles):
    """Real directories that report scripted room.

    `used` has a share by directory name, for it and the paths below it; None is a disk that does not answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.used: dict[str, float | None] = {}

    def disk_usage(self, path: str) -> DiskUsage:
        self._call("disk_usage", path)
        ratio = next((used for name, used in self.used.items() if f"/{name}/" in f"{path}/"), 0.0)
        if ratio is None:
            raise OSError(errno.EIO, "Input/output error", path)
        return DiskUsage(TOTAL_BYTES, TOTAL_BYTES - int(ratio * TOTAL_BYTES))


def spread_config(*paths: str, read_only: tuple[str, ...] = (), files_ahead: int = 0) -> MessageStoreConfig:
    """Return the configuration of a small store whose log lies in these directories."""
    return replace(
        config_of(),
        store_path_commit_log=paths,
        read_only_commit_log_store_paths=read_only,
        mapped_files_ahead=files_ahead,
    )


@dataclass
class Spread:
    """A parent directory for a store and its log directories.

    `runner` has the services of the store opened last.
    """

    parent: Path
    files: SeveralDisks = field(default_factory=SeveralDisks)
    runner: HandRunner = field(default_factory=HandRunner)

    @property
    def root(self) -> Path:
        """The store directory."""
        return self.parent / "root"

    def open(self, *names: str, read_only: tuple[str, ...] = (), files_ahead: int = 0) -> MessageStore:
        """Open the store with log directories of these names."""
        config = spread_config(
            *(str(self.parent / name) for name in names),
            read_only=tuple(str(self.parent / name) for name in read_only),
            files_ahead=files_ahead,
        )
        self.runner = HandRunner()
        parts = Parts({ThreadRunner: self.runner})
        clock = SetClock(ticking=True)
        return MessageStore.open(self.root, config, files=self.files, clock=clock, parts=parts)

    def log(self, name: str, base: int) -> Path:
        """Return the path of a log file, whether or not it exists."""
        return self.parent / name / f"{base:020d}"

    def placed(self) -> dict[str, list[int]]:
        """Return the base offsets of the log files by directory name."""
        return {
            path.name: sorted(int(file.name) for file in path.iterdir() if file.name.isdigit())
            for path in sorted(self.parent.iterdir())
            if path.name != "root" and not path.name.endswith(".unfinished")
        }
