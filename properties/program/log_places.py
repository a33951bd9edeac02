"""The places of log files in a run: one directory, or two in turn.

This states again, without the store's code, where RocketMQ puts a file: the file number modulo the number of
directories, in the order of their text. Directories on a full disk are left out, unless all are full.
"""

from collections.abc import Iterable

__all__ = ["LOG_DIRECTORY", "LOG_PATHS", "ROOT", "file_at", "log_directories", "log_files"]

ROOT = "/store"
_NAMES = ("commitlog", "morelog")
_DIRECTORIES = tuple(f"{ROOT}/{name}" for name in _NAMES)
LOG_PATHS = tuple(f"{directory}/" for directory in _DIRECTORIES)
"""Path prefixes of log files."""

LOG_DIRECTORY = _DIRECTORIES[0]


def log_directories(log_paths: int) -> tuple[str, ...]:
    """Return the log directories of a store with this many, in the order of their text.

    They are relative to the store directory, because a process that is killed has its store on a real disk.
    """
    return _NAMES[:log_paths]


def file_at(base: int, *, file_bytes: int, log_paths: int) -> str:
    """Return the path of the log file that begins at a physical offset."""
    return f"{_DIRECTORIES[base // file_bytes % log_paths]}/{base:020d}"


def log_files(paths: Iterable[str]) -> list[str]:
    """Return the paths in a log directory, in the order of their names."""
    found = [path.rpartition("/") for path in paths if path.startswith(LOG_PATHS)]
    return ["".join(parts) for parts in sorted(found, key=lambda parts: (parts[2], parts[0]))]
