"""Decide from the journal alone whether a crash may leave an image.

The module shares no code with the code that makes images and certificates. Of this project it uses the entry types of
the journal and, for annotations only, the values Image and Certificate; a test checks that. It is slow, and written to
be compared with docs/contract.md, "Crash model":

1. A directory operation must have survived if a successful sync of its directory came after it. A rename between two
   directories is one operation, and a sync of either counts. On the disk `journal` all operations before such an
   operation must have survived too, a sync of a file counts for the operations that created, linked or renamed it, a
   sync of a directory counts for its own renames, and the survivors are a prefix. After a `kill` all operations
   survived. No other operation took effect. An operation changes an entry of a directory, whatever path the directory
   had at that time. Everything below a directory that did not survive is unreachable.
2. A size is the one at the last successful sync of the file, or one set later; after a `kill` it is the last one.
3. A page has its last version at or before the last sync that covered it, or any later one. A sync does not cover a
   page that was dropped since its last write. A tear takes 512-byte sectors of exactly two such versions. After a
   `kill` the page has its last version. It is cut at the size, and zero where nothing was written. On the disk
   `journal` a version since a cut that freed the page needs the size of that cut or a later size.
4. No claim refers to an entry after the crash. A failed sync is not a barrier. A kill changes nothing.

Preconditions are checked and reported: bytes that a shrinking file loses were zeroed before, pages are written inside
their file, and inodes are known. Not verified: how the journal was recorded, and whether the store would have been
killed at that position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from tornpage.properties.disk.journal import Entry, FileSynced
from tornpage.properties.disk.legality_files import (
    PAGE_BYTES,
    FileHistory,
    around,
    file_histories,
    pages_to_check,
    unusable,
)
from tornpage.properties.disk.legality_names import Changes, names_after, read_changes

if TYPE_CHECKING:
    from tornpage.properties.disk.certificate import Certificate, FileClaim, PageClaim
    from tornpage.properties.disk.disk import Image

__all__ = ["objections"]

SECTOR_BYTES = 512
TEAR_MASKS = range(1, 255)  # 0 and 255 tear nothing

Value = TypeVar("Value")


def objections(base: Image, journal: Sequence[Entry], image: Image, certificate: Certificate) -> list[str]:
    """Return the sentences why `image` is illegal for `certificate`; [] if it is legal.

    Inodes of `base` are numbered by sorted path, as in the journal. Cost: linear in the journal times its directory
    operations, plus the bytes of the image.
    """
    if not 0 <= certificate.position <= len(journal):
        return [f"the crash at {certificate.position} lies outside the journal of {len(journal)} entries"]
    if certificate.disk not in ("posix-strict", "journal", "kill"):
        return [f"there is no disk {certificate.disk!r}"]
    if reasons := list(unusable(base, journal)):
        return reasons
    changes = read_changes(base, journal)
    found = [*_about_operations(journal, changes, certificate), *_about_names(base, changes, image, certificate)]
    position, disk = certificate.position, certificate.disk
    inodes = file_histories(base, journal, position)
    for claim in certificate.files:
        content, inode = image.files.get(claim.path), inodes.get(claim.inode)
        if content is not None and inode is not None:
            found += [f"{claim.path}: {reason}" for reason in _about_file(inode, claim, content, position, disk)]
    return found


# ---- rule 1: directory operations and names --------------------------------------------------------------------------


def _durable_since(journal: Sequence[Entry], changes: Changes, position: int, disk: str) -> dict[int, int]:
    """Return the first barrier for each operation that a barrier before the crash covers."""
    operations = {n: change for n, change in changes.operations.items() if n < position}
    since: dict[int, int] = {}
    for barrier, entry in enumerate(journal[:position]):
        covered: list[int] = []
        if barrier in changes.syncs:
            directory = changes.syncs[barrier]
            covered = [n for n, change in operations.items() if n < barrier and change.is_in(directory)]
            if disk == "journal":
                own = [n for n, change in operations.items() if change.is_rename and change.subject == directory]
                covered += [n for n in own if n < barrier]
        elif isinstance(entry, FileSynced) and entry.succeeded and disk == "journal":
            file = ("inode", entry.inode)
            naming = [n for n, change in operations.items() if change.names_file and change.subject == file]
            covered = [n for n in naming if n < barrier]
        if covered and disk == "journal":
            covered = [n for n in operations if n <= max(covered)]
        for n in covered:
            since.setdefault(n, barrier)
    return since


def _about_operations(journal: Sequence[Entry], changes: Changes, certificate: Certificate) -> Iterator[str]:
    position, disk = certificate.position, certificate.disk
    operations = {n: change for n, change in changes.operations.items() if n < position}
    since = _durable_since(journal, changes, position, disk)
    claimed = [claim.entry for claim in certificate.operations]
    if claimed != sorted(set(claimed)):
        yield f"the surviving directory operations {claimed} are not in order"
    for n in sorted(set(claimed) - set(operations)):
        yield f"entry {n} is not a directory operation before the crash"
    for n in sorted(set(operations) - set(claimed)):
        if n in since:
            yield f"the directory operation at entry {n} is lost, but durable since entry {since[n]}"
        elif disk == "kill":
            yield f"the directory operation at entry {n} is lost, but only the process died"
        elif disk == "journal" and any(later > n for later in claimed):
            yield f"the directory operation at entry {n} is lost, but a later one survived"
    for claim in certificate.operations:
        if claim.entry not in operations:
            continue
        change = operations[claim.entry]
        before, after = around([n for n, directory in changes.syncs.items() if change.is_in(directory)], position)
        true = (change.place, since.get(claim.entry), before, after)
        said = (claim.directory, claim.durable_since, claim.barrier_before, claim.barrier_after)
        if said != true:
            yield f"the barriers of the directory operation at entry {claim.entry} are {true}, not {said}"


def _about_names(base: Image, changes: Changes, image: Image, certificate: Certificate) -> Iterator[str]:
    before = (n for n in changes.operations if n < certificate.position)
    claimed = {claim.entry for claim in certificate.operations}
    names, reached = names_after(base, changes, [n for n in before if n in claimed])
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
    sizes = _permitted(len(inode.first), inode.sizes, before, disk)
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
        if disk == "journal" and number in claims:
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
