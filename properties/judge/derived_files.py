"""Whether the files of queues and index hold what the log says, and nothing else (contract 4 and 5).

Files are content by name below the store's directory, from a recorded disk or from a real one; they are decoded by the
judges' own decoders, and what they must hold comes from the memory of queues and index. Each function raises
GuaranteeBroken at the first thing that is wrong.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import lru_cache

from tornpage.model.dispatch import Queue
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.decode.index import IndexEntry, decode_index
from tornpage.properties.decode.units import PREFILL_UNIT, StoredUnit, decode_units, resolved_tags_code
from tornpage.properties.judge.derived_ledger import DerivedLedger, EntryPut, QueueMemory
from tornpage.properties.program.case import Settings

__all__ = [
    "DERIVED",
    "EXTENSIONS",
    "INDEX",
    "QUEUES",
    "STRAY",
    "index_is_right",
    "is_base",
    "missing_before",
    "queues_are_right",
]

QUEUES, EXTENSIONS, INDEX = "consumequeue/", "consumequeue_ext/", "index/"
DERIVED = (QUEUES, EXTENSIONS, INDEX)
"""The directories whose files are made from the log."""

STRAY = "stray.txt"
"""What a trial calls a file that does not belong to a store: it is left alone."""

_BASE_DIGITS = 20

_decoded_index = lru_cache(maxsize=4096)(decode_index)  # the same log gives the same index, and most states share one


def is_base(name: str) -> bool:
    """Whether a file can have this name for the offset or the position that it begins at."""
    return len(name) == _BASE_DIGITS and name.isascii() and name.isdecimal()


def queues_are_right(
    content: Mapping[str, bytes],
    derived: DerivedLedger,
    end_offset: int,
    *,
    settings: Settings,
    min_offset: int = 0,
    was_harmed: bool = False,
) -> None:
    """Contract 4: each queue file holds the units of the surviving records in order, zeros behind them, and no file
    lies beside; what stands before the first unit is the filler that points nowhere.

    Units of records in front of `min_offset` may still be there, filler in their place, or nothing if they were all
    that a file held; the file with the last unit of a queue stays, since it has its number. In a store that was
    harmed behind its back they may say something else of what is in front: nobody can tell what it was, or reads it.
    """
    file_bytes = settings.queue_units * UNIT_BYTES
    left = {name: data for name, data in content.items() if name.startswith(QUEUES) and not name.endswith(STRAY)}
    for queue, memory, count in derived.queues_at(end_offset):
        gone = _removed_places(memory, count, min_offset)
        is_needed = not gone
        for name, expected in _expected_files(queue, memory, count, file_bytes=file_bytes):
            found, wanted = left.pop(name, None), expected.ljust(file_bytes, b"\0")
            is_needed |= int(name[-20:]) + len(expected) > gone or len(expected) < file_bytes
            if found is None:
                if is_needed:
                    raise GuaranteeBroken(4, f"the queue file {name} is not there")
                continue
            is_needed = True  # those behind it: there is no gap
            end = max(0, min(gone - int(name[-20:]), len(wanted)))
            wanted = _removed(found[:end], wanted[:end], min_offset, settings.queue_ext, was_harmed) + wanted[end:]
            if found != wanted:
                _compare_units(name, found, wanted, content if settings.queue_ext else {})
        if gone and not is_needed:
            raise GuaranteeBroken(4, f"queue {queue} has no file left: its numbers would begin at 0 again")
    for name, found in left.items():
        if not is_base(name[-20:]) or len(found) != file_bytes:
            raise GuaranteeBroken(4, f"{name} does not belong among the queues", "no such file", f"{len(found)} bytes")
        if found.strip(b"\0"):
            raise GuaranteeBroken(4, f"{name} holds units of no surviving record", "zeros", _first_unit(found))


def _removed_places(memory: QueueMemory, count: int, min_offset: int) -> int:
    """Return the position behind the last unit whose record lies in front of the log, 0 without one."""
    first = min(memory.first_at(min_offset), count)
    return (memory.units[0].queue_offset + first) * UNIT_BYTES if first else 0


def _removed(found: bytes, wanted: bytes, min_offset: int, has_ext: bool, was_harmed: bool) -> bytes:
    """Return what should stand where units are of removed records: what is found, where that may stand there.

    It may be filler. What such a unit has in the extension may be gone too, and its address then leads nowhere.
    """
    pieces = []
    for position in range(0, len(wanted), UNIT_BYTES):
        stored = found[position : position + UNIT_BYTES]
        unit = wanted[position : position + UNIT_BYTES]
        may_stand = stored == PREFILL_UNIT or (has_ext and stored[:12] == unit[:12])
        may_stand |= was_harmed and _points_in_front_of(min_offset, stored)
        pieces.append(stored if may_stand else unit)
    return b"".join(pieces)


def _points_in_front_of(offset: int, stored: bytes) -> bool:
    """Return whether a unit points to something in front of a physical offset; its length may have been pre-fill's."""
    units = decode_units(stored)
    return bool(units) and 0 <= units[0][0] < offset and units[0][1] > 0


