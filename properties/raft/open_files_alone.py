"""Run the open files of a Raft log alone, and compare them with a plain list (contract 8).

Paths, nested uses, writes, syncs, removed names and calls that fail are drawn. After each operation the open files are
exactly these: the ones in use, the ones with bytes that are not durable, and of the other ones the most recently used,
up to the limit of all. A file is opened once, and no file is closed twice. A path that is opened to be created is
created if it is missing.
"""

import errno
import random
from contextlib import ExitStack
from typing import Any, cast

from tornpage.impl.raft.open_files import FILES_MAX, OpenFiles
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["open_files_hold"]

_PROGRAMS, _EVENTS = 12, 120
_PATHS = tuple(f"/f{number}" for number in range(FILES_MAX + 5))
_MOST = 8
"""Open files beside those in use and those with bytes that are not durable."""
_FAILING = 0.05


class _File:
    """An open file of the harness."""

    def __init__(self, path: str) -> None:
        self.path = path


class _Files:
    """Hold the files that a log opens and closes.

    `open` has the open ones, `made` the created names.
    """

    def __init__(self) -> None:
        self.open: list[_File] = []
        self.made: set[str] = set()
        self.fails = False

    def stat(self, path: str) -> str | None:
        """Return something for a path that exists."""
        return path if path in self.made else None

    def create(self, path: str) -> _File:
        """Create a file."""
        if path in self.made:
            raise GuaranteeBroken(8, f"{path} is created twice")
        return self._opened(path, creates=True)

    def open_one(self, path: str, *, writable: bool) -> _File:
        """Open a file that exists, for writes."""
        if path not in self.made or not writable:
            raise GuaranteeBroken(8, f"{path} is opened otherwise")
        return self._opened(path, creates=False)

    def _opened(self, path: str, *, creates: bool) -> _File:
        if self.fails:
            raise OSError(errno.EMFILE, "too many open files", path)
        if creates:
            self.made.add(path)
        self.open.append(_File(path))
        return self.open[-1]

    def close(self, file: _File) -> None:
        """Close a file."""
        if file not in self.open:
            raise GuaranteeBroken(8, f"{file.path} is closed twice")
        self.open.remove(file)


class _Face:
    """The files as a log sees them."""

    def __init__(self, files: _Files) -> None:
        self.stat, self.create, self.open, self.close = files.stat, files.create, files.open_one, files.close


class _Held:
    """What the list knows of an open file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.users = 0
        self.is_durable = True
        self.is_forgotten = False


class _Program:
    """One drawn program beside the list `_held`, the least recently used file first."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._files = _Files()
        self._open_files = OpenFiles(cast(Any, _Face(self._files)))
        self._held: list[_Held] = []
        self._nested: list[tuple[ExitStack, _Held, _File]] = []

    def run(self) -> None:
        """Draw operations. Now and then the log closes its files, and goes on."""
        events = (
            self._use, self._use, self._use, self._use, self._end_use, self._end_use, self._end_use, self._write,
            self._sync, self._sync, self._forget,
        )  # fmt: skip
        for number in range(_EVENTS):
            self._rng.choice(events)()
            self._judge()
            if number % 50 == 49:
                self._open_files.close()
                for held in self._held:
                    held.is_forgotten = True
                self._judge()
        while self._nested:
            self._end_use()
            self._judge()
        self._open_files.close()
        self._open_files.close()
        self._held.clear()
        self._judge()

    def _current(self, path: str) -> _Held | None:
        return next((each for each in self._held if each.path == path and not each.is_forgotten), None)

    def _use(self) -> None:
        """Begin to use a file. Sometimes the call that opens it fails."""
        path, stack = self._rng.choice(_PATHS), ExitStack()
        held = self._current(path)
        self._files.fails = fails = self._rng.random() < _FAILING
        try:
            creates = path not in self._files.made or self._rng.random() < 0.5
            file = stack.enter_context(self._open_files.opened(path, creates=creates))
        except OSError:
            if held is not None or not fails:
                raise GuaranteeBroken(8, f"the use of {path} fails although no call has failed") from None
            return
        finally:
            self._files.fails = False
        if held is None:
            held = _Held(path)
        else:
            self._held.remove(held)
        self._held.append(held)
        held.users += 1
        if file.path != path or cast(Any, file) not in self._files.open:
            raise GuaranteeBroken(8, f"a file of {file.path} is given for {path}")
        self._nested.append((stack, held, cast(Any, file)))

    def _end_use(self) -> None:
        if not self._nested:
            return
        stack, held, _ = self._nested.pop(self._rng.randrange(len(self._nested)))
        stack.close()
        held.users -= 1
        self._held = [each for each in self._held if each.users or not each.is_forgotten]
        current = [each for each in self._held if not each.is_forgotten]
        closable = [each for each in current if not each.users and each.is_durable]
        for each in closable[: max(0, len(current) - _MOST)]:
            self._held.remove(each)

    def _write(self) -> None:
        for _, held, _ in self._nested[-1:]:
            if not held.is_forgotten:
                self._open_files.note_written(held.path)
                held.is_durable = False

    def _sync(self) -> None:
        for held in [each for each in self._held if not each.is_durable and not each.is_forgotten][:2]:
            self._open_files.note_durable(held.path)
            held.is_durable = True

    def _forget(self) -> None:
        path = self._rng.choice(_PATHS)
        self._open_files.forget(path)
        held = self._current(path)
        if held is not None:
            held.is_forgotten = True

    def _judge(self) -> None:
        self._held = [each for each in self._held if each.users or not each.is_forgotten]
        found, wanted = sorted(each.path for each in self._files.open), sorted(each.path for each in self._held)
        if found != wanted:
            raise GuaranteeBroken(8, "a log keeps other files open", str(wanted), str(found))
        for _, held, file in self._nested:
            if file not in self._files.open:
                raise GuaranteeBroken(8, f"{held.path} is closed while it is used")


def open_files_hold() -> None:
    """Judge some drawn programs. Raises GuaranteeBroken."""
    for seed in range(_PROGRAMS):
        observed("a use of files", _Program(random.Random(f"open files {seed}")).run)
