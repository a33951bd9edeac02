"""Judge checkpoint and floors: their values, and whether they are whole.

These are parts of contract 7, 9 and 13.

The judges' own decoders read the bytes that the crash left and those that the recovery left. A file that was damaged
from outside is judged only after the recovery has rewritten it.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.decode.derived_floor import parse_derived_floor
from tornpage.properties.decode.durable_floor import Floor, parse_durable_floor
from tornpage.properties.disk.disk import Image
from tornpage.properties.judge.evidence import Evidence, derived_on, name_of
from tornpage.properties.judge.index import decoded_index, index_names
from tornpage.properties.judge.ledgers import DerivedLedger
from tornpage.properties.judge.queues import expected_files, places_of, removed_places
from tornpage.properties.judge.rulings import Ruling, broken, judge
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import LOG_PATHS, ROOT

__all__ = [
    "CHECKPOINT",
    "CHECKPOINT_BYTES",
    "DERIVED_FLOOR",
    "DURABLE_FLOOR",
    "SMALL_FILE_JUDGES",
    "checkpoint_is_not_ahead",
    "checkpoint_is_not_ahead_of_queues",
    "checkpoint_times",
    "floor_in",
    "floors_say_what_is_durable",
    "has_times",
    "missing_before",
    "physic_timestamp",
    "small_files_are_whole",
]


def physic_timestamp(image: Image) -> int:
    """Return the checkpoint's store timestamp up to which the log is durable.

    Source: docs/format.md, section 6.
    """
    return int.from_bytes(image.files.get(f"{ROOT}/checkpoint", b"")[:8], "big", signed=True)


@judge(9)
def checkpoint_is_not_ahead(found: Evidence) -> Ruling | None:
    """Contract 9: the checkpoint on disk has no time after the newest record in the log.

    A recovery that started from such a time would skip missing records. This must hold for the disk that the crash left
    and for the disk that recovery left.
    """
    newest = max((0, *(record.store_timestamp for record in found.log.records)))
    for image in found.disks_of_the_checkpoint():
        says = physic_timestamp(image)
        if says > newest:
            return broken(9, "the checkpoint is newer than the durable log", file=name_of(CHECKPOINT),
                          expected=f"{newest} at most", found=str(says))  # fmt: skip
    return None


def checkpoint_times(image: Image) -> tuple[int, int]:
    """Return the checkpoint's store timestamps up to which queues and index are durable.

    Source: docs/format.md, section 6.
    """
    content = image.files.get(f"{ROOT}/checkpoint", b"").ljust(24, b"\0")
    return int.from_bytes(content[8:16], "big", signed=True), int.from_bytes(content[16:24], "big", signed=True)


@judge(9)
def checkpoint_is_not_ahead_of_queues(found: Evidence) -> Ruling | None:
    """Contract 9: queues and index have all records older than the checkpoint's times.

    This must hold for the disk that the crash left and for the disk that recovery left.
    """
    for image in found.disks_of_the_checkpoint(of_queues=True):
        queues_ms, index_ms = checkpoint_times(image)
        if not queues_ms and not index_ms:
            continue  # a checkpoint without times promises nothing
        missing = missing_before(
            derived_on(image),
            found.derived,
            found.end,
            queues_ms=queues_ms,
            index_ms=index_ms,
            settings=found.settings,
            min_offset=found.begin,
        )
        if missing is not None:
            return broken(9, "the checkpoint is newer than the durable queues and index", file=name_of(CHECKPOINT),
                          expected=f"{queues_ms}, {index_ms}", found=missing)  # fmt: skip
    return None


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
    """Return what queues and index lack of the records older than the checkpoint, or None.

    This is a part of contract 9.

    A record of exactly that time may be newer than the checkpoint. A record before `min_offset` is removed.
    """
    file_bytes = settings.queue_units * UNIT_BYTES
    for queue, memory, count in derived.queues_at(end_offset) if queues_ms else ():
        older = sum(unit.record.store_timestamp < queues_ms for unit in memory.units[:count])
        for name, expected in expected_files(queue, memory, older, file_bytes=file_bytes) if older else ():
            found, base = content.get(name, b""), int(name[-20:])
            if found.startswith(expected):
                continue
            skipped = max(0, removed_places(memory, count, min_offset) - base)
            if places_of(found[skipped : len(expected)]) != places_of(expected[skipped:]):
                return f"a unit in {name}"
    older = sum(put[2] < index_ms for put in derived.entries_at(end_offset)) if index_ms else 0
    if not older:
        return None
    there = [
        (entry.key_hash, entry.offset)
        for name in index_names(content)
        for entry in decoded_index(content[name], slots=settings.index_slots, entries=settings.index_entries).entries
    ]
    there = [place for place in there if place[1] >= min_offset]
    left = [put for put in derived.entries_at(end_offset)[:older] if put[1] >= min_offset]
    for number, put in enumerate(left):
        if number >= len(there) or there[number] != put[:2]:
            return f"index entry {number} of the record at {put[1]}"
    return None


DURABLE_FLOOR, DERIVED_FLOOR, CHECKPOINT = (
    f"{ROOT}/{name}" for name in ("config/durableFloor", "config/derivedFloor", "checkpoint")
)

CHECKPOINT_BYTES, _TIMES_BYTES, _FLOOR_BYTES_MAX = 4096, 24, 1 << 20
_NOTHING_MORE = bytes(CHECKPOINT_BYTES - _TIMES_BYTES)

_Files = Mapping[str, bytes]

floor_in = lru_cache(maxsize=1024)(parse_durable_floor)
"""Return the values of a durable floor; None if the file is not whole."""


@lru_cache(maxsize=1024)
def derived_offset_in(stored: bytes) -> int | None:
    """Return the offset in a derived floor; None if the file is not whole."""
    try:
        offset = parse_derived_floor(stored).get("offset")
    except ValueError:
        return None
    return offset if isinstance(offset, int) else None


@lru_cache(maxsize=1024)
def has_times(stored: bytes) -> bool:
    """Whether a checkpoint has its full size and possible times."""
    return len(stored) == CHECKPOINT_BYTES and not any(stored[at] & 0x80 for at in range(0, _TIMES_BYTES, 8))


def _is_checkpoint(stored: bytes) -> bool:
    """Whether a checkpoint has only zeros after its times."""
    return stored.endswith(_NOTHING_MORE) and has_times(stored)


@judge(13)
def small_files_are_whole(found: Evidence) -> Ruling | None:
    """Contract 13: no crash and no recovery leaves a torn checkpoint or floor.

    Each log has a floor.

    A checkpoint that was never synced may be empty on the disk, and so may the first floor of a log without records.
    The bytes after the times are ignored in a checkpoint that was damaged from outside or written by another store. A
    read-only store writes neither file.
    """
    if not found.is_recovered:
        return None
    for when, files in _disks(found):
        floor = files.get(DURABLE_FLOOR, b"")
        if floor_in(floor) is None and (floor.strip(b"\0") or _has_a_log(files)):
            return _not_whole(DURABLE_FLOOR, f"the durable floor on disk is not whole {when}", floor)
        derived = files.get(DERIVED_FLOOR)
        if derived is not None and not found.was_corrupted and derived_offset_in(derived) is None:
            return _not_whole(DERIVED_FLOOR, f"the derived floor on disk is not whole {when}", derived)
        checkpoint = files.get(CHECKPOINT, b"")
        if checkpoint and not found.was_corrupted and not _is_checkpoint(checkpoint):
            return _not_whole(CHECKPOINT, f"the checkpoint on disk is not whole {when}", checkpoint)
    there = found.files.paths()
    floor = found.files.peek(DURABLE_FLOOR, 0, _FLOOR_BYTES_MAX) if DURABLE_FLOOR in there else b""
    if floor_in(floor) is None:
        return _not_whole(DURABLE_FLOOR, "the recovered store has no whole durable floor", floor)
    live = found.files.peek(CHECKPOINT, 0, CHECKPOINT_BYTES + 1) if CHECKPOINT in there else b""
    if not (has_times(live[:CHECKPOINT_BYTES]) if found.was_corrupted else _is_checkpoint(live)):
        return _not_whole(CHECKPOINT, "the recovered store has no whole checkpoint", live)
    return None


def _not_whole(path: str, sentence: str, stored: bytes) -> Ruling:
    return broken(13, sentence, file=name_of(path), found=_shown(stored))


@judge(7)
def floors_say_what_is_durable(found: Evidence) -> Ruling | None:
    """Contract 7: no floor lies past the log, and recovery sets the durable one to its end.

    Below the durable floor broken bytes are damage. Above it damage and a crash look alike. A read-only store writes no
    floor.
    """
    if not found.is_recovered:
        return None
    end, file_bytes = found.end, found.settings.file_bytes
    for when, files in _disks(found):
        floor, derived = floor_in(files.get(DURABLE_FLOOR, b"")), files.get(DERIVED_FLOOR)
        if floor is not None and (floor.offset > end or floor.file_bytes != file_bytes):
            return broken(7, f"the durable floor lies past the end of the log {when}", file=name_of(DURABLE_FLOOR),
                          expected=f"{end} at most, in files of {file_bytes}", found=_floor_text(floor))  # fmt: skip
        offset = None if derived is None or found.was_corrupted else derived_offset_in(derived)
        if offset is not None and offset > end:
            return broken(7, f"the derived floor lies past the end of the log {when}", file=name_of(DERIVED_FLOOR),
                          expected=f"{end} at most", found=str(offset))  # fmt: skip
    floor = floor_in(found.durable.files.get(DURABLE_FLOOR, b""))
    if floor is None or floor.offset != end:
        return broken(7, "recovery did not set the durable floor to the end of the log", file=name_of(DURABLE_FLOOR),
                      expected=str(end), found="none" if floor is None else _floor_text(floor))  # fmt: skip
    return None


def _disks(found: Evidence) -> Iterator[tuple[str, _Files]]:
    """Yield the files that the recovery left, and those that the crash left.

    The latter are left out if files were corrupted from outside.
    """
    if not found.was_corrupted:
        yield "after a crash", found.files.base.files
    yield "after a recovery", found.durable.files


def _has_a_log(files: _Files) -> bool:
    """Whether a log has a record, which implies that the floor was durable before."""
    return any(path.startswith(LOG_PATHS) and content[:8].strip(b"\0") for path, content in files.items())


def _shown(stored: bytes) -> str:
    return f"{len(stored)} bytes, {stored[:32]!r}"


def _floor_text(floor: Floor) -> str:
    return f"{floor.offset}, in files of {floor.file_bytes}"


SMALL_FILE_JUDGES = (small_files_are_whole, floors_say_what_is_durable)
"""In the order in which they run, after the judges that compare the log with the legal ones."""
