"""One policy for all files and directories that commands write.

1. What exists is refused, unless `--overwrite` is given.
2. Nothing is written into a store directory.
3. A failing write is one line that names the file and the reason. The command ends with exit code 2.
4. A file has all its text or does not appear.
"""

import errno
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tornpage.cli.document import refuse

__all__ = [
    "new_file",
    "new_page",
    "refuse_foreign",
    "refuse_store_directory",
    "said_of",
    "unwritable",
    "write_whole",
    "writing",
]

_SIGNS = ("commitlog", "consumequeue")
_PAGE_BYTES = 4096
_OUR_PAGE = b"tornpage"


def new_file(path: str, *, option: str, overwrite: bool) -> Path:
    """Return the path of a file to write.

    Refuses a file that exists, a place in a store, and a missing directory.
    """
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
    """Refuse a directory that is a store or lies in one, and the path of an object store."""
    if re.match(r"(?!file:)[a-z][a-z0-9+.-]+:/", str(directory)):
        refuse(f"{directory} is no directory of a file system; write to one with {option}, and copy that")
    absolute = directory.absolute()
    for each in (absolute, *absolute.parents):
        if any((each / sign).is_dir() for sign in _SIGNS):
            refuse(f"{directory} lies in the store directory {each}; name another place with {option}")


def new_page(path: str, *, option: str, overwrite: bool) -> Path:
    """Return the path of a page to write.

    A page that tornpage wrote before is replaced; other files are refused.
    """
    target = Path(path)
    is_ours = False
    if target.is_file():
        with suppress(OSError), target.open("rb") as file:
            start = file.read(_PAGE_BYTES).lower()
            is_ours = not start or (start.lstrip().startswith(b"<!doctype html") and _OUR_PAGE in start)
    return new_file(path, option=option, overwrite=overwrite or is_ours)


def refuse_foreign(directory: Path, ours: Collection[str], *, option: str) -> None:
    """Refuse a directory that lies in a store, or holds files that no run of tornpage has."""
    refuse_store_directory(directory, option=option)
    if directory.is_dir():
        foreign = sorted(path.name for path in directory.iterdir() if path.name not in ours)
        if foreign:
            refuse(f"{directory} holds {foreign[0]}, which is no part of a run; name a new directory with {option}")


@contextmanager
def writing(path: str | os.PathLike[str], *, option: str) -> Iterator[None]:
    """Refuse, in one line that names the file, what a write inside fails with."""
    try:
        yield
    except OSError as error:
        refuse(unwritable(error, path, option=option))


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a file of text, whole or not at all. A file that exists is replaced.

    A link stays, and the file that it names is written. A device or a pipe gets the text as it is.

    Raises OSError, and UnicodeEncodeError before anything is written.
    """
    data, named = text.encode(), Path(path)
    if named.exists() and not named.is_file():
        named.write_bytes(data)
        return
    target = Path(os.path.realpath(named))
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        beside.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def unwritable(error: OSError, path: str | os.PathLike[str], *, option: str) -> str:
    """Return the line about a write that failed: the file, the reason, and what to do."""
    return f"cannot write {error.filename or os.fspath(path)}: {said_of(error)}; {_remedy(error, option)}"


def said_of(error: OSError) -> str:
    """Return the reason of a failed write."""
    return error.strerror or type(error).__name__


def _remedy(error: OSError, option: str) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"make room there, or name another place with {option}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"make the directory writable, or name another place with {option}"
    return f"name another place with {option}"
