"""Judge the consume queues, their extension, and reads (contract 4, 8, 16 and 17).

The model says what must be there, record by record (properties/judge/ledgers.py). Files are bytes by name below the
store directory and are decoded by the judges' own decoders. Pulls go to the store. The number of records decides which
offsets at the edges of a queue are pulled, so that a campaign tries all of them.

In a store with an extension, a queue unit has an extension address in place of its tags code, or the tags code itself
if the extension could not take it. The unit at the address has the tags code, the store time and the bit map of its
message. The bit map comes from the function that the store was given.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from tornpage.model.dispatch import Queue
from tornpage.model.properties import property_of
from tornpage.model.queues import Unit
from tornpage.model.state import Record
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.decode.consumequeue import EXT_ADDRESS_MAX, UNIT_BYTES
from tornpage.properties.decode.units import PREFILL_UNIT, StoredUnit, decode_ext_unit, decode_units, resolved_tags_code
from tornpage.properties.judge.answers import compare_first_times, compare_pull, compare_time
from tornpage.properties.judge.evidence import DERIVED, EXTENSIONS, QUEUES, STRAY, Evidence, is_base
from tornpage.properties.judge.ledgers import DerivedLedger, QueueMemory
from tornpage.properties.judge.rulings import bounds_text, judge, queue_text, require
from tornpage.properties.program.bit_maps import READ_PROPERTIES, bit_map_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import ROOT

__all__ = [
    "MADE_GOOD",
    "BitMapOf",
    "bit_maps_of",
    "expected_files",
    "extensions_are_right",
    "extensions_hold_the_log",
    "made_good",
    "nothing_is_left_to_dispatch",
    "places_of",
    "queues_are_read_in_order",
    "queues_are_right",
    "queues_have_their_bounds",
    "queues_hold_the_log",
    "removed_places",
    "times_are_found",
]

_UNKNOWN_QUEUE = ("topic without messages", 0)

_TURNS = 3
"""Each crash state reads one in so many queues and keys; the number of records decides which."""

MADE_GOOD = ("queues_made_good", "index_made_good")
"""Coverage points of a recovery that had to add, rewrite or erase units or index entries."""


def made_good(found: Evidence) -> set[str]:
    """Return the `MADE_GOOD` coverage points of a recovery from a power loss."""
    before, made = found.files.base.files, set()
    for name, kind in zip(MADE_GOOD, DERIVED[::2], strict=True):
        prefix = f"{ROOT}/{kind}"
        live = [path for path in found.files.paths() if path.startswith(prefix)]
        if any(found.files.peek(path, 0, 1 << 40) != before.get(path) for path in live):
            made.add(name)
    return made


@judge(4)
def queues_hold_the_log(found: Evidence) -> None:
    """Contract 4: the queue files have exactly the units of the surviving records."""
    queues_are_right(
        found.derived_files(),
        found.derived,
        found.end,
        settings=found.settings,
        min_offset=found.derived_begin,
        was_corrupted=found.was_corrupted,
    )


@judge(4)
def extensions_hold_the_log(found: Evidence) -> None:
    """Contract 4: the extension unit at an address has the values of its message."""
    if found.settings.queue_ext:
        extensions_are_right(
            found.derived_files(),
            found.derived,
            found.end,
            settings=found.settings,
            min_offset=found.derived_begin,
            bit_map_of=bit_maps_of(found.settings) if found.has_bit_maps else None,
        )


@judge(17)
def queues_have_their_bounds(found: Evidence) -> None:
    """Contract 17: queues have the bounds of their surviving records; others are empty.

    A queue whose records are all removed is empty at the number after its last record.
    """
    store = found.store
    expected = {}
    for queue, memory, count in found.derived.queues_at(store.max_offset):
        first = memory.units[0].queue_offset
        expected[queue] = first + min(memory.first_at(store.min_offset), count), first + count
    for queue in dict.fromkeys((*expected, *observed("queues", store.queues))):  # not a set: equal in every process
        lowest = observed("min_offset_in_queue", partial(store.min_offset_in_queue, *queue))
        bounds = (lowest, observed("max_offset_in_queue", partial(store.max_offset_in_queue, *queue)))
        wanted = expected.get(queue, (0, 0))
        if bounds != wanted:
            raise GuaranteeBroken(
                17, f"the bounds of queue {queue_text(queue)} are wrong", bounds_text(wanted), bounds_text(bounds)
            )
    require(nothing_is_left_to_dispatch(found))


@judge(16)
def nothing_is_left_to_dispatch(found: Evidence) -> None:
    """Contract 16: a store that has opened has dispatched its whole log."""
    past_end = found.store.dispatch_behind_bytes
    if past_end:
        raise GuaranteeBroken(16, "the store opened with part of its log not dispatched", "0", str(past_end))


@judge(17)
def queues_are_read_in_order(found: Evidence) -> None:
    """Contract 17: reading a queue returns every surviving message once, in order.

    At the edges of the queue the status is right.

    The number of records decides which queues and which edges are read.
    """
    turn, end_offset = found.key[0], found.store.max_offset
    queues = list(found.derived.queues_at(end_offset))
    for queue, memory, count in queues[turn % _TURNS :: _TURNS]:
        at = memory.first_at(found.store.min_offset)
        while at < count:
            at += _read_on(found, queue, memory.units[at:count])
    asked, offset = _UNKNOWN_QUEUE, turn % 2
    if queues and turn % 5:
        asked, _, count = queues[turn % len(queues)]
        offset = (-1, count, count + 1 + turn, turn % (count + 1))[turn % 4]
    compare_pull(
        found.store,
        found.log,
        found.layout,
        asked,
        offset,
        stored=found.ledger.stored,
        max_msg_nums=(1, 32, 3)[turn % 3],
    )


@judge(8)
def times_are_found(found: Evidence) -> None:
    """Contract 8: the queue offset of a time, and the first store times, are right.

    The time is near that of some message.
    """
    turn, log = found.key[0], found.log
    queues = list(found.derived.queues_at(found.store.max_offset))
    if queues:
        queue, memory, count = queues[turn % len(queues)]
        at_ms = memory.units[turn // _TURNS % count].record.store_timestamp
        compare_time(found.store, log, found.layout, queue, at_ms + turn % _TURNS - 1)
        compare_first_times(found.store, log, found.layout, queue)


def _read_on(found: Evidence, queue: Queue, units: Sequence[Unit]) -> int:
    """Pull from a queue in which these units follow.

    Returns how many of them the pull returned, at least one.
    """
    first = units[0].queue_offset
    with observed("get_message", lambda: found.store.get_message(*queue, first)) as pulled:
        brought = len(pulled.messages)
        if not 0 < brought <= len(units) or pulled.next_begin_offset != first + brought:
            expected = f"messages {first} to {units[-1].queue_offset}"
            answer = f"{brought} of them, {pulled.status.value}, next {pulled.next_begin_offset}"
            raise GuaranteeBroken(
                17, f"a pull from queue {queue_text(queue)} skips or repeats messages", expected, answer
            )
        for message, unit in zip(pulled.messages, units, strict=False):
            if message.queue_offset != unit.queue_offset or bytes(message) != found.ledger.stored(unit.record):
                raise GuaranteeBroken(
                    17, f"message {unit.queue_offset} of queue {queue_text(queue)} is not the one put there"
                )
    return brought


def queues_are_right(
    content: Mapping[str, bytes],
    derived: DerivedLedger,
    end_offset: int,
    *,
    settings: Settings,
    min_offset: int = 0,
    was_corrupted: bool = False,
) -> None:
    """Check that queue files hold the units of the surviving records (contract 4).

    There must be no other file, and before the first unit there may only be filler, which points to no record. Units of
    records before `min_offset` may still be there or be replaced by filler; a file with only such units may be removed.
    The file with the last unit of a queue stays, because its name keeps the queue's numbers. If the files were
    corrupted from outside, units of records before `min_offset` may have any values: no reader uses them.
    """
    file_bytes = settings.queue_units * UNIT_BYTES
    left = {name: data for name, data in content.items() if name.startswith(QUEUES) and not name.endswith(STRAY)}
    for queue, memory, count in derived.queues_at(end_offset):
        gone = removed_places(memory, count, min_offset)
        is_needed = not gone
        for name, expected in expected_files(queue, memory, count, file_bytes=file_bytes):
            found, wanted = left.pop(name, None), expected.ljust(file_bytes, b"\0")
            is_needed |= int(name[-20:]) + len(expected) > gone or len(expected) < file_bytes
            if found is None:
                if is_needed:
                    raise GuaranteeBroken(4, f"the queue file {name} is not there")
                continue
            is_needed = True  # the files after it, so that there is no gap
            end = max(0, min(gone - int(name[-20:]), len(wanted)))
            wanted = _removed(found[:end], wanted[:end], min_offset, settings.queue_ext, was_corrupted) + wanted[end:]
            if found != wanted:
                _compare_units(name, found, wanted, content if settings.queue_ext else {})
        if gone and not is_needed:
            raise GuaranteeBroken(4, f"queue {queue_text(queue)} has no file left, so its numbers would restart at 0")
    for name, found in left.items():
        if not is_base(name[-20:]) or len(found) != file_bytes:
            raise GuaranteeBroken(4, f"{name} does not belong among the queues", "no such file", f"{len(found)} bytes")
        if found.strip(b"\0"):
            raise GuaranteeBroken(4, f"{name} holds units of no surviving record", "zeros", _first_unit(found))


def removed_places(memory: QueueMemory, count: int, min_offset: int) -> int:
    """Return the position after the last unit of a record before the log, or 0."""
    first = min(memory.first_at(min_offset), count)
    return (memory.units[0].queue_offset + first) * UNIT_BYTES if first else 0


def _removed(found: bytes, wanted: bytes, min_offset: int, has_ext: bool, was_corrupted: bool) -> bytes:
    """Return the required bytes for units of removed records: those found, if allowed.

    Filler is allowed. The extension unit of such a unit may be removed too, and its address then leads nowhere.
    """
    pieces = []
    for position in range(0, len(wanted), UNIT_BYTES):
        stored = found[position : position + UNIT_BYTES]
        unit = wanted[position : position + UNIT_BYTES]
        may_stand = stored == PREFILL_UNIT or (has_ext and stored[:12] == unit[:12])
        may_stand |= was_corrupted and _points_before(min_offset, stored)
        pieces.append(stored if may_stand else unit)
    return b"".join(pieces)


def _points_before(offset: int, stored: bytes) -> bool:
    """Return whether a unit points to a record before an offset.

    Its size may be that of filler.
    """
    units = decode_units(stored)
    return bool(units) and 0 <= units[0][0] < offset and units[0][1] > 0


def expected_files(queue: Queue, memory: QueueMemory, count: int, *, file_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each file that a queue needs.

    The queue has its first `count` units, and the content is that before the zeros.
    """
    start = memory.units[0].queue_offset * UNIT_BYTES
    base = start // file_bytes * file_bytes
    stored = PREFILL_UNIT * ((start - base) // UNIT_BYTES) + memory.stored[: count * UNIT_BYTES]
    for position in range(0, len(stored), file_bytes):
        piece = bytes(stored[position : position + file_bytes])
        yield f"{QUEUES}{queue[0]}/{queue[1]}/{base + position:020d}", piece


def _compare_units(name: str, found: bytes, expected: bytes, content: Mapping[str, bytes]) -> None:
    """Compare unit by unit; a tags code may be in the extension, whose files are in `content`."""
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
            raise GuaranteeBroken(4, f"unit {number} of {name} is wrong", _shown_unit(wanted), _shown_unit(stored))


def places_of(units: bytes) -> list[tuple[int, int]]:
    """Return the offset and size in each unit; the tags codes may be in the extension."""
    return [unit[:2] for unit in decode_units(units)]


def _shown_unit(unit: StoredUnit) -> str:
    return f"offset {unit[0]}, size {unit[1]}, tags code {unit[2]}"


def _first_unit(found: bytes) -> str:
    return next(_shown_unit(unit) for unit in decode_units(found) if any(unit))


BitMapOf = Callable[[Record], bytes]
"""Returns the bit map that the extension has to hold for a record."""


def bit_maps_of(settings: Settings) -> BitMapOf:
    """Return the bit maps of a store with these settings; they are empty without filters."""
    return partial(_bit_map_by_filters, settings.drops_joined) if settings.bit_maps else _no_bit_map


def _bit_map_by_filters(drops_joined: bool, record: Record) -> bytes:
    properties = record.message.properties
    values = ((name, property_of(properties, name, drops_joined=drops_joined)) for name in READ_PROPERTIES)
    said = {name: value for name, value in values if value is not None}
    return bit_map_of(record.message.topic.encode(errors="surrogateescape"), said)


def _no_bit_map(record: Record) -> bytes:
    return b""


def extensions_are_right(
    content: Mapping[str, bytes],
    derived: DerivedLedger,
    end_offset: int,
    *,
    settings: Settings,
    min_offset: int = 0,
    bit_map_of: BitMapOf | None,
) -> None:
    """Check that each extension address leads to the values of its message (contract 4).

    Each unit lies past the previous one.

    The extension may lack units of messages before `min_offset`. Without `bit_map_of` the bit maps are not compared.
    """
    by_directory: dict[str, dict[int, bytes]] = {}
    for name, data in content.items():
        if name.startswith(EXTENSIONS) and not name.endswith(STRAY):
            directory, slash, base = name.rpartition("/")
            if not is_base(base):
                raise GuaranteeBroken(4, f"{name} does not belong among the extensions")
            by_directory.setdefault(directory + slash, {})[int(base)] = data
    if not by_directory:  # no address leads anywhere; the judge of the tags codes reports that
        return
    for queue, memory, count in derived.queues_at(end_offset):
        extension = by_directory.get(f"{EXTENSIONS}{queue[0]}/{queue[1]}/")
        if extension is not None:
            units = memory.units[min(memory.first_at(min_offset), count) : count]
            codes = _third_fields(content, queue, units, file_bytes=settings.queue_units * UNIT_BYTES)
            _compare_extension(queue, units, codes, extension, bit_map_of)


def _third_fields(content: Mapping[str, bytes], queue: Queue, units: Sequence[Unit], *, file_bytes: int) -> list[int]:
    """Return the tags code or address in each of these queue units; 0 for a missing unit."""
    fields, base, data = [], -1, b""
    for unit in units:
        position = unit.queue_offset * UNIT_BYTES
        if position // file_bytes * file_bytes != base:
            base = position // file_bytes * file_bytes
            data = content.get(f"{QUEUES}{queue[0]}/{queue[1]}/{base:020d}", b"")
        at = position - base
        fields.append(int.from_bytes(data[at + 12 : at + UNIT_BYTES], "big", signed=True))
    return fields


def _compare_extension(
    queue: Queue,
    units: Sequence[Unit],
    codes: Sequence[int],
    extension: Mapping[int, bytes],
    bit_map_of: BitMapOf | None,
) -> None:
    before: int | None = None
    for unit, address in zip(units, codes, strict=True):
        if address > EXT_ADDRESS_MAX:
            continue
        which = f"the extension unit of message {unit.queue_offset} of queue {queue_text(queue)}"
        if before is not None and address <= before:
            raise GuaranteeBroken(4, f"{which} is not past the one before", f"past {before}", str(address))
        before = address
        stored, record = decode_ext_unit(extension, address), unit.record
        if stored is None:
            raise GuaranteeBroken(4, f"{which} is not there", f"a unit at {address}")
        said, wanted = (stored.tags_code, stored.store_timestamp), (unit.tags_code, record.store_timestamp)
        if said != wanted:
            raise GuaranteeBroken(
                4, f"{which} has another tags code or store time", _values_text(*wanted), _values_text(*said)
            )
        if bit_map_of is not None and stored.bit_map != (bit_map := bit_map_of(record)):
            raise GuaranteeBroken(4, f"{which} has another bit map", bit_map.hex(), stored.bit_map.hex())


def _values_text(tags_code: int, store_timestamp: int) -> str:
    return f"tags code {tags_code}, store time {store_timestamp}"
