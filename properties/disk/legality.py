"""Decide from the journal alone whether a crash may leave an image.

The module shares no code with the code that makes images and certificates. Of this project it uses the entry types of
the journal and, for annotations only, the values Image and Certificate; a test checks that. It is slow, and written to
be compared with docs/contract.md, "Crash model":

1. A directory operation must have survived if a successful sync of its directory came after it. A rename between two
   directories is one operation, and a sync of either counts. An operation changes an entry of a directory, whatever
   path the directory had at that time. On `journal`, `ext4`, `xfs` and `btrfs` a sync of a directory counts for its
   creation and its renames too. A sync of a file counts for the operations that created, linked or renamed it; on
   `journal` and `ext4` a sync of its data alone counts for its creation only. On `ext4` and `xfs` all operations before
   a synced one must have survived, and all before a change of the size of a synced file. On `ext4` a sync of the data
   alone counts only a change of the size in the inode on the disk. A cut is in the inode at once. A growth may be
   there at the next sync. On `journal` and `btrfs` those must have survived that an operation depends on:
   earlier ones of the same file or directory, those of the file or directory that durably had its name, and the
   creation of the directories above. A removal of a directory depends on the operations that emptied it. A removal of
   a name does not depend on the other links of the file. On these two a sync of a directory may commit
   the operations on the directory, in it, and in new directories below it, and the links and renames of the files that
   have a new name there. A sync of a linked or renamed file may do so for each directory that has or had a name of it.
   Any sync may commit a rename
   or removal in a directory that was synced before, and a rename, removal or link of a file that was. A sync of the
   data of a file may commit its renames and links. All other operations survive without a sync in their order: if one
   survived, all before it did. After a `kill` all operations survived. No other operation took effect. Everything below
   a directory that did not survive is unreachable. A file that was moved to another directory may be at both names on
   `posix-strict`, and on `journal` and `btrfs` if a sync committed the rename or may have. It is not after a sync of
   the old directory, nor after one of the file that counts for its renames.
2. A size is the one at the last successful sync of the file, or one set later; after a `kill` it is the last one. A
   sync of some bytes leaves out the sizes up to the last one that is too small for them; on `journal`, `ext4` and `xfs`
   also those before the last cut. It counts for a change of the size only if one size is left. On `btrfs` it is a sync
   of the whole file.
3. A page has its last version at or before the last sync that covered it, or any later one. A sync does not cover a
   page that was dropped since its last write. A sync of some bytes covers the pages with a byte of them. A tear takes
   512-byte sectors of exactly two such versions; on `btrfs` there is none. After a `kill` the page has its last
   version. It is cut at the size, and zero where nothing was written. On `journal`, `ext4`, `xfs` and `btrfs` a version
   since a cut that freed the page needs the size of that cut or a later size.
4. No claim refers to an entry after the crash. A failed sync is not a barrier. A kill changes nothing.

Preconditions are checked and reported: bytes that a shrinking file loses were zeroed before, pages are written inside
their file, and inodes are known. Not verified: how the journal was recorded, and whether the store would have been
killed at that position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from tornpage.properties.disk.journal import (
    DirectoryMade,
    DirectoryRemoved,
    DirectoryRenamed,
    DirectorySynced,
    Entry,
    FileCreated,
    FileLinked,
    FileRenamed,
    FileSynced,
    FileUnlinked,
)
from tornpage.properties.disk.legality_files import (
    PAGE_BYTES,
    FileHistory,
    around,
    file_histories,
    pages_to_check,
    size_changes,
    unusable,
)
from tornpage.properties.disk.legality_names import (
    Changes,
    Directory,
    Entered,
    Subject,
    entries_after,
    names_after,
    read_changes,
)

if TYPE_CHECKING:
    from tornpage.properties.disk.certificate import Certificate, FileClaim, PageClaim
    from tornpage.properties.disk.disk import Image

__all__ = ["objections"]

SECTOR_BYTES = 512
TEAR_MASKS = range(1, 255)  # 0 and 255 tear nothing
ALL_DISKS = ("posix-strict", "journal", "ext4", "xfs", "btrfs", "kill")
WITH_JOURNAL = ("journal", "ext4", "xfs", "btrfs")
WITH_ALL_BEFORE = ("ext4", "xfs")
WITHOUT_TEARS = ("btrfs",)
MAY_COMMIT_MORE = ("journal", "btrfs")
SPLITS_MOVES = ("posix-strict", "journal", "btrfs")
DATA_SYNC_IS_WHOLE = ("btrfs",)
DATA_SYNC_KEEPS_NO_RENAME = ("journal", "ext4")

Value = TypeVar("Value")
Operation = FileCreated | FileLinked | FileRenamed | FileUnlinked | DirectoryMade | DirectoryRenamed | DirectoryRemoved


def objections(base: Image, journal: Sequence[Entry], image: Image, certificate: Certificate) -> list[str]:
    """Return the sentences why `image` is illegal for `certificate`; [] if it is legal.

    Inodes of `base` are numbered by sorted path, as in the journal. Cost: linear in the journal times its directory
    operations, plus the bytes of the image.
    """
    if not 0 <= certificate.position <= len(journal):
        return [f"the crash at {certificate.position} lies outside the journal of {len(journal)} entries"]
    if certificate.disk not in ALL_DISKS:
        return [f"there is no disk {certificate.disk!r}"]
    if reasons := list(unusable(base, journal)):
        return reasons
    changes = read_changes(base, journal)
    found = [*_about_operations(base, journal, changes, certificate), *_about_names(base, changes, image, certificate)]
    position, disk = certificate.position, certificate.disk
    inodes = file_histories(base, journal, position, syncs_whole_file=disk in DATA_SYNC_IS_WHOLE)
    for claim in certificate.files:
        content, inode = image.files.get(claim.path), inodes.get(claim.inode)
        if content is not None and inode is not None:
            found += [f"{claim.path}: {reason}" for reason in _about_file(inode, claim, content, position, disk)]
    return found


# ---- rule 1: directory operations and names --------------------------------------------------------------------------


def _operations(journal: Sequence[Entry], position: int) -> dict[int, Operation]:
    return {n: entry for n, entry in enumerate(journal[:position]) if isinstance(entry, Operation)}


def _durable_since(base: Image, journal: Sequence[Entry], changes: Changes, position: int, disk: str) -> dict[int, int]:
    """Return the first barrier for each operation that a barrier before the crash covers."""
    operations = _operations(journal, position)
    since: dict[int, int] = {}
    sized = size_changes(base, journal[:position]) if disk in WITH_ALL_BEFORE and operations else {}
    for barrier, entry in enumerate(journal[:position]):
        covered: list[int] = []
        if barrier in changes.syncs:
            directory = changes.syncs[barrier]
            covered = [n for n in operations if n < barrier and changes.operations[n].is_in(directory)]
            if disk in WITH_JOURNAL:
                own = [n for n in operations if n < barrier and changes.operations[n].subject == directory]
                covered += [n for n in own if isinstance(operations[n], DirectoryMade | DirectoryRenamed)]
        elif isinstance(entry, FileSynced) and entry.succeeded and disk in WITH_JOURNAL:
            only_created = entry.data_only and disk in DATA_SYNC_KEEPS_NO_RENAME
            naming = FileCreated if only_created else FileCreated | FileLinked | FileRenamed
            covered = [
                n for n, o in operations.items() if n < barrier and isinstance(o, naming) and o.inode == entry.inode
            ]
            for each in sized.get(barrier, []):
                is_enough = each.in_inode or not (entry.data_only and disk in DATA_SYNC_KEEPS_NO_RENAME)
                covered += [n for n in operations if is_enough and n < each.entry]
        covered = [n for n in covered if n not in since]
        if covered and disk in WITH_ALL_BEFORE:
            covered = [n for n in operations if n <= max(covered)]
        elif covered and disk in WITH_JOURNAL:
            covered = _depended_on(operations, changes, covered, _holders_after(base, changes, since))
        for n in covered:
            since.setdefault(n, barrier)
    return since


def _below_new(
    operations: dict[int, Operation], changes: Changes, since: dict[int, int], barrier: int, directory: Directory
) -> list[int]:
    """Return the operations in flight on a directory, in it and in new ones below it.

    The creation of a new directory is in flight too.
    """
    in_flight = [n for n in operations if n < barrier and n not in since]
    made = {changes.operations[n].subject for n in in_flight if isinstance(operations[n], DirectoryMade)}
    places = [directory]
    for place in places:  # grows while it is walked
        inside = {changes.operations[n].subject for n in in_flight if changes.operations[n].is_in(place)}
        places += [subject for subject in inside & made if subject not in places]
    on_it = [n for n in in_flight if changes.operations[n].subject == directory]
    return on_it + [n for n in in_flight if any(changes.operations[n].is_in(place) for place in places)]


def _maybe_committed(
    base: Image, journal: Sequence[Entry], changes: Changes, position: int, since: dict[int, int]
) -> set[int]:
    """Return the operations that a sync of another file or directory may have committed."""
    operations, found = _operations(journal, position), set[int]()
    files, directories = set[int](), set[Directory]()
    for barrier, entry in enumerate(journal[:position]):
        if not isinstance(entry, DirectorySynced | FileSynced) or (
            isinstance(entry, FileSynced) and not entry.succeeded
        ):
            continue
        earlier = {n: at for n, at in since.items() if at < barrier}
        logged = [
            n
            for n, o in operations.items()
            if n < barrier and n not in earlier
            if (isinstance(o, FileLinked | FileRenamed | FileUnlinked) and o.inode in files)
            or (changes.operations[n].removed and any(changes.operations[n].is_in(place) for place in directories))
        ]
        places, own = list[Directory](), list[int]()
        if isinstance(entry, DirectorySynced):
            places = [changes.syncs[barrier]]
            directories.add(changes.syncs[barrier])
        else:
            files.add(entry.inode)
            for n, o in operations.items():
                if n < barrier and n not in earlier and isinstance(o, FileLinked | FileRenamed):
                    own += [n] if o.inode == entry.inode else []
            places = [side for n in own for side in changes.places(n)]
            if own:
                held = entries_after(base, changes, [n for n in operations if n < barrier])
                places += [above for (above, _), (there, _) in held.items() if there == ("inode", entry.inode)]
        groups = [logged, own]
        for place in dict.fromkeys(places):
            below = _below_new(operations, changes, earlier, barrier, place)
            files_there = {changes.operations[n].subject for n in below if changes.operations[n].names_file}
            more = [n for n in operations if n < barrier and n not in earlier and n not in below]
            groups.append(below + [n for n in more if _renames_or_links(operations[n], changes, n, files_there)])
        for group in groups:
            found.update(_depended_on(operations, changes, group, _holders_after(base, changes, earlier)))
    return found


def _renames_or_links(operation: Operation, changes: Changes, n: int, files: set[Subject]) -> bool:
    return isinstance(operation, FileLinked | FileRenamed) and changes.operations[n].subject in files


def _depended_on(
    operations: dict[int, Operation], changes: Changes, synced: list[int], holders: dict[Entered, Subject]
) -> list[int]:
    """Return the synced operations and every operation that they need, directly or not."""
    needed: list[int] = []
    left = list(synced)
    while left:
        later = left.pop()
        if later not in needed:
            needed.append(later)
            left += [n for n in operations if n < later and _needs(operations, changes, later, n, holders)]
    return needed


def _needs(
    operations: dict[int, Operation], changes: Changes, later: int, earlier: int, holders: dict[Entered, Subject]
) -> bool:
    """Whether an operation needs an earlier one directly."""
    needing, needed = changes.operations[later], changes.operations[earlier]
    if needed.subject == needing.subject:
        is_other_link = isinstance(operations[earlier], FileLinked) and needed.added != needing.removed
        return not (isinstance(operations[later], FileUnlinked) and is_other_link)
    if needed.subject in [holders.get(entered) for entered in needing.entries]:
        return True
    if isinstance(operations[earlier], DirectoryMade):
        return any(place == needed.subject for place, _ in needing.entries)
    emptied = isinstance(operations[later], DirectoryRemoved)
    return emptied and needed.removed is not None and needed.removed[0] == needing.subject


def _may_be_twice(
    journal: Sequence[Entry], changes: Changes, position: int, n: int, disk: str, *, committed: bool
) -> bool:
    """Whether the file of the rename at entry `n` may be at its old name too.

    `committed` says whether a sync has committed the rename, or may have.
    """
    entry = journal[n]
    if disk not in SPLITS_MOVES or not isinstance(entry, FileRenamed):
        return False
    old, new = changes.places(n)
    if old == new or not (committed or disk == "posix-strict"):
        return False
    for barrier in range(n + 1, position):
        sync = journal[barrier]
        if changes.syncs.get(barrier) == old:
            return False
        is_of_file = isinstance(sync, FileSynced) and sync.succeeded and sync.inode == entry.inode
        is_data_only = isinstance(sync, FileSynced) and sync.data_only and disk in DATA_SYNC_KEEPS_NO_RENAME
        if disk in WITH_JOURNAL and is_of_file and not is_data_only:
            return False
    return True


def _holders_after(base: Image, changes: Changes, since: dict[int, int]) -> dict[Entered, Subject]:
    """Return the file or directory of each directory entry after durable operations."""
    return {at: subject for at, (subject, _) in entries_after(base, changes, sorted(since)).items()}


def _about_operations(
    base: Image, journal: Sequence[Entry], changes: Changes, certificate: Certificate
) -> Iterator[str]:
    position, disk = certificate.position, certificate.disk
    operations, since = _operations(journal, position), _durable_since(base, journal, changes, position, disk)
    claimed = [claim.entry for claim in certificate.operations]
    alone = _maybe_committed(base, journal, changes, position, since) if disk in MAY_COMMIT_MORE else set()
    if claimed != sorted(set(claimed)):
        yield f"the surviving directory operations {claimed} are not in order"
    for n in sorted(set(claimed) - set(operations)):
        yield f"entry {n} is not a directory operation before the crash"
    for n in sorted(set(operations) - set(claimed)):
        if n in since:
            yield f"the directory operation at entry {n} is lost, but durable since entry {since[n]}"
        elif disk == "kill":
            yield f"the directory operation at entry {n} is lost, but only the process died"
        elif disk in WITH_JOURNAL and any(later > n and later not in since and later not in alone for later in claimed):
            yield f"the directory operation at entry {n} is lost, but a later one survived"
    for claim in certificate.operations:
        if claim.entry not in operations:
            continue
        change = changes.operations[claim.entry]
        committed = claim.entry in since or claim.entry in alone
        if claim.keeps_source and not _may_be_twice(journal, changes, position, claim.entry, disk, committed=committed):
            yield f"the old name is kept by the rename at entry {claim.entry}, which may not be"
        before, after = around([n for n, directory in changes.syncs.items() if change.is_in(directory)], position)
        true = (change.place, since.get(claim.entry), before, after)
        said = (claim.directory, claim.durable_since, claim.barrier_before, claim.barrier_after)
        if said != true:
            yield f"the barriers of the directory operation at entry {claim.entry} are {true}, not {said}"


def _about_names(base: Image, changes: Changes, image: Image, certificate: Certificate) -> Iterator[str]:
    before = (n for n in changes.operations if n < certificate.position)
    claimed = {claim.entry for claim in certificate.operations}
    twice = {claim.entry for claim in certificate.operations if claim.keeps_source}
    names, reached = names_after(base, changes, [n for n in before if n in claimed], twice)
    for path in sorted(set(image.files) & set(image.directories)):
        yield f"{path} is both a file and a directory"
    yield from _set_differences("directory", set(image.directories), reached)
    yield from _set_differences("file", set(image.files), set(names))
    yield from _set_differences("claim about file", {claim.path for claim in certificate.files}, set(names))
    if len({claim.path for claim in certificate.files}) != len(certificate.files):
        yield "a file is claimed twice"
    for claim in certificate.files:
        inode, named_by = names.get(claim.path, (claim.inode, claim.named_by))
        if (inode, named_by) != (claim.inode, claim.named_by):
            yield f"{claim.path} names inode {inode} by entry {named_by}, not {claim.inode} by {claim.named_by}"


def _set_differences(what: str, found: set[str], expected: set[str]) -> Iterator[str]:
    for path in sorted(expected - found):
        yield f"the {what} {path} is missing, but a surviving name leads to it"
    for path in sorted(found - expected):
        yield f"the {what} {path} is there, but no surviving name leads to it"


# ---- rules 2 and 3: sizes and pages ----------------------------------------------------------------------------------


def _about_file(inode: FileHistory, claim: FileClaim, content: bytes, position: int, disk: str) -> Iterator[str]:
    before, after = around(inode.syncs, position)
    if (claim.barrier_before, claim.barrier_after) != (before, after):
        yield f"its barriers are {(before, after)}, not {(claim.barrier_before, claim.barrier_after)}"
    every = inode.permitted_sizes(position, syncs_cuts=disk in WITH_JOURNAL)
    sizes = dict(every[-1:] if disk == "kill" else every)
    if claim.sized_by not in sizes:
        yield f"the size set at entry {claim.sized_by} may not survive, only those of {list(sizes)}"
    elif claim.size_bytes != sizes[claim.sized_by]:
        yield f"entry {claim.sized_by} set {sizes[claim.sized_by]} bytes, not {claim.size_bytes}"
    if len(content) != claim.size_bytes:
        yield f"it has {len(content)} bytes, not the {claim.size_bytes} claimed"
    claims = {page.page: page for page in claim.pages}
    if [page.page for page in claim.pages] != sorted(claims):
        yield "its pages are not claimed once each and in order"
    count = (len(content) + PAGE_BYTES - 1) // PAGE_BYTES
    for number in sorted(claims):
        if not 0 <= number < count:
            yield f"page {number} is claimed, but lies outside the file"
    for number in pages_to_check(inode.first, content, {*claims, *inode.versions}):
        first, written = inode.first[number * PAGE_BYTES : (number + 1) * PAGE_BYTES], inode.versions.get(number, [])
        covered, dropped = inode.page_barrier(number, position)
        permitted = _permitted(first, written, covered, disk)
        is_open = any(covered is None or n > covered for n, _ in written)
        if number in claims and claims[number].dropped_by != dropped:
            yield f"page {number} was skipped because of entry {dropped}, not {claims[number].dropped_by}"
        stored = content[number * PAGE_BYTES : (number + 1) * PAGE_BYTES]
        if disk in WITHOUT_TEARS and number in claims and claims[number].mask is not None:
            yield f"page {number} is torn, which this disk never does"
        if disk in WITH_JOURNAL and number in claims:
            yield from _about_cut(inode, claims[number], claim.sized_by)
        for reason in _about_page(permitted, claims.get(number), stored, is_open=is_open):
            yield f"page {number} {reason}"


def _about_cut(inode: FileHistory, claim: PageClaim, sized_by: int | str) -> Iterator[str]:
    for version in claim.versions:
        cut = inode.cut_before(claim.page, version) if isinstance(version, int) else None
        if cut is not None and (isinstance(sized_by, str) or sized_by < cut):
            yield f"page {claim.page} holds the version of entry {version}, after the cut at {cut}, with an older size"


def _permitted(
    first: Value, later: Sequence[tuple[int, Value]], barrier: int | None, disk: str
) -> dict[int | str, Value]:
    """Return the permitted values: the newest one that the barrier covers, and all after it."""
    values: list[tuple[int | str, Value]] = [("base", first), *later]
    newest_covered = sum(barrier is not None and n < barrier for n, _ in later)
    return dict(values[-1:] if disk == "kill" else values[newest_covered:])


def _about_page(
    permitted: dict[int | str, bytes], claim: PageClaim | None, stored: bytes, *, is_open: bool
) -> Iterator[str]:
    if not is_open:
        if claim is not None:
            yield "is claimed, but no version was in flight"
        (content,) = permitted.values()
        if stored != _whole(content)[: len(stored)]:
            yield "does not have its durable content"
        return
    if claim is None:
        yield "was in flight, and nothing is claimed about it"
        return
    if forbidden := [version for version in claim.versions if version not in permitted]:
        yield f"may not have the version of entry {forbidden[0]}, only those of {list(permitted)}"
        return
    pages, mask = [_whole(permitted[version]) for version in claim.versions], claim.mask
    if mask is None and len(pages) == 1:
        expected = pages[0]
    elif mask is not None and mask in TEAR_MASKS and len(set(claim.versions)) == len(pages) == 2:
        sectors = range(PAGE_BYTES // SECTOR_BYTES)
        expected = b"".join(pages[mask >> s & 1][s * SECTOR_BYTES : (s + 1) * SECTOR_BYTES] for s in sectors)
    else:
        yield f"is claimed to have versions {claim.versions} by mask {mask}, which is not a tear of two"
        return
    if stored != expected[: len(stored)]:
        yield f"does not hold what entries {claim.versions} wrote"


def _whole(content: bytes) -> bytes:
    return content + bytes(PAGE_BYTES - len(content))
