"""Look for a power loss of the crash model that leaves a given tree.

The search knows the choices of a crash state and nothing of the rules that make one legal: each candidate is composed
by the code of the crash lab and has to equal the tree.
"""

from collections.abc import Iterator
from itertools import product

from tornpage.model.operations import Choice
from tornpage.properties.disk.disk import DiskState, Image, InodeState
from tornpage.properties.disk.images import JOURNAL_WRITE, compose, halved_moves, named_inodes, optional_names
from tornpage.properties.disk.journal import PAGE_BYTES

__all__ = ["explained"]

SECTOR_BYTES = 512
SECTORS = PAGE_BYTES // SECTOR_BYTES
ALL_SECTORS = (1 << SECTORS) - 1


def explained(
    state: DiskState, found: Image, *, missing: frozenset[str] = frozenset()
) -> tuple[dict[str, Choice], str]:
    """Return choices that leave `found`, and "".

    Without such choices, return the nearest ones and the first thing that they do not explain. Any of the files in
    `missing` may be missing. The disk must be one on which names that no sync committed survive in their order.
    """
    nearest, reason = dict[str, Choice](), "the names are not those of any legal set of the unsynced operations"
    for choices in _choices_of_names(state):
        image = compose(state, choices)
        absent = image.files.keys() - found.files.keys()
        if image.directories != found.directories or found.files.keys() - image.files.keys() or absent - missing:
            continue
        for number, path in named_inodes(state, choices).items():
            if path in absent:
                continue
            contents, mismatch = _content(state, state.inodes[number], found.files[path])
            choices |= contents
            if mismatch:
                nearest, reason = choices, f"{path}: {mismatch}"
                break
        else:
            image = compose(state, choices)
            if all(image.files[path] == held for path, held in found.files.items()):
                return choices, ""
            wrong = sorted(path for path in found.files if image.files[path] != found.files[path])
            nearest, reason = choices, f"{wrong[0]}: no combination of size and pages is legal"
    return nearest, reason


def _choices_of_names(state: DiskState) -> Iterator[dict[str, Choice]]:
    optional, halved = list(optional_names(state)), list(halved_moves(state))
    switches = [*([(0, 1)] * len(optional)), *([(1, 0)] * len(halved))]
    for kept, *alone in product(range(len(state.pending) + 1), *switches):
        choices: dict[str, Choice] = {JOURNAL_WRITE: kept} if kept else {}
        choices |= {name: 1 for name, is_alive in zip([*optional, *halved], alone, strict=True) if is_alive}
        yield choices


def _content(state: DiskState, inode: InodeState, found: bytes) -> tuple[dict[str, Choice], str]:
    """Return choices for a size and for pages that give a content, or why there are none."""
    sizes = [number for number, size in enumerate([len(inode.durable), *inode.sizes]) if size == len(found)]
    if not sizes:
        return {}, f"{len(found)} bytes, which is none of {[len(inode.durable), *inode.sizes]}"
    reason = ""
    for size in reversed(sizes):
        choices: dict[str, Choice] = {f"size {inode.name}": size} if size else {}
        for page in range(-(-len(found) // PAGE_BYTES)):
            stored = found[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]
            versions = [inode.page(page)[: len(stored)], *inode.versions.get(page, [])]
            fitting = [
                choice
                for choice in _choices(stored, [_cut(version, len(stored)) for version in versions])
                if (state.rules.tears or isinstance(choice, int))
                and (not state.rules.cuts_whole or inode.may_hold(page, _newest(choice), size))
            ]
            if not fitting:
                reason = f"page {page} of {len(found)} bytes holds {_told(stored)}, not one of {len(versions)} versions"
                break
            if fitting[0]:
                choices[f"page {inode.name} {page}"] = fitting[0]
        else:
            return choices, ""
    return {}, reason


def _cut(version: bytes, size_bytes: int) -> bytes:
    return version[:size_bytes].ljust(size_bytes, b"\0")


def _newest(choice: Choice) -> int:
    return choice if isinstance(choice, int) else max(choice[:2])


def _choices(stored: bytes, versions: list[bytes]) -> Iterator[Choice]:
    """Yield the versions that a page equals, then the pairs of versions that it mixes."""
    yield from (number for number, version in enumerate(versions) if version == stored)
    for (first, one), (second, other) in product(enumerate(versions), repeat=2):
        if first < second and (mask := _mask(stored, one, other)) is not None:
            yield first, second, mask


def _mask(stored: bytes, one: bytes, other: bytes) -> int | None:
    """Return the sectors that come from `other`, if all others come from `one`.

    None if one of the two is everything.
    """
    mask = 0
    for sector in range(SECTORS):
        here = slice(sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES)
        if stored[here] != one[here]:
            if stored[here] != other[here]:
                return None
            mask |= 1 << sector
    return mask if 0 < mask < ALL_SECTORS else None


def _told(stored: bytes) -> str:
    """Return the runs of equal bytes in a page."""
    runs: list[list[int]] = []
    for byte in stored:
        if runs and runs[-1][0] == byte:
            runs[-1][1] += 1
        else:
            runs.append([byte, 1])
    return " + ".join(f"{count} of {byte}" for byte, count in runs[:6])
