"""The journal entries of a workload, as the crash model understands them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.journal import (
    PAGE_BYTES,
    DirectoryMade,
    DirectoryRemoved,
    DirectoryRenamed,
    DirectorySynced,
    Entry,
    FileCreated,
    FileLinked,
    FileMade,
    FileRenamed,
    FileSynced,
    FileUnlinked,
    PageFreed,
    PageWritten,
    Resized,
)
from tornpage.properties.explore.real_faults.file_systems.workload import BASE, BASE_DIRECTORIES, Operation, content

__all__ = ["START", "History", "history_of"]

START = Image(
    frozenset({"/", *BASE_DIRECTORIES}), {path: content(0, 0, size_bytes) for path, size_bytes in BASE.items()}
)
_BARRIERS = (FileSynced, DirectorySynced)


@dataclass(frozen=True, slots=True)
class History:
    """The journal of a workload. `ends` has the length of the journal after each operation."""

    journal: Sequence[Entry]
    ends: Sequence[int]

    def positions(self, mark: int) -> list[int]:
        """Return the positions in the journal where a crash after a mark of the recording may be.

        A barrier that had started and not returned may have taken effect. Any other operation that had started counts,
        because its entries are in flight.
        """
        if mark < 0:
            return [0]
        number = mark // 2
        end = self.ends[number]
        if mark % 2:
            return [end]
        before = self.ends[number - 1] if number else 0
        return [*(n for n in range(before, end) if isinstance(self.journal[n], _BARRIERS)), end]


def history_of(operations: Sequence[Operation]) -> History:
    """Return the journal of a workload that starts with `START`."""
    writer, journal, ends = _Writer(), list[Entry](), list[int]()
    for operation in operations:
        journal += writer.entries(operation)
        ends.append(len(journal))
    return History(journal, ends)


class _Writer:
    def __init__(self) -> None:
        self.names = {path: number for number, path in enumerate(sorted(START.files))}
        self.contents = {self.names[path]: bytearray(held) for path, held in START.files.items()}

    def entries(self, operation: Operation) -> Iterator[Entry]:
        path, number = operation.path, self.names.get(operation.path, -1)
        match operation.kind:
            case "create":
                number = len(self.contents)
                self.names[path], self.contents[number] = number, bytearray()
                yield FileCreated(number, path)
            case "mkdir":
                yield DirectoryMade(path)
            case "rmdir":
                yield DirectoryRemoved(path)
            case "rename_directory":
                self._move(path, operation.target)
                yield DirectoryRenamed(path, operation.target)
            case "link":
                self.names[operation.target] = number
                yield FileLinked(number, operation.target)
            case "link_nameless" | "link_synced":
                number = len(self.contents)
                self.names[path], self.contents[number] = number, bytearray()
                yield FileMade(number)
                yield from self._write(number, operation)
                if operation.kind == "link_synced":
                    yield FileSynced(number, succeeded=True)
                yield FileLinked(number, path)
            case "rename":
                self.names[operation.target] = self.names.pop(path)
                yield FileRenamed(number, path, operation.target)
            case "unlink":
                del self.names[path]
                yield FileUnlinked(number, path)
            case "write" | "map":
                yield from self._write(number, operation)
            case "write_synced":
                yield from self._write(number, operation)
                yield self._synced(number, operation)
            case "msync_range":
                yield self._synced(number, operation)
            case "truncate":
                yield from self._resize(number, operation.size_bytes)
            case "allocate":
                yield from self._resize(number, max(operation.size_bytes, len(self.contents[number])))
            case "fsync" | "fdatasync" | "msync":
                yield FileSynced(number, succeeded=True, data_only=operation.kind != "fsync")
            case "fsync_directory":
                yield DirectorySynced(path)

    def _synced(self, number: int, operation: Operation) -> FileSynced:
        """Return the sync of the bytes of an operation."""
        extent = operation.position, operation.position + operation.size_bytes
        return FileSynced(number, succeeded=True, data_only=True, extent=extent)

    def _move(self, source: str, target: str) -> None:
        self.names = {
            target + path[len(source) :] if path.startswith(f"{source}/") else path: number
            for path, number in self.names.items()
        }

    def _write(self, number: int, operation: Operation) -> Iterator[Entry]:
        """Yield the entries of a write.

        It proceeds page by page, so a file may end at a page boundary inside it.
        """
        held, position, end = self.contents[number], operation.position, operation.position + operation.size_bytes
        while position < end:
            page = position // PAGE_BYTES
            stop = min(end, (page + 1) * PAGE_BYTES)
            if stop > len(held):
                held.extend(bytes(stop - len(held)))
                yield Resized(number, stop)
            held[position:stop] = content(operation.tag, position, stop - position)
            yield PageWritten(number, page, bytes(held[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]))
            position = stop

    def _resize(self, number: int, size_bytes: int) -> Iterator[Entry]:
        held = self.contents[number]
        if size_bytes == len(held):
            return
        if size_bytes < len(held):
            cut = len(held)
            held[size_bytes:] = bytes(cut - size_bytes)
            for page in range(size_bytes // PAGE_BYTES, (cut - 1) // PAGE_BYTES + 1):
                kind = PageFreed if page * PAGE_BYTES >= size_bytes else PageWritten
                yield kind(number, page, bytes(held[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]))
            del held[size_bytes:]
        else:
            held.extend(bytes(size_bytes - len(held)))
        yield Resized(number, size_bytes)
