"""Where the log files of a trial lie: in one directory, or in turn in two.

Says again, without the store's code, where RocketMQ puts a file: file number modulo the count of directories, in the
order of their text. The disk of a trial is full for both of them or for none.
"""

from collections.abc import Iterable

__all__ = ["LOG_DIRECTORY", "LOG_PATHS", "ROOT", "file_at", "log_directories", "log_files"]

ROOT = "/store"
_NAMES = ("commitlog", "morelog")
_DIRECTORIES = tuple(f"{ROOT}/{name}" for name in _NAMES)
LOG_PATHS = tuple(f"{directory}/" for directory in _DIRECTORIES)
"""How paths of log files begin."""

LOG_DIRECTORY = _DIRECTORIES[0]


def log_directories(log_paths: int) -> tuple[str, ...]:
    """Return the log directories of a store that has so many, below its own; in the order of their text.

    Relative: a process that is killed has its store on a real disk, under another name.
    """
    return _NAMES[:log_paths]


def file_at(base: int, *, file_bytes: int, log_paths: int) -> str:
    """Return the path of the log file that begins at a physical offset."""
    return f"{_DIRECTORIES[base // file_bytes % log_paths]}/{base:020d}"


def log_files(paths: Iterable[str]) -> list[str]:
    """Return those of the paths that lie in a log directory, in the order of their names."""
    found = [path.rpartition("/") for path in paths if path.startswith(LOG_PATHS)]
    return ["".join(parts) for parts in sorted(found, key=lambda parts: (parts[2], parts[0]))]
