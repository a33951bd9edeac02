"""Read the content of a store directory, as the page cache has it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import mmh3

__all__ = ["Snapshot", "digest_of", "snapshot_of"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Hold the content of each file by its path below the store's directory.

    The paths of the directories are sorted.
    """

    files: Mapping[str, bytes]
    directories: tuple[str, ...] = ()

    def below(self, directory: str) -> dict[str, bytes]:
        """Return the files of a directory, including those in subdirectories."""
        return {path: data for path, data in self.files.items() if path.startswith(f"{directory}/")}


def snapshot_of(directory: str) -> Snapshot:
    """Read everything in a directory. Raises OSError."""
    files: dict[str, bytes] = {}
    directories: list[str] = []
    _look(directory, "", files, directories)
    return Snapshot(files, tuple(directories))


def _look(root: str, below: str, files: dict[str, bytes], directories: list[str]) -> None:
    with os.scandir(f"{root}/{below}") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            path = f"{below}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                directories.append(path)
                _look(root, f"{path}/", files, directories)
            else:
                files[path] = _read_whole(entry.path)


def _read_whole(path: str) -> bytes:
    """Read a file that no process writes to."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def digest_of(left: Snapshot) -> bytes:
    """Return a 128-bit hash of names and contents."""
    parts = [f"{path}\0{len(data)}\0".encode() + data for path, data in left.files.items()]
    return mmh3.hash_bytes(b"".join((*parts, "\0".join(left.directories).encode())))
