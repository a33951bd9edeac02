"""A JSON state file below `config/`, whole after a crash (contract 13).

A crash leaves its old or its new version. RocketMQ writes NAME.tmp and NAME.bak, removes NAME, renames NAME.tmp, and
syncs nothing. A crash can leave no file, an empty one, or two unreadable ones, and then the broker does not start
(RMQ-B63). Here:

1. The new version is written to NAME.tmp and the last one to NAME.bak.tmp; both are synced before any rename.
2. NAME.bak.tmp replaces NAME.bak, NAME.tmp replaces NAME, and the directory is synced.

So each of the two names has a whole version at any time, whichever renames are on disk. A backup from which the state
was loaded stays until NAME holds that state or a later one. Java can read the files, and its files can be read.

Source: `ConfigManager`, `MixAll.string2File`; spec: services, section 7.
"""

from collections.abc import Callable
from typing import TypeVar

from tornpage.impl.groups.fastjson import parse, written
from tornpage.impl.io.files import Files
from tornpage.impl.log.loading import NO_OFFSET, Finding
from tornpage.impl.log.log_directories import directory_of

__all__ = ["ConfigFile"]

_CHUNK_BYTES = 1 << 20

State = TypeVar("State")


class ConfigFile:
    """Owns NAME, NAME.bak and their temporary files. The directory must exist before a save.

    One thread at a time may call it. `findings` lists the defects found by the last load.
    """

    def __init__(self, files: Files, path: str) -> None:
        self.path = path
        self.findings: tuple[Finding, ...] = ()
        self._files = files
        self._last: bytes | None = None
        self._in_backup: bytes | None = None

    # ---- load ----------------------------------------------------------------------------------------------------

    def load(self, read: Callable[[object], State]) -> State | None:
        """Return what `read` makes of the document, None for an empty state.

        If NAME is missing, empty or invalid, NAME.bak is used. `read` raises ValueError for a document of another
        shape, which counts as invalid. Raises OSError if a file cannot be read.
        """
        self.findings, self._last, self._in_backup = (), None, None
        main = self._bytes(self.path)
        state = _read(main, read)
        if state is not None:
            self._last = main
            return state
        backup = self._bytes(f"{self.path}.bak")
        state = _read(backup, read)
        if state is not None:
            self._last = self._in_backup = backup
            self._find("config_file_from_backup", f"{self.path} is missing or invalid: its backup is used")
        elif main is not None or backup is not None:
            self._find("config_file_unreadable", f"{self.path} and its backup are invalid: their content is lost")
        return state

    def _bytes(self, path: str) -> bytes | None:
        stat = self._files.stat(path)
        if stat is None:
            return None
        if stat.kind != "file":
            return b""
        file, data = self._files.open(path, writable=False), b""
        try:
            while piece := self._files.read(file, len(data), _CHUNK_BYTES):
                data += piece
        finally:
            self._files.close(file)
        return data

    def _find(self, code: str, message: str) -> None:
        self.findings = (Finding("note", code, self.path, NO_OFFSET, message),)

    def make_durable(self) -> None:
        """Sync the loaded file before new state depends on it.

        Its writer may have been killed before the sync. Raises OSError.
        """
        if self._last is None:
            return
        file = self._files.open(self.path if self._in_backup is None else f"{self.path}.bak", writable=True)
        try:
            self._files.sync(file)
        finally:
            self._files.close(file)
        self._files.sync_directory(directory_of(self.path))

    # ---- save ----------------------------------------------------------------------------------------------------

    def save(self, document: object) -> None:
        """Replace the stored document (see impl.groups.fastjson) durably.

        Raises OSError; a load then returns the last document or this one.
        """
        new = written(document).encode()
        self._write(f"{self.path}.tmp", new)
        if self._last != self._in_backup:
            assert self._last is not None
            self._write(f"{self.path}.bak.tmp", self._last)
            self._files.rename(f"{self.path}.bak.tmp", f"{self.path}.bak")
        self._files.rename(f"{self.path}.tmp", self.path)
        self._files.sync_directory(directory_of(self.path))
        self._last, self._in_backup = new, self._last

    def _write(self, path: str, content: bytes) -> None:
        """Write a whole new file and sync it; its name is not durable yet. Raises OSError."""
        if self._files.stat(path) is not None:  # left by an interrupted attempt
            self._files.unlink(path)
        file = self._files.create(path)
        try:
            self._files.pwrite(file, content, 0)
            self._files.sync(file)
        finally:
            self._files.close(file)


def _read(stored: bytes | None, read: Callable[[object], State]) -> State | None:
    """Return the state in some bytes, None if they are invalid."""
    if not stored:
        return None
    try:
        return read(parse(stored.decode("utf-8")))
    except ValueError:
        return None
