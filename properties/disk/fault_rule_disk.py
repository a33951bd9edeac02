"""A recorded disk on which I/O fault rules make calls fail (properties/disk/)."""

import os
from collections.abc import Sequence

from tornpage.impl.io.files import Mapping, OpenFile
from tornpage.properties.disk.enabled_rule import EnabledRule
from tornpage.properties.disk.failing_disk import FailingDisk
from tornpage.properties.disk.inodes import recorded
from tornpage.properties.disk.journal import FileSynced
from tornpage.properties.program.fault_calls import Call

__all__ = ["FaultRuleDisk"]


class FaultRuleDisk(FailingDisk):
    """A disk with I/O fault rules.

    `rules` are the enabled rules. If several rules match a call, the first one applies and the others count it.
    `fault_mattered` is set by the caller that compares answers, if a fault changed one.

    Only calls that a real kernel may fail can fail: closing, unmapping, advice, stat and lock always succeed.
    """

    rules: Sequence[EnabledRule] = ()
    fault_mattered = False

    @property
    def fired(self) -> int:
        """Number of calls that the enabled rules made fail."""
        return sum(fault.fired for fault in self.rules)

    def _struck(self, operation: str, *paths: str) -> EnabledRule | None:
        """Pass a call to every rule; return the first that applies."""
        call = Call(operation, paths)
        striking = [fault for fault in self.rules if fault.strikes(call)]
        return striking[0] if striking else None

    def _may_fail(self, operation: str, *paths: str) -> None:
        """Raise the error of a rule before anything happens."""
        if self.rules and (fault := self._struck(operation, *paths)) is not None:
            self.mark(f"{operation} fails")
            raise _error(fault, paths[0])

    # ---- names ---------------------------------------------------------------------------------------------------

    def create(self, path: str) -> OpenFile:
        """Create a file, or fail."""
        self._may_fail("create", path)
        return super().create(path)

    def open(self, path: str, *, writable: bool) -> OpenFile:
        """Open a file, or fail."""
        self._may_fail("open", path)
        return super().open(path, writable=writable)

    def rename(self, source: str, target: str) -> None:
        """Rename a file, or fail."""
        self._may_fail("rename", target, source)
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        """Remove a file, or fail."""
        self._may_fail("unlink", path)
        super().unlink(path)

    def make_directory(self, path: str) -> None:
        """Create a directory, or fail."""
        self._may_fail("make_directory", path)
        super().make_directory(path)

    def list_directory(self, path: str) -> list[str]:
        """List a directory, or fail."""
        self._may_fail("list_directory", path)
        return super().list_directory(path)

    def sync_directory(self, path: str) -> None:
        """Sync a directory, or fail without being a barrier."""
        self._may_fail("sync_directory", path)
        super().sync_directory(path)

    # ---- content -------------------------------------------------------------------------------------------------

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        """Reserve space, or fail."""
        self._may_fail("allocate", file.path)
        super().allocate(file, size_bytes)

    def map(self, file: OpenFile) -> Mapping:
        """Map a file, or fail."""
        self._may_fail("map", file.path)
        return super().map(file)

    def read(self, file: OpenFile, offset: int, size_bytes: int) -> bytes:
        """Read, or fail."""
        self._may_fail("read", file.path)
        return super().read(file, offset, size_bytes)

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        """Write, or fail after no byte or after the first half."""
        if self.rules and (fault := self._struck("pwrite", file.path)) is not None:
            self._cut_short(fault, file, data, offset)
        super().pwrite(file, data, offset)

    def zero(self, file: OpenFile, offset: int, size_bytes: int) -> None:
        """Zero, or fail after the first half."""
        if self.rules and (fault := self._struck("zero", file.path)) is not None:
            self._cut_short(fault, file, bytes(size_bytes), offset)
        super().zero(file, offset, size_bytes)

    def _cut_short(self, fault: EnabledRule, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        if fault.effect.name == "short-write":
            super()._write(recorded(file).inode, bytes(data[: self._half_of(data, offset)]), offset)
        raise _error(fault, file.path)

    def sync(self, file: OpenFile) -> None:
        """Sync, or fail.

        After a failure every page stays dirty or counts as clean.
        """
        if self.rules and (fault := self._struck("sync", file.path)) is not None:
            if fault.effect.name == "sync-lost":
                self.drop_pages(file)
            else:
                self._note(FileSynced(recorded(file).inode.number, succeeded=False))
            raise _error(fault, file.path)
        super().sync(file)


def _error(fault: EnabledRule, path: str) -> OSError:
    code = fault.effect.code
    return OSError(code, os.strerror(code), path)
