"""One policy for all files and directories that commands write.

1. What exists is refused, unless `--overwrite` is given.
2. Nothing is written into a store directory.
3. A failing write is one line that names the file and the reason. The command ends with exit code 2.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tornpage.cli.document import refuse

__all__ = ["new_file", "refuse_store_directory", "said_of", "writing"]

_SIGNS = ("commitlog", "consumequeue")


def new_file(path: str, *, option: str, overwrite: bool) -> Path:
    """Return the path of a file to write; refuses what exists, what lies in a store and what has no directory."""
    target = Path(path)
    refuse_store_directory(target.parent, option=option)
    if target.is_dir():
        refuse(f"{path} is a directory; name a file with {option}")
    if os.path.lexists(target) and not overwrite:
        refuse(f"{path} exists; give --overwrite, or name another file with {option}")
    if not target.parent.is_dir():
        refuse(f"there is no directory {target.parent}; make it, or name another file with {option}")
    return target


def refuse_store_directory(directory: Path, *, option: str) -> None:
    """Refuse a directory that is a store or lies in one."""
    absolute = directory.absolute()
    for each in (absolute, *absolute.parents):
        if any((each / sign).is_dir() for sign in _SIGNS):
            refuse(f"{directory} lies in the store directory {each}; name another place with {option}")


@contextmanager
def writing(path: str | os.PathLike[str], *, option: str) -> Iterator[None]:
    """Refuse, in one line that names the file, what a write inside fails with."""
    try:
        yield
    except OSError as error:
        refuse(f"cannot write {error.filename or os.fspath(path)}: {said_of(error)}; {_remedy(error, option)}")


def said_of(error: OSError) -> str:
    """Return the reason of a failed write."""
    return error.strerror or type(error).__name__


def _remedy(error: OSError, option: str) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room there, or name another place with " + option
    return f"name another place with {option}"
