"""Compare the real file layer with the recorded disk and with plain rules.

A program of drawn calls runs on real files and on the recorded disk at once, with the same paths.

1. Answers, errors with their paths, contents, sizes, names and locks are those of the recorded disk.
2. A sync is one fdatasync of the file, a sync of a directory one fsync of it. No other call syncs anything.
3. A write continues after a short write. A write of no byte is an error.
4. Allocated bytes have blocks, and the ranges of data leave out zeros only.
5. Populated, advised, locked and unlocked are the pages of the mapping, and no others.
6. What is closed and unmapped is neither open nor mapped any more.
7. A call that finds no free descriptor is repeated once, if the limit of the process can be raised.
8. The usage of a disk is what a process without privileges may use of it.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import stat
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from unittest.mock import patch

from tornpage.impl.errors import StoreInUse
from tornpage.impl.io import memory, os_files
from tornpage.impl.io.files import DiskUsage, Files, FileStat, Mapping, OpenFile
from tornpage.impl.io.memory import LockedMemory
from tornpage.impl.io.os_files import OsFiles, with_descriptors
from tornpage.impl.io.store_lock import StoreLock
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.disk import Image, parent_of
from tornpage.properties.lockstep.functions.comparing import REFUSED, is_answered, is_value
from tornpage.properties.lockstep.parts.part_disk import PartDisk, tried
from tornpage.properties.scratch import memory_directory, scratch_directory

__all__ = ["check"]

_TURNS = 4
"""How often a program makes each call."""
_PAGE = 4096
_CHUNK_BYTES = 1 << 20
_MSYNC = ctypes.CDLL(None).msync
"""The call that fails for memory which is not mapped. Source: msync(2)."""
_SIZES = (1, 100, _PAGE - 1, _PAGE, 3 * _PAGE, 5 * _PAGE + 7)
_LIMITS = ((8, 8, True), (8, 99, True), (8, 99, False))
"""The soft and the hard limit of descriptors, and whether the soft one may be raised."""


def check(rng: random.Random) -> None:
    """Compare all of them. Raises GuaranteeBroken."""
    with scratch_directory("tornpage-real-", below=memory_directory()) as directory:
        root = os.path.realpath(directory)
        program = _Program(root, rng)
        maps, advised = SimpleNamespace(**vars(mmap)), list[int]()

        class Memory(mmap.mmap):
            """A mapping that notes each advice."""

            def madvise(self, option: int, *_: int) -> None:
                """Note the advice, and give it."""
                advised.append(option)
                super().madvise(option)

        maps.mmap = Memory
        program.advised = advised
        with patch.multiple(os_files, os=program.system, mmap=maps), patch.object(memory, "_LIBC", program.library):
            program.run()
            _zeros(root, rng)
            _other_kinds(root)
            _two_openers(root, rng)
            _locked_memory(program.library, rng)
    _descriptors()


# ---- the system, with notes ------------------------------------------------------------------------------------------


class _System:
    """Stands for the module `os`.

    It notes syncs, writes less than it may, and has a drawn usage of the disk.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.syncs: list[tuple[str, int]] = []
        self.is_stuck = False
        self.usage = SimpleNamespace(f_blocks=1000, f_bfree=300, f_bavail=250, f_frsize=512, f_bsize=_PAGE)

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def fdatasync(self, fd: int) -> None:
        """Note the file and sync it."""
        os.fdatasync(fd)
        self.syncs.append(("fdatasync", os.fstat(fd).st_ino))

    def fsync(self, fd: int) -> None:
        """Note the file or directory and sync it."""
        os.fsync(fd)
        self.syncs.append(("fsync", os.fstat(fd).st_ino))

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        """Write a drawn part of the data, at least one byte; nothing if the disk is stuck."""
        if self.is_stuck:
            return 0
        return os.pwrite(fd, data[: self._rng.choice((len(data), 1 + self._rng.randrange(len(data))))], offset)

    def statvfs(self, path: str) -> object:
        """Return the drawn usage of an existing path."""
        os.statvfs(path)
        return self.usage


