"""A JSON state file below `config/`, which is the old version or the new one after a crash, never less (contract 13).

RocketMQ writes NAME.tmp and NAME.bak, removes NAME, renames NAME.tmp, and syncs nothing: a crash can leave no file, an
empty one, or two that say nothing, and then the broker does not start (RMQ-B63). Here:

1. The new version goes to NAME.tmp and the last one to NAME.bak.tmp; both are synced before a name changes.
2. NAME.bak.tmp takes the place of NAME.bak, NAME.tmp that of NAME, and the directory is synced.

So at any moment each of the two names has a whole version, whichever renames the disk has seen. A backup that the state
was loaded from stays as it is until NAME says the same or more. Java reads what is written, and its files are read.

Source: `ConfigManager`, `MixAll.string2File`; spec: services, section 7.
"""

from collections.abc import Callable
from typing import TypeVar

from tornpage.impl.groups.fastjson import parse, written
from tornpage.impl.io.files import Files
from tornpage.impl.log.loading import Finding
from tornpage.impl.log.log_directories import directory_of

__all__ = ["ConfigFile"]

_CHUNK_BYTES = 1 << 20

State = TypeVar("State")


class ConfigFile:
    """Owns NAME, NAME.bak and what they are made of; the directory exists when something is saved.

    One caller at a time. `findings` says what was wrong at the last load.
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

        Where NAME is missing, empty or says nothing, NAME.bak speaks; `read` raises ValueError for a document that
        has another shape, and that counts as saying nothing. Raises OSError when the disk does not read.
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
            self._find("config_file_from_backup", f"{self.path} is missing or says nothing: its backup counts")
        elif main is not None or backup is not None:
            self._find("config_file_unreadable", f"{self.path} and its backup say nothing: what they said is lost")
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
        self.findings = (Finding("note", code, self.path, -1, message),)

    def make_durable(self) -> None:
        """Sync what was loaded, before something is built on it: whoever wrote it may have been killed before his sync.

        Raises OSError.
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
        """Put a document (see impl.groups.fastjson) in the place of the last one, durably.

        Raises OSError: a load then gives the last one, or this one.
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
        """Write a whole new file, durably but for its name."""
        if self._files.stat(path) is not None:  # of an attempt that was broken off
            self._files.unlink(path)
        file = self._files.create(path)
        try:
            self._files.pwrite(file, content, 0)
            self._files.sync(file)
        finally:
            self._files.close(file)


def _read(stored: bytes | None, read: Callable[[object], State]) -> State | None:
    """Return what a file says, None if it says nothing."""
    if not stored:
        return None
    try:
        return read(parse(stored.decode("utf-8")))
    except ValueError:
        return None
