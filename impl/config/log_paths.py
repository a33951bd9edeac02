"""The directories of the log as named in a configuration.

Pure functions of text; no disk access. RocketMQ expects one string with the paths separated by commas, and 4.9.3
creates a directory of that whole name. Source: `MessageStoreConfig.getStorePathCommitLog`,
`getReadOnlyCommitLogStorePaths`.
"""

import posixpath
from functools import lru_cache
from itertools import permutations

from tornpage.impl.errors import BadConfig

__all__ = ["UNFINISHED", "require_log_paths", "resolved_log_paths"]

_PATHS, _READ_ONLY = "store_path_commit_log", "read_only_commit_log_store_paths"
_DEFAULT = ("commitlog",)
_OTHERS = ("abort", "checkpoint", "config", "consumequeue", "consumequeue_ext", "index", "lock", "quarantine")
"""Names in the store directory that have another use."""
UNFINISHED = ".unfinished"
"""Files of a directory `X` are made in the folder `X.unfinished` (impl/io/whole_files.py)."""
_NO_ROOT = "/\0"
"""Stands for a store directory that is not known yet; no path can lie inside it."""


def require_log_paths(paths: tuple[str, ...], read_only: tuple[str, ...]) -> None:
    """Raise BadConfig for paths that are invalid in every store directory."""
    resolved_log_paths(_NO_ROOT, paths, read_only)


def resolved_log_paths(
    root: str, paths: tuple[str, ...], read_only: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return all log directories and the read-only ones among them, as absolute paths.

    Raises BadConfig.
    """
    _require_texts(_PATHS, paths)
    _require_texts(_READ_ONLY, read_only)
    return _resolved_texts(root, paths, read_only)


@lru_cache(maxsize=64)
def _resolved_texts(
    root: str, paths: tuple[str, ...], read_only: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Resolve the paths. Cached, since each open resolves the same texts."""
    every = _resolved(_PATHS, root, paths) or _resolved(_PATHS, root, _DEFAULT)
    kept = _resolved(_READ_ONLY, root, read_only)
    if len(set(every)) < len(every):
        raise BadConfig(_PATHS, paths, "name each directory once")
    if any(_is_inside(path, other) for path, other in permutations(every, 2)):
        raise BadConfig(_PATHS, paths, "name directories that do not contain each other")
    for path in every:
        is_taken = path.endswith(UNFINISHED) or any(_holds(f"{root}/{other}", path) for other in _OTHERS)
        if is_taken or path == root or _is_inside(root, path):
            raise BadConfig(_PATHS, paths, "name directories that the store does not use for other files")
    if not set(kept) <= set(every):
        raise BadConfig(_READ_ONLY, read_only, f"name directories of {_PATHS}")
    if set(kept) == set(every):
        raise BadConfig(_READ_ONLY, read_only, "leave one directory for new files")
    return every, kept


def _require_texts(name: str, paths: tuple[str, ...]) -> None:
    if not isinstance(paths, tuple) or not all(isinstance(path, str) for path in paths):
        raise BadConfig(name, paths, 'use a tuple of paths, such as ("/disk1/log", "/disk2/log")')


def _resolved(name: str, root: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    if any(not path or "\0" in path or "," in path for path in paths):
        raise BadConfig(name, paths, "use paths that are not empty and have no comma or NUL, each an entry of its own")
    relative = [posixpath.normpath(path) for path in paths if not path.startswith("/")]
    if any(path == ".." or path.startswith("../") for path in relative):
        raise BadConfig(name, paths, "use an absolute path for a directory outside the store directory")
    return tuple("/" + posixpath.normpath(posixpath.join(root, path)).lstrip("/") for path in paths)


def _is_inside(path: str, directory: str) -> bool:
    return path.startswith(f"{directory.rstrip('/')}/") and path != directory


def _holds(directory: str, path: str) -> bool:
    return path == directory or _is_inside(path, directory)
