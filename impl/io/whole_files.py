"""Making files whole before they get their names.

RocketMQ 4.9.3 does not start if a file of the log or of a queue has another size than configured (hole G1). A file is
therefore created in a folder of its own, filled and synced there, and then renamed. A store that is killed at any
moment leaves no incomplete file in the directories that RocketMQ reads. A power loss leaves none either, since the
size is durable before the rename.

The folder of a directory `X` is `X.unfinished`, so that both are on one file system. It stays empty between two
creations. The next creation or the next open removes what a failure or a crash left in it. If the folder
cannot be used, files are created under their own names. Source: none, `MappedFile.init` creates a file under its own
name and then sets its size.
"""

import contextlib
import errno
import logging
import os
from collections.abc import Callable, Collection

from tornpage.impl.config.log_paths import UNFINISHED
from tornpage.impl.io.files import Files, OpenFile

__all__ = ["WholeFiles"]

_LOG = logging.getLogger("tornpage.store")

_PART = "file.part"
_NO_FOLDER = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)


class WholeFiles:
    """Creates files in the folders of one store.

    One thread at a time creates files for one directory.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._ready: set[str] = set()
        self._unusable: set[str] = set()

    def make(self, path: str, *, top: str, fill: Callable[[OpenFile], object], replaces: bool = False) -> OpenFile:
        """Create a file, fill it, sync it, and rename it to `path`; return it, open for writing.

        `top` is a directory above the file, on the same file system. `fill` gives the file its size. The caller makes
        the name durable. A file that has the name is replaced if `replaces`; else FileExistsError is raised. Raises the
        OSError of the first call that failed; no new file has the name then.
        """
        if not replaces and self._files.stat(path) is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        folder = f"{top}{UNFINISHED}"
        if not self._is_usable(folder):
            return self._filled(path, fill)
        part = f"{folder}/{_PART}"
        try:
            file = self._filled(part, fill)
        except FileNotFoundError:
            self._ready.discard(folder)  # it was removed; the next attempt creates it again
            raise
        try:
            self._files.close(file)
            self._files.rename(part, path)
        except OSError as error:
            self._unlink(part)
            if error.errno != errno.EXDEV:
                raise
            self._give_up(folder, error)
            return self._filled(path, fill)
        return self._opened(path)

    def _opened(self, path: str) -> OpenFile:
        try:
            return self._files.open(path, writable=True)
        except BaseException:
            self._unlink(path)
            raise

    def _filled(self, path: str, fill: Callable[[OpenFile], object]) -> OpenFile:
        """Create a file with durable content under a name; no file stays if that fails."""
        try:
            file = self._files.create(path)
        except FileExistsError:  # the removal after a failed attempt failed too
            self._files.unlink(path)
            file = self._files.create(path)
        try:
            fill(file)
            self._files.sync(file)
        except BaseException:
            self._files.close(file)
            self._unlink(path)
            raise
        return file

    def _unlink(self, path: str) -> None:
        with contextlib.suppress(OSError):  # the next attempt or the next open removes it
            self._files.unlink(path)

    def _is_usable(self, folder: str) -> bool:
        """Create a folder unless it exists; return False if that is not permitted. Raises OSError."""
        if folder in self._ready or folder in self._unusable:
            return folder in self._ready
        try:
            stat = self._files.stat(folder)
            if stat is None:
                self._files.make_directory(folder)
            elif stat.kind != "directory":
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise
            self._give_up(folder, error)
            return False
        self._ready.add(folder)
        return True

    def _give_up(self, folder: str, error: OSError) -> None:
        """Create files under their own names from here on."""
        self._ready.discard(folder)
        self._unusable.add(folder)
        _LOG.warning(
            "no_unfinished_folder path=%r error=%r effect='RocketMQ may not start after a kill'", folder, error.strerror
        )

    def leftovers(self, tops: Collection[str]) -> dict[str, int]:
        """Return path and size in bytes of each leftover in the folders of some directories."""
        stats = {path: self._files.stat(path) for path in (f"{top}{UNFINISHED}/{_PART}" for top in tops)}
        return {path: stat.size_bytes for path, stat in stats.items() if stat is not None and stat.kind == "file"}

    def prepare(self, tops: Collection[str]) -> None:
        """Create the folders of some directories.

        Raises OSError if that fails for another reason than permissions.
        """
        for top in tops:
            self._is_usable(f"{top}{UNFINISHED}")

    def remove_leftovers(self, tops: Collection[str]) -> None:
        """Remove the files that a crash left in the folders of some directories. Raises OSError.

        The removals need not be durable, since the next open repeats them.
        """
        for path in self.leftovers(tops):
            self._files.unlink(path)
