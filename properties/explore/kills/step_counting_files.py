"""Count the calls at the file seam.

A process can then be killed when a chosen call begins.
"""

from collections.abc import Callable

from tornpage.impl.io.files import DiskUsage, Files, FileStat, Mapping, OpenFile

__all__ = ["StepCountingFiles"]


class StepCountingFiles:
    """Wrap another `Files`, and call `step` before each method, including `mark`."""

    def __init__(self, inner: Files, step: Callable[[], None]) -> None:
        self._inner = inner
        self._step = step

    def create(self, path: str) -> OpenFile:
        """Count the call, then make it."""
        self._step()
        return self._inner.create(path)

    def open(self, path: str, *, writable: bool) -> OpenFile:
        """Count the call, then make it."""
        self._step()
        return self._inner.open(path, writable=writable)

    def close(self, file: OpenFile) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.close(file)

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.allocate(file, size_bytes)

    def map(self, file: OpenFile) -> Mapping:
        """Count the call, then make it."""
        self._step()
        return self._inner.map(file)

    def unmap(self, mapping: Mapping) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.unmap(mapping)

    def populate(self, mapping: Mapping, position: int, size_bytes: int) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.populate(mapping, position, size_bytes)

    def advise_will_need(self, mapping: Mapping) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.advise_will_need(mapping)

    def lock_memory(self, mapping: Mapping) -> bool:
        """Count the call, then make it."""
        self._step()
        return self._inner.lock_memory(mapping)

    def unlock_memory(self, mapping: Mapping) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.unlock_memory(mapping)

    def read(self, file: OpenFile, offset: int, size_bytes: int) -> bytes:
        """Count the call, then make it."""
        self._step()
        return self._inner.read(file, offset, size_bytes)

    def pwrite(self, file: OpenFile, data: bytes | memoryview, offset: int) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.pwrite(file, data, offset)

    def zero(self, file: OpenFile, offset: int, size_bytes: int) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.zero(file, offset, size_bytes)

    def sync(self, file: OpenFile) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.sync(file)

    def sync_directory(self, path: str) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.sync_directory(path)

    def rename(self, source: str, target: str) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.rename(source, target)

    def unlink(self, path: str) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.unlink(path)

    def make_directory(self, path: str) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.make_directory(path)

    def list_directory(self, path: str) -> list[str]:
        """Count the call, then make it."""
        self._step()
        return self._inner.list_directory(path)

    def stat(self, path: str) -> FileStat | None:
        """Count the call, then make it."""
        self._step()
        return self._inner.stat(path)

    def lock(self, file: OpenFile) -> bool:
        """Count the call, then make it."""
        self._step()
        return self._inner.lock(file)

    def next_data(self, file: OpenFile, position: int) -> tuple[int, int] | None:
        """Count the call, then make it."""
        self._step()
        return self._inner.next_data(file, position)

    def disk_usage(self, path: str) -> DiskUsage:
        """Count the call, then make it."""
        self._step()
        return self._inner.disk_usage(path)

    def mark(self, label: str) -> None:
        """Count the call, then make it."""
        self._step()
        self._inner.mark(label)
