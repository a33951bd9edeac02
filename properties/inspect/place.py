"""Open a store directory for looking, or say in one line why that cannot be done."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from properties.decode.findings import Finding, Severity, verdict_of
from properties.decode.store import StoreView, look
from properties.inspect.query import InspectError
from properties.inspect.rows import Row

__all__ = [
    "Document",
    "Progress",
    "derived_severity",
    "log_range",
    "open_view",
    "part_document",
    "reading",
    "shown",
    "without_progress",
]

Document = dict[str, Any]
Progress = Callable[[int, int], None]
"""Whom to tell, now and then, how many bytes of the log are read, and of how many."""

_STORE_SIGNS = ("commitlog", "checkpoint", "abort", "lock", "consumequeue")


def open_view(path: str | os.PathLike[str], *, file_bytes: int | None = None) -> StoreView:
    """Return the view of a store directory. Raises InspectError."""
    directory = _store_directory(path)
    try:
        return look(directory, file_bytes=file_bytes)
    except PermissionError as error:
        raise _no_permission(Path(error.filename or directory)) from error
    except OSError as error:
        raise InspectError(
            f"cannot list {shown(directory)}: {error.strerror}; check the device and the path"
        ) from error


def without_progress(read_bytes: int, total_bytes: int) -> None:
    """Tell nobody how much of the log is read."""


def log_range(view: StoreView) -> tuple[int, int]:
    """Return the physical offsets at which the log files begin and end."""
    return (view.files[0].base_offset, view.files[-1].base_offset + view.file_bytes) if view.files else (0, 0)


def reading(begin: int, end: int, progress: Progress) -> Callable[[int], None]:
    """Return whom `iter_items` tells what it has reached, while the offsets from `begin` to `end` are read."""
    return lambda offset: progress(min(max(offset - begin, 0), end - begin), end - begin)


def part_document(figures: dict[str, int], rows: list[Row], findings: Sequence[Finding]) -> Document:
    """Return the document of a look at a part: no verdict unless that part is damaged or leaves something open."""
    verdict = verdict_of(findings)
    severities = [finding.severity for finding in findings]
    counts = {f"{severity}s": severities.count(severity) for severity in ("damage", "tear", "note")}
    return {
        "verdict": None if verdict == "holds" else verdict,
        "figures": {**figures, "rows": len(rows), "findings": len(findings), **counts},
        "rows": rows,
        "findings": [asdict(finding) for finding in findings],
    }


def derived_severity(view: StoreView) -> Severity:
    """Return how bad a derived file that does not fit is: a crash may leave it so, work in progress too."""
    if view.live:
        return "note"
    return "tear" if view.is_unclean else "damage"


def shown(path: Path) -> str:
    """Return a path as text of one line."""
    return str(path) if str(path).isprintable() else repr(str(path))


def _store_directory(path: str | os.PathLike[str]) -> Path:
    """Return `path` if a store can be looked for in it."""
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
    if not names.intersection(_STORE_SIGNS):
        hint = (
            f"; give its parent, {shown(directory.absolute().parent)}"
            if directory.absolute().name == "commitlog"
            else ""
        )
        advice = hint or "; give the directory that holds commitlog/"
        raise InspectError(f"not a store directory: {shown(directory)} has no commitlog, checkpoint or lock{advice}")
    return directory


def _no_permission(path: Path) -> InspectError:
    return InspectError(f"no permission to list {shown(path)}; run as its owner, or grant read and search permission")
