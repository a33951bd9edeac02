"""Name the rules of the crash model that a crash state makes use of.

A rule that permits a loss should be seen on the real file system. Otherwise the model is weaker than what it models,
and says so (`NEVER_SEEN`).
"""

from collections.abc import Iterator, Mapping, Sequence

from tornpage.properties.disk.disk import DirectoryOperation, DiskState, InodeState
from tornpage.properties.disk.images import Choices, kept_sources, surviving_operations
from tornpage.properties.disk.journal import (
    PAGE_BYTES,
    Entry,
    FileCreated,
    FileLinked,
    FileRenamed,
    FileSynced,
    PageWritten,
    Resized,
)
from tornpage.properties.disk.rules import DiskRules
from tornpage.properties.explore.real_faults.file_systems.file_system import Kind

__all__ = ["NEVER_SEEN", "legal_rules", "rules_seen"]

NEVER_SEEN: Mapping[Kind, frozenset[str]] = {
    "ext4": frozenset({"stale page after a cut"}),
    "xfs": frozenset({"stale page after a cut"}),
    "btrfs": frozenset(),
}
"""Rules of a disk that permit more than any of its experiments has shown."""

_ALWAYS = (
    "page lost",
    "page kept",
    "older version kept",
    "size lost",
    "size kept",
    "size between kept",
    "size kept without its page",
    "cut lost",
    "cut kept",
    "stale page after a cut",
    "name lost",
    "name kept",
)


_NAMING = {FileCreated: "creation", FileRenamed: "rename", FileLinked: "link"}


def legal_rules(rules: DiskRules) -> list[str]:
    """Return the rules that a disk permits to be seen."""
    found = list(_ALWAYS)
    if rules.tears:
        found.append("torn page")
    if not rules.cuts_whole:
        found.append("cut pages kept without the cut")
    if rules.commits == "directory":
        found += [f"{what} lost after a sync of the file" for what in _NAMING.values()]
    if not rules.data_syncs_rename:
        found += [f"{what} lost after a sync of the data" for what in ("rename", "link")]
    if rules.commits == "dependencies":
        found.append("synced name kept without earlier ones")
    if not rules.syncs_whole_file:
        found.append("page lost after a sync of other bytes")
    if not rules.resize_commits:
        found.append("earlier name lost after a sync of a resized file")
    if rules.may_commit_more:
        found.append("name kept out of order")
    if rules.splits_moves:
        found.append("moved file at both names")
    return found


def rules_seen(state: DiskState, journal: Sequence[Entry], choices: Choices) -> set[str]:
    """Return the rules that explain a tree by these choices. `journal` ends at the power loss."""
    survived = {id(operation) for operation in surviving_operations(state, choices)}
    found = {"name kept" if id(operation) in survived else "name lost" for operation in state.pending}
    found.update(_about_order(state, survived))
    found.update(_about_syncs(state.pending, journal, survived))
    found.update(_about_resizes(state.pending, journal, survived))
    waiting, kept = {id(operation) for operation in state.pending}, kept_sources(state, choices)
    if any(id(move) in kept for move in state.halved if id(move) in survived or id(move) not in waiting):
        found.add("moved file at both names")
    for number, inode in state.inodes.items():
        found.update(_about_size(inode, choices))
        found.update(_about_other_bytes(number, inode, journal, choices))
    return found


def _about_other_bytes(number: int, inode: InodeState, journal: Sequence[Entry], choices: Choices) -> Iterator[str]:
    """Yield the fates of pages that were in flight at a sync of other bytes of the file."""
    entries = [(n, entry) for n, entry in enumerate(journal) if getattr(entry, "inode", None) == number]
    synced = max((n for n, entry in entries if isinstance(entry, FileSynced) and entry.extent is not None), default=-1)
    for page, versions in inode.versions.items():
        written = [n for n, entry in entries if isinstance(entry, PageWritten) and entry.page == page]
        if written[-len(versions)] < synced:
            fate = "kept" if choices.get(f"page {inode.name} {page}", 0) else "lost"
            yield f"page {fate} after a sync of other bytes"


def _about_order(state: DiskState, survived: set[int]) -> Iterator[str]:
    waiting = {id(operation) for operation in state.pending}
    is_one_lost = False
    for operation in state.unfolded:
        if id(operation) not in waiting:
            if is_one_lost:
                yield "synced name kept without earlier ones"
        elif id(operation) not in survived:
            is_one_lost = True
        elif is_one_lost:
            yield "name kept out of order"


def _about_syncs(pending: Sequence[DirectoryOperation], journal: Sequence[Entry], survived: set[int]) -> Iterator[str]:
    """Yield the names that a sync of the file did not make durable by the rules of the disk."""
    places = {id(entry): number for number, entry in enumerate(journal)}
    for operation in pending:
        if not isinstance(operation, FileCreated | FileLinked | FileRenamed):
            continue
        syncs = [entry for entry in journal[places[id(operation)] :] if isinstance(entry, FileSynced)]
        own = [sync for sync in syncs if sync.inode == operation.inode]
        what = _NAMING[type(operation)]
        fate = "kept" if id(operation) in survived else "lost"
        if any(not sync.data_only for sync in own):
            yield f"{what} {fate} after a sync of the file"
        elif own:
            yield f"{what} {fate} after a sync of the data"


def _about_resizes(
    pending: Sequence[DirectoryOperation], journal: Sequence[Entry], survived: set[int]
) -> Iterator[str]:
    """Yield the operations before a change of the size of a file and a whole sync of it."""
    synced: set[int] = set()
    resized_at = -1
    for number in reversed(range(len(journal))):
        entry = journal[number]
        if isinstance(entry, FileSynced) and entry.succeeded and not entry.data_only:
            synced.add(entry.inode)
        elif isinstance(entry, Resized) and entry.inode in synced:
            resized_at = number
            break
    before = {id(entry) for entry in journal[: max(resized_at, 0)]}
    for operation in pending:
        if id(operation) in before:
            yield f"earlier name {'kept' if id(operation) in survived else 'lost'} after a sync of a resized file"


def _about_size(inode: InodeState, choices: Choices) -> Iterator[str]:
    sizes = [len(inode.durable), *inode.sizes]
    choice = choices.get(f"size {inode.name}", 0)
    number = choice if isinstance(choice, int) else 0
    if inode.sizes:
        yield "size lost" if number == 0 else "size kept" if number == len(inode.sizes) else "size between kept"
    cuts = [cut for freed in inode.freed.values() for _, cut in freed]
    if cuts:
        yield "cut kept" if number >= max(cuts) else "cut lost"
    for page, versions in inode.versions.items():
        if page * PAGE_BYTES < sizes[number]:
            yield from _about_page(inode, page, len(versions), choices, number)


def _about_page(inode: InodeState, page: int, versions: int, choices: Choices, size: int) -> Iterator[str]:
    choice = choices.get(f"page {inode.name} {page}", 0)
    if not isinstance(choice, int):
        yield "torn page"
        return
    yield "page lost" if choice == 0 else "page kept" if choice == versions else "older version kept"
    if choice == 0 and size and page * PAGE_BYTES >= len(inode.durable):
        yield "size kept without its page"
    for zeros, cut in inode.freed.get(page, ()):
        if choice < zeros and size >= cut and any(inode.page(page)):
            yield "stale page after a cut"
        if choice >= zeros and size < cut:
            yield "cut pages kept without the cut"
