"""Earlier contents of pages, for corruption that restores them."""

from collections.abc import Iterable, Mapping

from tornpage.properties.disk.journal import PAGE_BYTES, FileCreated, FileLinked, FileMade, FileRenamed, PageWritten
from tornpage.properties.disk.recording_files import RecordingFiles

__all__ = ["Earlier", "earlier_contents"]

Earlier = Mapping[tuple[str, int], list[bytes]]
"""By path and page: the contents before the last one, oldest first."""


def earlier_contents(files: RecordingFiles, paths: Iterable[str]) -> Earlier:
    """Return the earlier page contents of some files since the open.

    Keys have the names that the files have now.
    """
    names = dict(enumerate(sorted(files.base.files)))
    found: dict[tuple[int, int], list[bytes]] = {}
    for entry in files.journal:
        match entry:
            case FileCreated(inode, path) | FileLinked(inode, path):
                names[inode] = path
            case FileMade(inode):
                names[inode] = ""
            case FileRenamed(inode, _, target):
                names[inode] = target
            case PageWritten(inode, page, content):
                found.setdefault((inode, page), [_at_first(files, names[inode], page)]).append(content)
    wanted = set(paths)
    return {(names[inode], page): contents[:-1] for (inode, page), contents in found.items() if names[inode] in wanted}


def _at_first(files: RecordingFiles, path: str, page: int) -> bytes:
    """Return the content of a page at the open of the disk; zeros if it had none."""
    content = files.base.files.get(path, b"")[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]
    return bytes(content).ljust(PAGE_BYTES, b"\0")
