"""Disks that fail on request, or report scripted room."""

import errno
import os
from collections.abc import Callable

from tornpage.impl.io.files import DiskUsage, FileStat, Mapping, OpenFile
from tornpage.impl.io.os_files import OsFiles

__all__ = ["FaultyFiles", "ScriptedDisk"]


class FaultyFiles(OsFiles):
    """The real disk, with a log of barriers and faults on request.

    `faults` maps a verb to a function of the path that may raise; `on_mark` is called with each label.
    """

    def __init__(self) -> None:
        self.faults: dict[str, Callable[[str], None]] = {}
        self.on_mark: Callable[[str], None] | None = None
        self.calls: list[tuple[str, str]] = []

    def _call(self, verb: str, path: str) -> None:
        self.calls.append((verb, path))
        if verb in self.faults:
            self.faults[verb](path)

    def fail(self, verb: str, *, code: int = errno.EIO, part: str = "", times: int = 1 << 30, skip: int = 0) -> None:
        """Let `verb` fail for paths that contain `part`, after `skip` good calls, `times` times."""
        left = [skip, times]

        def fault(path: str) -> None:
            if part not in path:
                return
            if left[0]:
                left[0] -= 1
            elif left[1]:
                left[1] -= 1
                raise OSError(code, os.strerror(code), path)

        self.faults[verb] = fault

    def mend(self) -> None:
        """Let all calls succeed again."""
        self.faults.clear()

    def create(self, path: str) -> OpenFile:
        self._call("create", path)
        return super().create(path)

    def open(self, path: str, *, writable: bool) -> OpenFile:
        self._call("open", path)
        return super().open(path, writable=writable)

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        self._call("allocate", file.path)
        super().allocate(file, size_bytes)

    def map(self, file: OpenFile) -> Mapping:
        self._call("map", file.path)
        return super().map(file)

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        self._call("pwrite", file.path)
        super().pwrite(file, data, offset)

    def sync(self, file: OpenFile) -> None:
        self._call("sync", file.path)
        super().sync(file)

    def sync_directory(self, path: str) -> None:
        self._call("sync_directory", path)
        super().sync_directory(path)

    def rename(self, source: str, target: str) -> None:
        self._call("rename", target)
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._call("unlink", path)
        super().unlink(path)

    def make_directory(self, path: str) -> None:
        self._call("make_directory", path)
        super().make_directory(path)

    def list_directory(self, path: str) -> list[str]:
        self._call("list_directory", path)
        return super().list_directory(path)

    def stat(self, path: str) -> FileStat | None:
        self._call("stat", path)
        return super().stat(path)

    def lock(self, file: OpenFile) -> bool:
        self._call("lock", file.path)
        return super().lock(file)

    def disk_usage(self, path: str) -> DiskUsage:
        self._call("disk_usage", path)
        return super().disk_usage(path)

    def mark(self, label: str) -> None:
        if self.on_mark is not None:
            self.on_mark(label)


class ScriptedDisk(FaultyFiles):
    """A real disk that reports scripted room."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.usage = DiskUsage(total_bytes=1 << 30, free_bytes=1 << 29)

    def use(self, ratio: float) -> None:
        """Set the used share of the disk."""
        self.usage = DiskUsage(total_bytes=1 << 30, free_bytes=(1 << 30) - round(ratio * (1 << 30)))

    def disk_usage(self, path: str) -> DiskUsage:
        self.looks += 1
        super().disk_usage(path)
        return self.usage
