"""Open a store directory for inspection, or state in one line why that fails."""

from __future__ import annotations

import os
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

from tornpage.properties.decode.record import drops_joined_pairs
from tornpage.properties.decode.store import StoreView, look

__all__ = ["InspectError", "drops_joined_by", "open_view", "shown", "store_directory"]

_STORE_SIGNS = ("commitlog", "checkpoint", "abort", "lock", "consumequeue")
_MEMBER = re.compile(r"dledger-(.*)", re.DOTALL)
"""The folder of a member of a Raft group. Source: `DLedgerConfig` of DLedger 0.2.3; impl/raft/opening.py."""


class InspectError(ValueError):
    """The directory cannot be inspected.

    The message is one line with the reason, the place and the remedy.
    """


def open_view(path: str | os.PathLike[str], *, file_bytes: int | None = None) -> StoreView:
    """Return the view of a store directory. Raises InspectError."""
    directory = store_directory(path)
    try:
        view = look(directory, file_bytes=file_bytes)
    except PermissionError as error:
        raise _no_permission(Path(error.filename or directory)) from error
    except OSError as error:
        raise InspectError(
            f"cannot list {shown(directory)}: {error.strerror}; check the device and the path"
        ) from error
    if file_bytes is not None:
        _refuse_impossible_size(view, file_bytes)
    return view


def drops_joined_by(version: str | None) -> bool:
    """Return whether a release drops pairs with two separators; None is the reference release.

    Raises InspectError if the version is invalid.
    """
    try:
        return version is not None and drops_joined_pairs(version)
    except ValueError as error:
        raise InspectError(f"{version!r} names no release; {error}") from error


def _refuse_impossible_size(view: StoreView, file_bytes: int) -> None:
    """Refuse a size of log files that contradicts the names and sizes of all of them."""
    sizes = [file.size_bytes for file in view.files if file.size_bytes]
    apart = [second.base_offset - first.base_offset for first, second in pairwise(view.files)]
    if (sizes and file_bytes < min(sizes)) or (apart and file_bytes > max(apart)):
        usual = Counter(sizes).most_common(1)[0][0] if sizes else min(apart)
        raise InspectError(
            f"no log file of this store can have {file_bytes} bytes: the files have {usual} and are at most "
            f"{max(apart, default=usual)} apart; correct the size (--file-bytes, mappedFileSizeCommitLog)"
        )


def shown(path: Path) -> str:
    """Return a path as text of one line."""
    return str(path) if str(path).isprintable() else repr(str(path))


def store_directory(path: str | os.PathLike[str]) -> Path:
    """Return `path` if it can be a store directory. Raises InspectError."""
    directory = Path(path)
    try:
        status_is_directory = directory.is_dir()
        exists = status_is_directory or os.path.lexists(directory)
    except (OSError, ValueError) as error:
        raise InspectError(f"cannot look at {shown(directory)}: {error}; check the path") from error
    if not exists:
        raise InspectError(f"no such directory: {shown(directory)}; give the store directory (storePathRootDir)")
    if not status_is_directory:
        raise InspectError(f"not a directory: {shown(directory)}; give the directory that holds commitlog/")
    try:
        names = {entry.name for entry in directory.iterdir()}
    except OSError as error:
        raise _no_permission(directory) from error
    if not names:
        raise InspectError(f"empty directory: {shown(directory)}; give a store directory, one that holds commitlog/")
    _refuse_member(directory, names)
    if not names.intersection(_STORE_SIGNS):
        hint = (
            f"; give its parent, {shown(directory.absolute().parent)}"
            if directory.absolute().name == "commitlog"
            else ""
        )
        advice = hint or "; give the directory that holds commitlog/"
        raise InspectError(f"not a store directory: {shown(directory)} has no commitlog, checkpoint or lock{advice}")
    return directory


def _refuse_member(directory: Path, names: set[str]) -> None:
    """Refuse the directory of a member of a Raft group, whose log is not a commit log.

    A member of RocketMQ may have an older commit log beside it, which is inspected.
    """
    if _MEMBER.fullmatch(directory.absolute().name) and "data" in names:
        raise InspectError(
            f"{shown(directory)} is the Raft log of a member; give its parent, {shown(directory.absolute().parent)}"
        )
    members = sorted(found[1] for found in map(_MEMBER.fullmatch, names) if found)
    if not members or "commitlog" in names:
        return
    number = members[0].removeprefix("n")
    raise InspectError(
        f"{shown(directory)} is the directory of member {members[0]} of a Raft group; "
        f"`tornpage serve {shown(directory)} --raft-id {number} --raft-peers LIST` reads it, "
        "and `tornpage ask` then shows its content"
    )


def _no_permission(path: Path) -> InspectError:
    return InspectError(f"no permission to list {shown(path)}; run as its owner, or grant read and search permission")