class _Library:
    """Stands for the C library.

    It notes locks and advice by address and size, and may refuse to lock.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int]] = []
        self.refuses = False

    def mlock(self, address: int, size_bytes: int) -> int:
        """Note the lock; return 0, or -1 if locks are refused."""
        self.calls.append(("mlock", address, size_bytes))
        return -1 if self.refuses else 0

    def munlock(self, address: int, size_bytes: int) -> int:
        """Note the end of a lock."""
        self.calls.append(("munlock", address, size_bytes))
        return 0

    def madvise(self, address: int, size_bytes: int, advice: int) -> int:
        """Note an advice."""
        self.calls.append((f"madvise {advice}", address, size_bytes))
        return 0


# ---- calls on both disks ---------------------------------------------------------------------------------------------


@dataclass
class _Opened:
    """A file that is open on both disks."""

    path: str
    real: OpenFile
    known: OpenFile
    is_writable: bool
    use: str = ""
    """Whether it was `locked` or `mapped`, since a mapping keeps the lock of a real file until its end."""


@dataclass
class _Mapped:
    """A mapping of a file on both disks."""

    path: str
    real: Mapping
    known: Mapping
    is_writable: bool


def _outcome(what: str, do: Callable[[], object]) -> object:
    """Return the answer of a call, or its error as class, number and path."""
    try:
        return tried(what, do)
    except OSError as error:
        return type(error).__name__, error.errno, error.filename


class _Program:
    """Runs drawn calls on both disks, and compares them."""

    def __init__(self, root: str, rng: random.Random) -> None:
        self._rng, self._root = rng, root
        self.system, self.library, self.advised = _System(rng), _Library(), list[int]()
        above = [root]
        while above[-1] != "/":
            above.append(parent_of(above[-1]))
        self._real: Files = OsFiles()
        self._known: Files = PartDisk(Image(frozenset(above), {}))
        self._opened: list[_Opened] = []
        self._mapped: list[_Mapped] = []
        self._unmapped: list[_Mapped] = []
        names = (f"{root}/a", f"{root}/b", f"{root}/d", f"{root}/d/a", f"{root}/d/d", f"{root}/no/a", f"{root}/a/x")
        self._paths = names

    def run(self) -> None:
        """Run the program, and end with everything closed. Raises GuaranteeBroken."""
        steps = (self._create, self._open, self._close, self._allocate, self._map, self._store, self._unmap,
                 self._pages, self._read, self._ranges, self._write, self._write, self._zero, self._sync,
                 self._sync_directory, self._rename, self._unlink, self._make_directory, self._lock,
                 self._usage, self._closed)  # fmt: skip
        plan = [*steps * _TURNS, *(self._create, self._open, self._map) * _TURNS]
        self._rng.shuffle(plan)
        for step in plan:
            step()
            self._compare(whole=False)
        self._compare()
        while self._mapped:
            self._unmap()
        while self._opened:
            self._close()
        self._compare()
        self._is_released()

    def _both(self, what: str, real: Callable[[], object], known: Callable[[], object], *, syncs: int = 0) -> object:
        """Compare the answers of both disks; return it. `syncs` is the number of expected syncs."""
        self.system.syncs.clear()
        found, expected = _outcome(what, real), _outcome(what, known)
        is_value(f"{what} on real files", expected, found)
        if isinstance(expected, tuple) and isinstance(expected[0], str):
            syncs = 0
        is_value(f"the number of syncs of {what}", syncs, len(self.system.syncs))
        return expected

    def _on(self, what: str, file: _Opened, do: Callable[[Files, OpenFile], object], *, syncs: int = 0) -> object:
        return self._both(
            f"{what} of {file.path}",
            lambda: do(self._real, file.real),
            lambda: do(self._known, file.known),
            syncs=syncs,
        )

    def _at(self, what: str, do: Callable[[Files], object], *, syncs: int = 0) -> object:
        return self._both(what, lambda: do(self._real), lambda: do(self._known), syncs=syncs)

    def _compare(self, *, whole: bool = True) -> None:
        """Compare all names, sizes and contents; or one path that is drawn, and the mappings."""
        for path in (self._root, f"{self._root}/d") if whole else ():
            self._at(f"the names in {path}", lambda files, path=path: files.list_directory(path))  # type: ignore[misc]
        for path in self._paths if whole else (self._rng.choice(self._paths),):
            found = self._at(f"the stat of {path}", lambda files, path=path: files.stat(path))  # type: ignore[misc]
            if found is not None and os.path.isfile(path):
                file = self._known.open(path, writable=False)
                expected = self._known.read(file, 0, 1 << 20)
                self._known.close(file)
                with open(path, "rb") as stream:
                    is_value(f"the content of {path}", expected.hex(), stream.read().hex())
        for mapped in self._mapped:
            is_value(f"a mapping of {mapped.path}", bytes(mapped.known.view), bytes(mapped.real.view))
            is_value(
                f"whether a mapping of {mapped.path} is writable", mapped.is_writable, not mapped.real.view.readonly
            )

    def _is_released(self) -> None:
        """Compare what the process still holds of the directory with nothing."""
        held = []
        for fd in os.listdir("/proc/self/fd"):
            try:
                held.append(os.readlink(f"/proc/self/fd/{fd}"))
            except OSError:  # the list itself
                continue
        is_value("what is open after all was closed", [], [path for path in held if path.startswith(self._root)])
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as stream:
            is_value("what is mapped after all was unmapped", 0, stream.read().count(self._root))

    def _a_file(self) -> _Opened | None:
        return self._rng.choice(self._opened) if self._opened else None

    # ---- names -------------------------------------------------------------------------------------------------------

    def _take(self, what: str, path: str, do: Callable[[Files], OpenFile], *, is_writable: bool) -> None:
        taken: list[OpenFile] = []

        def take(files: Files) -> str:
            taken.append(do(files))
            return taken[-1].path

        self._at(f"{what} of {path}", take)
        if len(taken) == 2:
            self._opened.append(_Opened(path, taken[0], taken[1], is_writable))
            is_value(f"whether {path} stays open in a new program", False, os.get_inheritable(taken[0].fd))  # type: ignore[attr-defined]

    def _create(self) -> None:
        path = self._rng.choice(self._paths)
        self._take("create", path, lambda files: files.create(path), is_writable=True)
        if self._opened and self._opened[-1].path == path and os.path.isfile(path):
            is_value(f"whether {path} is executable or writable for others", 0, os.stat(path).st_mode & 0o133)
            is_value(
                f"whether {path} is a readable and writable file",
                stat.S_IFREG | 0o600,
                os.stat(path).st_mode & 0o170600,
            )

    def _open(self) -> None:
        path, is_writable = self._rng.choice(self._paths), self._rng.random() < 0.6
        self._take("open", path, lambda files: files.open(path, writable=is_writable), is_writable=is_writable)

    def _close(self) -> None:
        if (file := self._a_file()) is not None:
            self._opened.remove(file)
            self._on("close", file, lambda files, opened: files.close(opened))

    def _closed(self) -> None:
        """Use a file right after it was closed."""
        if (file := self._a_file()) is not None:
            self._opened.remove(file)
            self._on("close", file, lambda files, opened: files.close(opened))
            calls: Sequence[Callable[[Files, OpenFile], object]] = (
                lambda files, opened: files.read(opened, 0, 1),
                lambda files, opened: files.sync(opened),
                lambda files, opened: files.map(opened),
                lambda files, opened: files.lock(opened),
                lambda files, opened: files.allocate(opened, 1),
            )
            ranges = _outcome("the ranges of a closed file", lambda: self._real.next_data(file.real, 0))
            is_value(f"the ranges of {file.path}, closed", ("OSError", errno.EBADF, file.path), ranges)
            self._on("a call after the close", file, self._rng.choice(calls))

    def _rename(self) -> None:
        path = self._rng.choice(self._paths)
        target = self._rng.choice([each for each in self._paths if parent_of(each) == parent_of(path)])

        def rename(files: Files) -> object:
            try:
                files.rename(path, target)
            except OSError as error:  # of a target that is a directory, the disks name different ones of the two
                is_value("whether the error of a rename names a path", True, error.filename in (path, target))
                return type(error).__name__, error.errno
            return None

        if not os.path.isdir(path):  # the recorded disk renames files only
            self._at(f"the rename of {path}", rename)

    def _unlink(self) -> None:
        path = self._rng.choice(self._paths)
        if self._rng.random() < 0.4:
            self._at(f"the unlink of {path}", lambda files: files.unlink(path))

    def _make_directory(self) -> None:
        path = self._rng.choice(self._paths[2:])
        self._at(f"the directory {path}", lambda files: files.make_directory(path))

    def _sync_directory(self) -> None:
        path = self._rng.choice((self._root, *self._paths))
        if os.path.isdir(path):
            self._at(f"the sync of the directory {path}", lambda files: files.sync_directory(path), syncs=1)
            is_value(f"the sync of {path}", [("fsync", os.stat(path).st_ino)], self.system.syncs)
        else:
            self._at(f"the sync of the directory {path}", lambda files: files.sync_directory(path))

    # ---- content -----------------------------------------------------------------------------------------------------

    def _room(self, file: _Opened) -> int:
        """Return up to where a file may be written.

        The recorded disk does not resize a mapped file.
        """
        size = len(self._known.read(file.known, 0, 1 << 30))
        return size if self._mapped else 1 << 20

    def _allocate(self) -> None:
        file, size = self._a_file(), self._rng.choice(_SIZES)
        if file is None or size > self._room(file):
            return
        self._on(f"an allocation of {size} bytes", file, lambda files, opened: files.allocate(opened, size))
        if file.is_writable:
            blocks = os.fstat(file.real.fd).st_blocks  # type: ignore[attr-defined]
            is_value(f"whether {file.path} has blocks for {size} bytes", True, blocks * 512 >= size)

    def _read(self) -> None:
        if (file := self._a_file()) is not None:
            offset, size = self._rng.choice((0, 1, *_SIZES)), self._rng.choice(_SIZES)
            self._on(f"a read at {offset}", file, lambda files, opened: files.read(opened, offset, size))

    def _write(self) -> None:
        if (file := self._a_file()) is None:
            return
        offset = self._rng.choice((0, 1, *_SIZES))
        data = self._rng.randbytes(self._rng.choice((0, 1, 700)))
        if offset + len(data) > self._room(file):
            return
        if file.is_writable and data and self._rng.random() < 0.1:
            self.system.is_stuck = True
            found = _outcome("a write", lambda: self._real.pwrite(file.real, data, offset))
            self.system.is_stuck = False
            is_value(f"a write of no byte into {file.path}", ("OSError", errno.EIO, file.path), found)
            return
        given = memoryview(data) if self._rng.random() < 0.5 else data
        if data or file.is_writable:
            self._on(f"a write at {offset}", file, lambda files, opened: files.pwrite(opened, given, offset))

    def _zero(self) -> None:
        file = self._a_file()
        if file is None or not file.is_writable:
            return
        size = len(self._known.read(file.known, 0, 1 << 30))
        start = self._rng.randrange(size + 1)
        count = self._rng.randrange(size - start + 1)
        self._on(f"zeros at {start}", file, lambda files, opened: files.zero(opened, start, count))

    def _ranges(self) -> None:
        """Walk over the ranges of data. Bytes that the ranges leave out are zeros."""
        if (file := self._a_file()) is None:
            return
        content = self._known.read(file.known, 0, 1 << 30)
        position = self._rng.choice((0, 1, len(content)))
        seen = bytearray(len(content))
        seen[:position] = content[:position]
        while (found := tried("next_data", lambda: self._real.next_data(file.real, position))) is not None:  # noqa: B023
            start, end = found
            is_value(f"whether {found} is a range after {position}", True, position <= start < end <= len(content))
            seen[start:end], position = content[start:end], end
        is_value(f"the ranges of data in {file.path}", content.hex(), bytes(seen).hex())

    def _sync(self) -> None:
        if (file := self._a_file()) is not None:
            self._on("a sync", file, lambda files, opened: files.sync(opened), syncs=1)
            number = os.fstat(file.real.fd).st_ino  # type: ignore[attr-defined]
            is_value(f"the sync of {file.path}", [("fdatasync", number)], self.system.syncs)

    def _lock(self) -> None:
        if (file := self._a_file()) is not None and file.use != "mapped":
            file.use = "locked"
            self._on("a lock", file, lambda files, opened: files.lock(opened))

    def _usage(self) -> None:
        usage = self.system.usage
        usage.f_blocks = 1_000_000 + self._rng.randrange(1000)
        usage.f_bfree = self._rng.choice((0, 1, 4711, usage.f_blocks))
        usage.f_bavail = self._rng.randrange(usage.f_bfree + 1)
        used = usage.f_blocks - usage.f_bfree
        expected = DiskUsage((used + usage.f_bavail) * usage.f_frsize, usage.f_bavail * usage.f_frsize)
        is_value(f"the usage of {usage}", expected, self._real.disk_usage(self._root))
        path = self._rng.choice(self._paths)
        found = _outcome(f"the usage of {path}", lambda: self._real.disk_usage(path))
        known = _outcome("the usage of a disk", lambda: self._known.disk_usage(path))
        is_value(f"the usage of the disk of {path}", expected if isinstance(known, DiskUsage) else known, found)

    # ---- mappings ----------------------------------------------------------------------------------------------------

    def _map(self) -> None:
        if (file := self._a_file()) is None or file.use == "locked":
            return
        file.use = "mapped"
        taken: list[Mapping] = []

        def take(files: Files, opened: OpenFile) -> int:
            taken.append(files.map(opened))
            return len(taken[-1].view)

        self._on("a mapping", file, take)
        if len(taken) == 2:
            is_empty = not len(taken[0].view)
            self._mapped.append(_Mapped(file.path, taken[0], taken[1], file.is_writable and not is_empty))

    def _store(self) -> None:
        """Store bytes through a mapping."""
        if self._mapped and (mapped := self._rng.choice(self._mapped)).is_writable:
            start = self._rng.randrange(len(mapped.real.view))
            data = self._rng.randbytes(min(100, len(mapped.real.view) - start))
            for each in (mapped.real, mapped.known):
                each.view[start : start + len(data)] = data

    def _unmap(self) -> None:
        if self._mapped:
            mapped = self._mapped.pop(self._rng.randrange(len(self._mapped)))
            self._both(
                f"the unmap of {mapped.path}", lambda: self._real.unmap(mapped.real),
                lambda: self._known.unmap(mapped.known),
            )  # fmt: skip
            self._unmapped.append(mapped)  # an object that is dropped would be unmapped anyway
            for each in (mapped.real, mapped.known):
                try:
                    bytes(each.view)
                except ValueError:
                    continue
                raise GuaranteeBroken(11, f"a view of {mapped.path} can be used after the unmap")

    def _pages(self) -> None:
        """Populate, advise, lock or unlock the pages of a mapping."""
        if not self._mapped:
            return
        mapped = self._rng.choice(self._mapped)
        size = len(mapped.real.view)
        if size and not mapped.is_writable:
            return
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped.real.view)) if size else 0
        position, count = self._rng.choice((0, _PAGE, 8 * _PAGE)), self._rng.choice((1, _PAGE, 9 * _PAGE))
        populated = [("madvise 23", address + position, min(count, size - position))] if position < size else []
        self.library.refuses = self._rng.random() < 0.4
        is_locked = not size or not self.library.refuses
        real, locked, unlocked = mapped.real, ("mlock", address, size), ("munlock", address, size)
        rows: tuple[tuple[str, Callable[[], object], object, list[tuple[str, int, int]], list[int]], ...] = (
            ("populate", lambda: self._real.populate(real, position, count), None, populated, []),
            ("advise", lambda: self._real.advise_will_need(real), None, [], [mmap.MADV_WILLNEED] if size else []),
            ("lock", lambda: self._real.lock_memory(real), is_locked, [locked] if size else [], []),
            ("unlock", lambda: self._real.unlock_memory(real), None, [unlocked] if size else [], []),
        )
        for what, do, answer, calls, advice in rows:
            self.library.calls.clear()
            self.advised.clear()
            is_value(f"{what} of the pages of {mapped.path}", answer, tried(what, do))
            is_value(f"the calls of {what} of {mapped.path}", (calls, advice), (self.library.calls, self.advised))


# ---- what needs no program -------------------------------------------------------------------------------------------


def _zeros(root: str, rng: random.Random) -> None:
    """Zero a range of a large file, whose ends are beside those of chunks."""
    files, path, size = OsFiles(), f"{root}/zeros", 2 * _CHUNK_BYTES + 9
    ends = (0, 1, _CHUNK_BYTES - 1, _CHUNK_BYTES, _CHUNK_BYTES + 1, 2 * _CHUNK_BYTES, size)
    start, end = sorted(rng.sample(ends, 2))
    file = files.create(path)
    tried("a large write", lambda: files.pwrite(file, b"\xff" * size, 0))
    tried("a large zero", lambda: files.zero(file, start, end - start))
    found = files.read(file, 0, size + 1)
    is_value("whether zeros fill a range", True, found == b"\xff" * start + bytes(end - start) + b"\xff" * (size - end))
    files.close(file)


def _other_kinds(root: str) -> None:
    """Compare the stat of what is neither a file nor a directory, and of links."""
    files, pipe = OsFiles(), f"{root}/pipe"
    os.mkfifo(pipe)
    for target, expected in ((pipe, FileStat("other", 0)), (root, FileStat("directory", 0)), (f"{root}/none", None)):
        link = f"{root}/link"
        os.symlink(target, link)
        is_value(f"the stat of a link to {target}", expected, files.stat(link))
        is_value(f"the stat of {target}", expected, files.stat(target))
        files.unlink(link)


class _Raced(PartDisk):
    """A disk on which another process makes the lock file just before the store does."""

    is_raced = False

    def stat(self, path: str) -> FileStat | None:
        """Return None for the lock file, and then make it."""
        found = super().stat(path)
        if found is None and self.is_raced and path == "/part/lock":
            self.close(self.create(path))
        return found


def _two_openers(root: str, rng: random.Random) -> None:
    """Take the lock of a directory twice.

    The second opener is refused until the first one releases it.
    """
    disk = _Raced()
    disk.is_raced = rng.random() < 0.5
    places: tuple[tuple[Files, str], ...] = ((OsFiles(), root), (disk, "/part"))
    for (files, where), number in product(places, range(3)):
        disk.written.clear()
        first, second = StoreLock(files, where), StoreLock(files, where)
        tried("the lock of a directory", first.acquire)
        is_value(
            "the writes into a lock file", [("/part/lock", 0, 4)] if files is disk and number != 1 else [], disk.written
        )
        try:
            second.acquire()
        except StoreInUse:
            pass
        else:
            raise GuaranteeBroken(14, "a second opener takes the lock of a directory")
        if files is not disk:
            _is_byte_locked(f"{where}/lock")
        for lock in (second, first, first):
            tried("the release of a directory", lock.release)
        file = files.open(f"{where}/lock", writable=True)
        is_value("the content of a lock file", b"lock", files.read(file, 0, 4))
        if number == 1:
            files.pwrite(file, rng.choice((b"kloc", b"lokk", b"pock")), 0)
        files.close(file)
    is_value("the files that a released directory holds", (0, 0), disk.held)


def _is_byte_locked(path: str) -> None:
    """Compare which bytes of a lock file another open of it can lock: all but the first one."""
    fd = os.open(path, os.O_RDWR)
    try:
        for start, is_free in ((0, False), (1, True), (1 << 40, True)):
            request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, 1, 0)
            try:
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, request)
                found = True
            except BlockingIOError:
                found = False
            is_value(f"whether another process can lock byte {start} of a lock file", is_free, found)
    finally:
        os.close(fd)


def _locked_memory(library: _Library, rng: random.Random) -> None:
    """Compare memory that is to be locked: zeros, one lock, and one unlock at the release."""
    size = rng.choice((1, _PAGE, 3 * _PAGE + 1))
    for refuses, is_held in product((False, True), (False, True)):
        library.refuses = refuses
        library.calls.clear()
        locked = tried("locked memory", lambda: LockedMemory(size))
        address = ctypes.addressof(ctypes.c_char.from_buffer(locked.view))
        is_value("the content of new memory", bytes(size), bytes(locked.view))
        is_value("whether memory is writable", False, locked.view.readonly)
        is_value("whether memory is locked", not refuses, locked.is_locked)
        is_value("the locks of memory", [("mlock", address, size)], library.calls)
        held = locked.view[:1] if is_held else None
        for _ in range(2):
            tried("the release of memory", locked.release)
        unlocked = [] if refuses else [("munlock", address, size)]
        is_value("the locks and unlocks of memory", [("mlock", address, size), *unlocked], library.calls)
        is_value("whether released memory is locked", False, locked.is_locked)
        is_answered("a view of released memory", REFUSED, lambda locked=locked: bytes(locked.view))
        is_unmapped = _MSYNC(ctypes.c_void_p(address), ctypes.c_size_t(size), 1) == -1
        is_value("whether released memory is unmapped", not is_held, is_unmapped)
        if held is not None:
            is_value("memory that is still in use", b"\0", bytes(held))
            held.release()


def _descriptors() -> None:
    """Compare calls that find no free descriptor, with each limit and each number of failures."""
    for (soft, hard, may_raise), failing, code in product(_LIMITS, (0, 1, 2), (errno.EMFILE, errno.ENFILE)):
        limits, calls = [(soft, hard)], Counter[str]()

        def raised(_: int, wanted: tuple[int, int], *, may_raise: bool = may_raise) -> None:
            calls["raised"] += 1  # noqa: B023
            if not may_raise:
                raise ValueError("not allowed to raise the limit")
            limits.append(wanted)  # noqa: B023

        def call(failing: int = failing, code: int = code) -> str:
            calls["called"] += 1  # noqa: B023
            if calls["called"] <= failing:  # noqa: B023
                raise OSError(code, os.strerror(code))
            return "done"

        stand_in = SimpleNamespace(RLIMIT_NOFILE=7, getrlimit=lambda _: limits[-1], setrlimit=raised)  # noqa: B023
        with patch.object(os_files, "resource", stand_in):
            found = _outcome("a call without a descriptor", lambda: with_descriptors(call))
        can_repeat = failing and code == errno.EMFILE and soft < hard
        is_repeated = can_repeat and may_raise
        error = ("OSError", code, None)
        wanted = "done" if failing == 0 or (is_repeated and failing == 1) else error
        what = f"a call that fails {failing} times at the limits {soft} and {hard}"
        is_value(what, wanted, found)
        is_value(f"the number of calls, {what}", 1 + int(bool(is_repeated)), calls["called"])
        is_value(f"the limit, {what}", (hard, hard) if is_repeated else (soft, hard), limits[-1])
