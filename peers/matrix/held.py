"""Index entries and delay progress in the directory of a store that is not open.

The matrix reads them before and after an open with our store, to check the reason of a finding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from operator import itemgetter
from pathlib import Path

from tornpage.peers.matrix.workload import SETTINGS
from tornpage.properties.decode.config_files import load_config, parse_delay_offsets
from tornpage.properties.decode.index import decode_index
from tornpage.properties.decode.store import read_checkpoint

__all__ = ["Changed", "Held", "Run", "changed_entries", "dropped_records", "held_in"]

_DELAYS = "config/delayOffset.json"
_BY_ENTRIES = "slots_count_entries"
"""The header of a healthy file up to 4.6.1."""


@dataclass(frozen=True, slots=True)
class Run:
    """The physical offset of a record, and hash and file of its consecutive index entries."""

    offset: int
    hashes: tuple[int, ...]
    file_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """Index entries by record, in file order, and the next message to deliver by delay level.

    `problems` names what is wrong in an index file by itself: a chain, or a header that contradicts its entries.
    `covered_ms` is the time up to which the checkpoint covers log and queues, 0 without a checkpoint.
    """

    runs: tuple[Run, ...] = ()
    progress: tuple[tuple[int, int], ...] = ()
    problems: tuple[str, ...] = ()
    covered_ms: int = 0


def held_in(directory: Path) -> Held:
    """Return what a store directory holds. Missing files count as empty.

    Raises ValueError for invalid progress.
    """
    entries: list[tuple[int, int, str]] = []
    problems: list[str] = []
    folder = directory / "index"
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        view = decode_index(path.read_bytes(), slots=SETTINGS["maxHashSlotNum"], entries=SETTINGS["maxIndexNum"])
        entries += [(entry.offset, entry.key_hash, path.name) for entry in view.entries]
        problems += [f"{path.name}: {code}" for code, _ in view.problems if code != _BY_ENTRIES]
    runs: list[Run] = []
    for offset, group in groupby(entries, key=itemgetter(0)):
        rows = list(group)
        runs.append(Run(offset, tuple(code for _, code, _ in rows), tuple(name for _, _, name in rows)))
    names = [name for name in (_DELAYS, f"{_DELAYS}.bak") if (directory / name).exists()]
    document = load_config({name: (directory / name).read_bytes() for name in names}, _DELAYS)
    progress = () if document is None else parse_delay_offsets(document)
    checkpoint = read_checkpoint(directory)
    covered_ms = 0 if checkpoint is None else min(checkpoint.physic_timestamp, checkpoint.logics_timestamp)
    return Held(tuple(runs), progress, tuple(problems), covered_ms)


@dataclass(frozen=True, slots=True)
class Changed:
    """How an index differs from the entries that the log requires.

    All three have physical offsets of records: `dropped` without an entry, `doubled` whose first keys have two entries,
    `tagged` with an entry for their tag. `file_name` is the file that has an entry in place of the first required one.
    """

    dropped: frozenset[int]
    doubled: frozenset[int]
    tagged: frozenset[int]
    file_name: str


def changed_entries(
    index: Sequence[Run], required: Sequence[Run], tag_hash_of: Callable[[int], int | None]
) -> Changed | None:
    """Compare an index with the required entries.

    Return None if they are equal or differ in any other way. The entries of a record may begin twice: the first ones,
    then all. The entry of a tag follows those of the keys. Records without an entry are those of `dropped_records`.
    """
    offsets = [run.offset for run in index]
    dropped = dropped_records(offsets, [run.offset for run in required])
    kept = [run for run in required if run.offset not in dropped]
    if offsets != [run.offset for run in kept]:
        return None
    doubled: set[int] = set()
    tagged: set[int] = set()
    first = next((run.file_names[0] for run in index if dropped and run.offset > max(dropped)), "")
    for found, wanted in zip(index, kept, strict=True):
        if found.hashes == wanted.hashes:
            continue
        tag_hash = tag_hash_of(found.offset)
        forms = [wanted.hashes] if tag_hash is None else [(*wanted.hashes, tag_hash), wanted.hashes]
        whole = next((form for form in forms if _ends_with_all(found.hashes, form)), None)
        if whole is None:
            return None
        name = found.file_names[_alike(found.hashes, wanted.hashes)]
        first = min(first, name) if first else name
        if len(found.hashes) > len(whole):
            doubled.add(found.offset)
        if len(whole) > len(wanted.hashes):
            tagged.add(found.offset)
    return Changed(dropped, frozenset(doubled), frozenset(tagged), first) if first else None


def dropped_records(indexed: Sequence[int], required: Sequence[int]) -> frozenset[int]:
    """Return the physical offsets of records that a release no longer indexes after a kill.

    They are consecutive, and the next record lies in a later log file, at which the recovery began. Return none if
    other records are missing too.
    """
    present = set(indexed)
    ordered = sorted(required)
    missing = [offset for offset in ordered if offset not in present]
    if not missing:
        return frozenset()
    first = ordered.index(missing[0])
    following = ordered[first + len(missing) :]
    is_one_part = ordered[first : first + len(missing)] == missing
    file_bytes = SETTINGS["mappedFileSizeCommitLog"]
    if not is_one_part or not following or following[0] // file_bytes == missing[-1] // file_bytes:
        return frozenset()
    return frozenset(missing)


def _ends_with_all(hashes: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    """Return whether hashes are `whole`, or its first ones and then `whole`."""
    repeated = len(hashes) - len(whole)
    return repeated >= 0 and hashes[repeated:] == whole and hashes[:repeated] == whole[:repeated]


def _alike(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """Return how many hashes at the begin of both are equal."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