def _expected_files(queue: Queue, memory: QueueMemory, count: int, *, file_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Yield name of each file that a queue with its first `count` units needs, and how its content begins."""
    start = memory.units[0].queue_offset * UNIT_BYTES
    base = start // file_bytes * file_bytes
    stored = PREFILL_UNIT * ((start - base) // UNIT_BYTES) + memory.stored[: count * UNIT_BYTES]
    for position in range(0, len(stored), file_bytes):
        piece = bytes(stored[position : position + file_bytes])
        yield f"{QUEUES}{queue[0]}/{queue[1]}/{base + position:020d}", piece


def _compare_units(name: str, found: bytes, expected: bytes, content: Mapping[str, bytes]) -> None:
    """Compare unit by unit; a tags code may lie in the extension, of which `content` has the files."""
    if len(found) != len(expected):
        raise GuaranteeBroken(4, f"{name} has the wrong size", str(len(expected)), str(len(found)))
    first = int(name[-20:]) // UNIT_BYTES
    extension: dict[int, bytes] | None = None
    for number, (stored, wanted) in enumerate(zip(decode_units(found), decode_units(expected), strict=True), first):
        if stored == wanted:
            continue
        if extension is None:
            directory = EXTENSIONS + name[len(QUEUES) : -20]
            extension = {
                int(other[-20:]): data
                for other, data in content.items()
                if other.startswith(directory) and is_base(other[len(directory) :])
            }
        if stored[:2] != wanted[:2] or resolved_tags_code(stored, extension) != wanted[2]:
            raise GuaranteeBroken(4, f"unit {number} of {name} is wrong", _shown(wanted), _shown(stored))


def _places(units: bytes) -> list[tuple[int, int]]:
    """Return where units point to; their tags codes may lie in the extension."""
    return [unit[:2] for unit in decode_units(units)]


def _shown(unit: StoredUnit) -> str:
    return f"offset {unit[0]}, size {unit[1]}, tags code {unit[2]}"


def _first_unit(found: bytes) -> str:
    return next(_shown(unit) for unit in decode_units(found) if any(unit))


def index_is_right(
    content: Mapping[str, bytes], derived: DerivedLedger, end_offset: int, *, settings: Settings, min_offset: int = 0
) -> None:
    """Contract 5: the entries of all index files, one behind the other, are those of the surviving records; every
    chain, count and range fits them, and only the last file has room left.

    In front may stand entries of places before `min_offset`, where there is no record any more to compare them with.
    """
    names = _index_names(content)
    entries = derived.entries_at(end_offset)
    removed = bisect_left(entries, min_offset, key=_offset_of) if min_offset else 0
    expected, at = entries[removed:], 0
    last_timestamp = 0
    for name in names:
        view = _decoded_index(content[name], slots=settings.index_slots, entries=settings.index_entries)
        for problem, detail in view.problems:
            raise GuaranteeBroken(5, f"{name} contradicts itself, {problem}", found=detail)
        front = 0 if at else bisect_left(view.entries, min_offset, key=_place_of)
        found_entries = view.entries[front:]
        puts = expected[at : at + len(found_entries)]
        for entry, put in zip(found_entries, puts, strict=False):
            if (entry.key_hash, entry.offset) != put[:2]:
                found = f"{entry.key_hash:#x} at {entry.offset}"
                raise GuaranteeBroken(5, f"entry {entry.number} of {name} is wrong", f"{put[0]:#x} at {put[1]}", found)
        if len(puts) < len(found_entries):
            raise GuaranteeBroken(
                5, f"{name} has entries of no surviving record", str(len(puts)), str(len(found_entries))
            )
        if puts:
            times = (view.header.begin_timestamp, view.header.end_timestamp)
            wanted = (times[0] if front else puts[0][2], puts[-1][2])
            if times != wanted:
                raise GuaranteeBroken(5, f"{name} has the wrong times", f"{wanted[0]}, {wanted[1]}", str(times))
            begins = [times[0] if front else last_timestamp, *[times[0]] * (len(puts) - 1)]
            for entry, put, begin in zip(found_entries, puts, begins, strict=True):
                seconds = max(0, (put[2] - begin) // 1000) if begin else 0
                is_relative_to_a_file_that_is_gone = removed and name == names[0] and entry.number == 1
                if entry.seconds != seconds and not is_relative_to_a_file_that_is_gone:
                    sentence = f"entry {entry.number} of {name} has the wrong time"
                    raise GuaranteeBroken(5, sentence, f"{seconds} s", f"{entry.seconds} s")
        last_timestamp = view.header.end_timestamp if view.entries else last_timestamp
        if name != names[-1] and len(view.entries) != settings.index_entries - 1:
            raise GuaranteeBroken(5, f"{name} is not full, and not the last", found=f"{len(view.entries)} entries")
        at += len(puts)
    if at < len(expected):
        raise GuaranteeBroken(5, f"the index ends before the entry of the record at {expected[at][1]}")


def _offset_of(put: EntryPut) -> int:
    return put[1]


def _place_of(entry: IndexEntry) -> int:
    return entry.offset


def _index_names(content: Mapping[str, bytes]) -> list[str]:
    """Return the names of the index files, the oldest first."""
    return sorted(name for name in content if name.startswith(INDEX) and not name.endswith(STRAY))


def missing_before(
    content: Mapping[str, bytes],
    derived: DerivedLedger,
    end_offset: int,
    *,
    queues_ms: int,
    index_ms: int,
    settings: Settings,
    min_offset: int = 0,
) -> str | None:
    """Return what a disk lacks of the records older than the times of its checkpoint, or None (contract 9).

    A record of exactly that time may have come later than the checkpoint; one in front of `min_offset` is gone.
    """
    file_bytes = settings.queue_units * UNIT_BYTES
    for queue, memory, count in derived.queues_at(end_offset) if queues_ms else ():
        older = sum(unit.record.store_timestamp < queues_ms for unit in memory.units[:count])
        for name, expected in _expected_files(queue, memory, older, file_bytes=file_bytes) if older else ():
            found, base = content.get(name, b""), int(name[-20:])
            if found.startswith(expected):
                continue
            skipped = max(0, _removed_places(memory, count, min_offset) - base)
            if _places(found[skipped : len(expected)]) != _places(expected[skipped:]):
                return f"a unit in {name}"
    older = sum(put[2] < index_ms for put in derived.entries_at(end_offset)) if index_ms else 0
    if not older:
        return None
    there = [
        (entry.key_hash, entry.offset)
        for name in _index_names(content)
        for entry in _decoded_index(content[name], slots=settings.index_slots, entries=settings.index_entries).entries
    ]
    there = [place for place in there if place[1] >= min_offset]
    left = [put for put in derived.entries_at(end_offset)[:older] if put[1] >= min_offset]
    for number, put in enumerate(left):
        if number >= len(there) or there[number] != put[:2]:
            return f"index entry {number} of the record at {put[1]}"
    return None
