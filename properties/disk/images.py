"""Crash images: what a disk may hold after a power loss or a process kill.

An image is composed from recorded history by a choice for each *in-flight write*: a page (any version since the last
sync, or a tear that mixes two of them by 512-byte sectors), a size, or a name. Choice 0 always means that no unsynced
version survived, so the simplest image is the one without choices. Each image comes with a certificate that names the
journal entries behind it. properties/disk/legality.py checks it without the code of this module.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tornpage.model.operations import Choice
from tornpage.properties.disk.disk import (
    DirectoryOperation,
    DiskState,
    Image,
    InodeState,
    apply_operation,
    parent_of,
    put_page,
)
from tornpage.properties.disk.journal import (
    PAGE_BYTES,
    DirectoryMade,
    DirectoryRemoved,
    DirectoryRenamed,
    Entry,
    FileCreated,
    FileLinked,
    FileRenamed,
    FileUnlinked,
)
from tornpage.properties.disk.rules import DiskRules
from tornpage.properties.disk.sparse import LARGE_BYTES, large_content
from tornpage.properties.program.case import Disk

__all__ = [
    "JOURNAL_WRITE",
    "Choices",
    "InFlightWrite",
    "compose",
    "describe_operations",
    "disk_state",
    "halved_moves",
    "in_flight_writes",
    "kept_sources",
    "mixed",
    "named_inodes",
    "optional_names",
    "surviving_operations",
    "untorn",
]

SECTOR_BYTES = 512
JOURNAL_WRITE = "directory operations"

Choices = Mapping[str, Choice]
"""The choice for each in-flight write by its name; 0 if it is absent."""


@dataclass(frozen=True, slots=True)
class InFlightWrite:
    """One in-flight write, which may have reached the disk or not.

    Its choices are 0 to `alternatives` - 1, and for a page that `tears` a mix of two of them.
    """

    name: str
    kind: str
    alternatives: int
    tears: bool = True


def describe_operations(pending: Sequence[DirectoryOperation]) -> list[str]:
    """Return a stable name for each pending directory operation; repeated names get a number."""
    names: list[str] = []
    seen: dict[str, int] = {}
    for operation in pending:
        match operation:
            case FileCreated(_, path):
                name = f"create {path}"
            case DirectoryMade(path):
                name = f"mkdir {path}"
            case FileLinked(_, path):
                name = f"link {path}"
            case FileUnlinked(_, path):
                name = f"unlink {path}"
            case DirectoryRemoved(path):
                name = f"rmdir {path}"
            case FileRenamed(_, source, target) | DirectoryRenamed(source, target):
                name = f"rename {source} {target}"
        seen[name] = count = seen.get(name, 0) + 1
        names.append(f"{name} ({count})" if count > 1 else name)
    return names


def in_flight_writes(state: DiskState) -> list[InFlightWrite]:
    """Return every in-flight write of a disk, names first.

    After a process kill there is none, because everything survives.
    """
    if state.disk == "kill":
        return []
    writes = []
    if state.rules.is_ordered:
        if state.pending:
            writes.append(InFlightWrite(JOURNAL_WRITE, "names", len(state.pending) + 1))
        if state.optional:
            writes += [InFlightWrite(name, "name", 2) for name in optional_names(state)]
    else:
        writes += [InFlightWrite(name, "name", 2) for name in describe_operations(state.pending)]
    if state.halved:
        writes += [InFlightWrite(name, "name", 2) for name in halved_moves(state)]
    for inode in state.inodes.values():
        if inode.sizes:
            writes.append(InFlightWrite(f"size {inode.name}", "size", len(inode.sizes) + 1))
        pages, tears = inode.versions.items(), state.rules.tears
        writes += [InFlightWrite(f"page {inode.name} {n}", "page", len(v) + 1, tears) for n, v in pages]
    return writes


def surviving_operations(state: DiskState, choices: Choices) -> list[DirectoryOperation]:
    """Return the pending directory operations that survive, in order."""
    if state.disk == "kill":
        return list(state.pending)
    if state.rules.is_ordered:
        kept = _valid(choices.get(JOURNAL_WRITE, 0), len(state.pending) + 1)
        if not choices or (len(state.unfolded) == len(state.pending) and not state.optional):
            return _in_order(state, state.pending[:kept])
        alone = [done for name, done in optional_names(state).items() if choices.get(name, 0) == 1]
        return _in_order(state, [*state.pending[:kept], *alone])
    if not choices:
        return []
    names = describe_operations(state.pending)
    return [operation for name, operation in zip(names, state.pending, strict=True) if _valid(choices.get(name, 0), 2)]


def optional_names(state: DiskState) -> dict[str, DirectoryOperation]:
    """Return the operations that a sync may have committed.

    Keys are the names of their in-flight writes.
    """
    optional = {id(operation) for operation in state.optional}
    named = zip(describe_operations(state.pending), state.pending, strict=True)
    return {name: operation for name, operation in named if id(operation) in optional}


def halved_moves(state: DiskState) -> dict[str, FileRenamed]:
    """Return the moves of files that may be at their old name too.

    Keys are the names of the in-flight writes that remove the old name.
    """
    return {
        f"remove the source of {n}": o for n, o in zip(describe_operations(state.halved), state.halved, strict=True)
    }


def kept_sources(state: DiskState, choices: Choices) -> set[int]:
    """Return the `id` of each move whose old name was not removed."""
    if not state.halved:
        return set()
    return {id(operation) for name, operation in halved_moves(state).items() if not _valid(choices.get(name, 0), 2)}


def _in_order(state: DiskState, survive: list[DirectoryOperation]) -> list[DirectoryOperation]:
    """Return surviving operations and the committed ones among them, in their order."""
    if len(state.unfolded) == len(state.pending) and len(survive) < 2:
        return survive
    alive, waiting = {id(operation) for operation in survive}, {id(operation) for operation in state.pending}
    return [o for o in state.unfolded if id(o) in alive or id(o) not in waiting]


def compose(state: DiskState, choices: Choices) -> Image:
    """Return the disk that recovery finds after these choices.

    Unknown writes and numbers that are too large count as 0.
    """
    names, reachable = _names_and_directories(state, choices)
    inodes, everything, rules = state.inodes, state.disk == "kill", state.rules
    files = {
        path: _content(inodes[number], choices, everything=everything, rules=rules)
        for path, number in names.items()
        if parent_of(path) in reachable
    }
    return Image(directories=frozenset(reachable), files=files)


def named_inodes(state: DiskState, choices: Choices) -> dict[int, str]:
    """Return the path at which recovery finds each inode; other inodes are unreachable."""
    names, reachable = _names_and_directories(state, choices)
    return {number: path for path, number in names.items() if parent_of(path) in reachable}


def _names_and_directories(state: DiskState, choices: Choices) -> tuple[Mapping[str, int], set[str]]:
    """Return the names that survive, and the reachable directories."""
    names, directories = state.names, state.directories
    survive = surviving_operations(state, choices) if state.pending else ()
    if state.tree is not None:
        return state.surviving_names(survive, kept_sources(state, choices))
    if survive:
        names, directories = dict(names), set(directories)
        for operation in survive:
            apply_operation(names, directories, operation)
    reachable: set[str] = set()
    for path in sorted(directories):  # a parent comes before its content
        if path == "/" or parent_of(path) in reachable:
            reachable.add(path)
    return names, reachable


def _content(inode: InodeState, choices: Choices, *, everything: bool, rules: DiskRules) -> bytes:
    if not inode.sizes and not inode.versions:
        return inode.durable
    if everything:
        latest = inode.latest()
        return bytes(latest) if isinstance(latest, bytearray) else latest
    size_bytes, number = len(inode.durable), 0
    if inode.sizes:
        number = _valid(choices.get(f"size {inode.name}", 0), len(inode.sizes) + 1)
        size_bytes = inode.sizes[number - 1] if number else size_bytes
    pages: list[tuple[int, bytes]] = []
    for page, versions in inode.versions.items():
        choice = choices.get(f"page {inode.name} {page}", 0)
        if not rules.tears:
            choice = untorn(choice)
        if choice and rules.cuts_whole and page in inode.freed and not inode.may_hold(page, _newest(choice), number):
            choice = 0
        if choice:
            pages.append((page, _page(inode.page(page), versions, choice)))
    if max(size_bytes, len(inode.durable)) > LARGE_BYTES:
        return large_content(inode.durable, size_bytes, pages)
    content = bytearray(inode.durable)
    if number:
        content = content[:size_bytes].ljust(size_bytes, b"\0")
    for page, held in pages:
        put_page(content, page, held)
    return bytes(content)


def untorn(choice: Choice) -> int:
    """Return the version that a disk without tears has: the second of a mix."""
    return choice if isinstance(choice, int) else choice[1]


def _newest(choice: Choice) -> int:
    return choice if isinstance(choice, int) else max(choice[:2])


def _valid(choice: Choice, alternatives: int) -> int:
    """Return the number of an untorn alternative, 0 for anything else."""
    return choice if isinstance(choice, int) and 0 <= choice < alternatives else 0


def _page(durable: bytes, versions: Sequence[bytes], choice: Choice) -> bytes:
    everyone = [durable, *versions]
    if isinstance(choice, int):
        return everyone[_valid(choice, len(everyone))]
    first, second, mask = choice
    if not (0 <= first < len(everyone) and 0 <= second < len(everyone)):
        return durable
    return mixed(everyone[first], everyone[second], mask)


def mixed(first: bytes, second: bytes, mask: int) -> bytes:
    """Return a page with the sectors of `second` where their bit in the mask is set.

    The other sectors are those of `first`.
    """
    size_bytes = max(len(first), len(second))
    page = bytearray(first.ljust(size_bytes, b"\0"))
    other = second.ljust(size_bytes, b"\0")
    for sector in range(PAGE_BYTES // SECTOR_BYTES):
        if mask >> sector & 1:
            page[sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES] = other[
                sector * SECTOR_BYTES : (sector + 1) * SECTOR_BYTES
            ]
    return bytes(page)


def disk_state(base: Image, journal: Sequence[Entry], position: int, *, disk: Disk) -> DiskState:
    """Return the state of a disk after the first `position` entries of its journal."""
    state = DiskState(base, disk=disk)
    state.apply_all(journal[:position])
    return state
