"""The history of a page up to a crash: its writes, its barriers, and what survived.

Version 0 is the version that the last successful sync of the file made durable, or the initial one. Later versions are
the writes since then, in order. A power loss may keep any of them, or a mixture of two by sectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.model.operations import Choice
from tornpage.properties.disk.disk import Image, InodeState
from tornpage.properties.disk.journal import PAGE_BYTES, SECTORS, FileSynced, PageWritten
from tornpage.properties.explain.crash_context import CrashContext
from tornpage.properties.explain.hexdump import Frame, HexLine, frames_of, lines_of
from tornpage.properties.program.log_places import LOG_PATHS

__all__ = ["PageHistory", "PageVersion", "histories_of", "versions_of"]

VERSIONS_MAX = 8
"""Number of versions of a page that are shown byte by byte; the newest ones."""


@dataclass(frozen=True, slots=True)
class PageHistory:
    """The journal entries that wrote a page, and the successful syncs of its file."""

    file: str
    number: int
    writes: tuple[int, ...]
    syncs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PageVersion:
    """One version: the entry that wrote it (-1: the initial one), and what of it survived.

    `survived` is empty if nothing did. `lines` are those that differ from the version before, all of them for the first
    version shown; `changed` counts bytes.
    """

    number: int
    entry: int
    survived: str
    changed: int
    lines: tuple[HexLine, ...]


def _covers(extent: tuple[int, int] | None, page: int) -> bool:
    return extent is None or (extent[0] < (page + 1) * PAGE_BYTES and page * PAGE_BYTES < extent[1])


def histories_of(context: CrashContext) -> list[PageHistory]:
    """Return the history of every visible page at the crash, in the order of a page map."""
    journal = context.journal[: context.position]
    writes: dict[tuple[int, int], list[int]] = {}
    syncs: dict[int, list[tuple[int, tuple[int, int] | None]]] = {}
    for number, entry in enumerate(journal):
        if isinstance(entry, PageWritten):
            writes.setdefault((entry.inode, entry.page), []).append(number)
        elif isinstance(entry, FileSynced) and entry.succeeded:
            syncs.setdefault(entry.inode, []).append((number, entry.extent))
    is_whole = context.state.rules.syncs_whole_file
    return [
        PageHistory(
            state.name,
            page,
            tuple(writes.get((inode, page), ())),
            tuple(n for n, extent in syncs.get(inode, ()) if is_whole or _covers(extent, page)),
        )
        for inode, state in context.state.inodes.items()
        for page in range(-(-state.size_bytes // PAGE_BYTES))
    ]


def versions_of(context: CrashContext, history: PageHistory, *, file_bytes: int) -> list[PageVersion]:
    """Return the versions that could survive, oldest first.

    There are at most VERSIONS_MAX, the newest ones.
    """
    inode = next(state for state in context.state.inodes.values() if state.name == history.file)
    contents = [inode.page(history.number), *inode.versions.get(history.number, ())]
    entries = [-1, *history.writes[len(history.writes) - len(contents) + 1 :]]
    choice: Choice = context.choices.get(f"page {history.file} {history.number}", 0)
    if context.state.disk == "kill":
        choice = len(contents) - 1
    frames = _frames_as_written(context, inode, file_bytes)
    path = history.file.partition("#")[0]
    told = []
    first = max(0, len(contents) - VERSIONS_MAX)
    for number in range(first, len(contents)):
        content = contents[number].ljust(PAGE_BYTES, b"\0")
        before = contents[number - 1].ljust(PAGE_BYTES, b"\0") if number > first else None
        changed = 0 if before is None else sum(a != b for a, b in zip(before, content, strict=True))
        lines = lines_of(content, path, history.number, frames, unlike=before)
        told.append(PageVersion(number, entries[number], _survived(choice, number), changed, tuple(lines)))
    return told


def _survived(choice: Choice, number: int) -> str:
    """Return what of a version survived under a choice."""
    if isinstance(choice, int):
        return "whole" if choice == number else ""
    first, second, mask = choice
    mine = [s for s in range(SECTORS) if (second if mask >> s & 1 else first) == number]
    return f"sectors {', '.join(map(str, mine))}" if mine else ""


def _frames_as_written(context: CrashContext, inode: InodeState, file_bytes: int) -> Sequence[Frame]:
    """Return the frames of the file as the process saw it."""
    path = inode.name.partition("#")[0]
    if not path.startswith(LOG_PATHS):
        return ()
    return frames_of(Image(frozenset(), {path: bytes(inode.latest())}), file_bytes=file_bytes)
