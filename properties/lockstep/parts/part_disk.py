"""A small disk for one part of the store, on which a chosen call may fail."""

import errno
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar

from tornpage.impl.io.files import Mapping as FileMapping
from tornpage.impl.io.files import OpenFile
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.inodes import RecordedMapping
from tornpage.properties.disk.last_disk import LastDisk
from tornpage.properties.judge.evidence import durable_image
from tornpage.properties.lockstep.functions.comparing import is_value
from tornpage.properties.program.case import Disk

__all__ = ["PartDisk", "are_files", "carried_out", "crashed", "reports_a_break", "tried"]

Result = TypeVar("Result")

_DISK: Disk = "posix-strict"
_FAILING = 0.3
"""The share of the operations of a part that meet a failing call."""
_CALLS_MAX = 8
_TRIES_MAX = 40


class PartDisk(LastDisk):
    """A disk in memory with the directory `/part`, or with the files of an image.

    `failing_in` is the number of calls until one fails with EIO before it does anything; 0 lets all calls succeed.
    `failed` counts the calls that failed. The calls that count are those with which a part makes, removes and opens
    files, and the syncs of directories. A sync of a file does not count, since a mapped file keeps its failure.
    With `only_names` only syncs of directories count. While `is_read_only` is set, each change and each file that is
    opened for writing fails with EROFS.
    """

    def __init__(self, image: Image | None = None, *, budget_bytes: int = 1 << 40) -> None:
        super().__init__(image or Image(frozenset(("/", "/part")), {}), disk=_DISK, budget_bytes=budget_bytes)
        self.written: list[tuple[str, int, int]] = []
        self.failing_in = self.failed = 0
        self.only_names = self.is_read_only = False
        self._maps = Counter[int]()

    def _may_fail(self, path: str, *, of_names: bool = False) -> None:
        if self.failing_in and (of_names or not self.only_names):
            self.failing_in -= 1
            if not self.failing_in:
                self.failed += 1
                raise OSError(errno.EIO, "a call that was chosen to fail", path)

    def _may_change(self, path: str, *, of_names: bool = False) -> None:
        if self.is_read_only:
            raise OSError(errno.EROFS, "the disk is read-only", path)
        self._may_fail(path, of_names=of_names)

    def create(self, path: str) -> OpenFile:
        """Create a file, or fail."""
        self._may_change(path)
        return super().create(path)

    def open(self, path: str, *, writable: bool) -> OpenFile:
        """Open a file, or fail."""
        (self._may_change if writable else self._may_fail)(path)
        return super().open(path, writable=writable)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, or fail."""
        self._may_change(source)
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        """Remove a file, or fail."""
        self._may_change(path)
        super().unlink(path)

    def make_directory(self, path: str) -> None:
        """Create a directory, or fail."""
        self._may_change(path)
        super().make_directory(path)

    def sync_directory(self, path: str) -> None:
        """Sync a directory, or fail."""
        self._may_fail(path, of_names=True)
        super().sync_directory(path)

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        """Reserve blocks, or fail."""
        self._may_change(file.path)
        super().allocate(file, size_bytes)

    def map(self, file: OpenFile) -> FileMapping:
        """Map a file, or fail."""
        self._may_fail(file.path)
        mapping = super().map(file)
        assert isinstance(mapping, RecordedMapping)
        self._maps[mapping.inode.number] += 1
        return mapping

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        """Write, or fail."""
        self._may_change(file.path)
        self.written.append((file.path, offset, len(data)))
        super().pwrite(file, data, offset)

    def unmap(self, mapping: FileMapping) -> None:
        """Release the view, and count."""
        super().unmap(mapping)
        assert isinstance(mapping, RecordedMapping)
        self._maps[mapping.inode.number] -= 1

    def zero(self, file: OpenFile, offset: int, size_bytes: int) -> None:
        """Write zeros, or fail."""
        self._may_change(file.path)
        super().zero(file, offset, size_bytes)

    @property
    def held(self) -> tuple[int, int]:
        """How many files are open, and how many are mapped; files without a name count too."""
        return sum(inode.opens for inode in self._inodes.values()), sum(self._maps.values())

    @property
    def content(self) -> dict[str, bytes]:
        """The files that a process sees, by path."""
        return {path: self.peek(path, 0, 1 << 40) for path in self.paths()}

    @property
    def durable(self) -> Image:
        """The files that a power loss leaves for certain."""
        return durable_image(self, disk=_DISK)


def crashed(image: Image, changes: Mapping[str, bytes | None]) -> PartDisk:
    """Return a disk with an image in which some files have another content, or none."""
    files = {path: data for path, data in {**image.files, **changes}.items() if data is not None}
    return PartDisk(Image(image.directories, files))


def are_files(what: str, expected: Mapping[str, bytes], found: Mapping[str, bytes]) -> None:
    """Compare files by path. Raises GuaranteeBroken (8) with the first one that differs."""
    is_value(f"the names of the files of {what}", sorted(expected), sorted(found))
    for path, data in sorted(expected.items()):
        is_value(f"the content of {path}, a file of {what}", data.hex(), found[path].hex())


def tried(what: str, do: Callable[[], Result]) -> Result:
    """Call a part.

    Raises GuaranteeBroken (8) for an exception other than that of a failing call.
    """
    try:
        return do()
    except (GuaranteeBroken, HarnessError, OSError):
        raise
    except Exception as error:
        raise GuaranteeBroken(8, f"{what} raises {type(error).__name__}: {error}") from error


def reports_a_break(what: str, check: Callable[[], object]) -> None:
    """Check the invariants of a broken part. Raises GuaranteeBroken (8) if they hold."""
    try:
        tried(what, check)
    except GuaranteeBroken as broken:
        if "AssertionError" in broken.sentence:
            return
        raise
    raise GuaranteeBroken(8, f"{what} holds", "AssertionError", "no error")


def carried_out(
    disk: PartDisk, rng: random.Random, what: str, do: Callable[[], Result], *, only_names: bool = False
) -> Result:
    """Call a part, often with calls of the disk that fail, and again until it succeeds.

    Raises GuaranteeBroken (8) if it raises OSError although no call failed.
    """
    failing = rng.random() < _FAILING
    for _ in range(_TRIES_MAX):
        disk.failing_in = 1 + rng.randrange(_CALLS_MAX) if failing else 0
        disk.only_names, failed_before = only_names, disk.failed
        failing = rng.random() < _FAILING
        try:
            return tried(what, do)
        except OSError as error:
            if disk.failed == failed_before:
                raise GuaranteeBroken(8, f"{what} raises {error!r} although no call failed") from error
        finally:
            disk.failing_in = 0
    raise GuaranteeBroken(8, f"{what} fails after all failing calls")
