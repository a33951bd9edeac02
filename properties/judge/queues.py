"""Judges of the consume queues and their extension, and of reads through them (contract 4, 8, 16 and 17).

What must be there comes from the model, record by record (properties/judge/ledgers.py). Files are bytes by name below
the store directory, decoded by the judges' own decoders. Pulls are asked of the store; which offsets at the edges of a
queue are tried depends on the number of records, so that a campaign tries all of them.

A queue unit of a store with an extension has an address there in place of its tags code, or the tags code itself where
the extension could not take it. The unit at the address has the tags code, the store time and the bit map of its
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
from tornpage.properties.judge.rulings import judge, require
from tornpage.properties.program.bit_maps import LOOKED_AT, bit_map_of
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
"""Each state reads so many-th of the queues and of the keys: the next record brings the next ones."""

MADE_GOOD = ("queues_made_good", "index_made_good")
"""What a recovery may have to do: units or entries were missing, torn or too many."""


def made_good(found: Evidence) -> set[str]:
    """Return what the recovery from a power loss had to change: of `MADE_GOOD`, as an activation table counts it."""
    before, made = found.files.base.files, set()
    for name, kind in zip(MADE_GOOD, DERIVED[::2], strict=True):
        prefix = f"{ROOT}/{kind}"
        live = [path for path in found.files.paths() if path.startswith(prefix)]
        if any(found.files.peek(path, 0, 1 << 40) != before.get(path) for path in live):
            made.add(name)
    return made


@judge(4)
def queues_hold_the_log(found: Evidence) -> None:
    """Contract 4: the queue files hold exactly the units of the surviving records, in order, without a gap."""
    queues_are_right(
        found.derived_files(),
        found.derived,
        found.end,
        settings=found.settings,
        min_offset=found.derived_begin,
        was_harmed=found.was_harmed,
    )


@judge(4)
def extensions_hold_the_log(found: Evidence) -> None:
    """Contract 4: what the extension of a queue has at an address is what the message there says."""
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
    """Contract 17: the store knows each queue of a surviving record, from its first to its last; others are empty.

    A queue whose records are all gone is empty too, at the number behind them.
    """
    store = found.store
    expected = {}
    for queue, memory, count in found.derived.queues_at(store.max_offset):
        first = memory.units[0].queue_offset
        expected[queue] = first + min(memory.first_at(store.min_offset), count), first + count
    for queue in dict.fromkeys((*expected, *observed("queues", store.queues))):  # not a set: equal in every process
        lowest = observed("min_offset_in_queue", partial(store.min_offset_in_queue, *queue))
        bounds = (lowest, observed("max_offset_in_queue", partial(store.max_offset_in_queue, *queue)))
        if bounds != expected.get(queue, (0, 0)):
            raise GuaranteeBroken(
                17, f"the bounds of queue {queue} are wrong", str(expected.get(queue, (0, 0))), str(bounds)
            )
    require(nothing_is_left_to_dispatch(found))


@judge(16)
def nothing_is_left_to_dispatch(found: Evidence) -> None:
    """Contract 16: a store that has opened has dispatched its log."""
    behind = found.store.dispatch_behind_bytes
    if behind:
        raise GuaranteeBroken(16, "something was left to dispatch when the store had opened", "0", str(behind))


@judge(17)
def queues_are_read_in_order(found: Evidence) -> None:
    """Contract 17: who reads a queue gets every surviving message once, in order; at its edges he is told so.

    Which of the queues are read depends on how many records there are, as do the edges.
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
    """Contract 8: the offset of a time beside that of some message, and the first times, are right."""
    turn, log = found.key[0], found.log
    queues = list(found.derived.queues_at(found.store.max_offset))
    if queues:
        queue, memory, count = queues[turn % len(queues)]
        at_ms = memory.units[turn // _TURNS % count].record.store_timestamp
        compare_time(found.store, log, found.layout, queue, at_ms + turn % _TURNS - 1)
        compare_first_times(found.store, log, found.layout, queue)


def _read_on(found: Evidence, queue: Queue, units: Sequence[Unit]) -> int:
    """Pull from a queue where these units follow; return how many of them that brought, one at least."""
    first = units[0].queue_offset
    with observed("get_message", lambda: found.store.get_message(*queue, first)) as pulled:
        brought = len(pulled.messages)
        if not 0 < brought <= len(units) or pulled.next_begin_offset != first + brought:
            expected = f"messages {first} to {units[-1].queue_offset}"
            answer = f"{brought} of them, {pulled.status.value}, next {pulled.next_begin_offset}"
            raise GuaranteeBroken(17, f"a reader of queue {queue} is led astray", expected, answer)
        for message, unit in zip(pulled.messages, units, strict=False):
            if message.queue_offset != unit.queue_offset or bytes(message) != found.ledger.stored(unit.record):
                raise GuaranteeBroken(17, f"message {unit.queue_offset} of queue {queue} is not the one put there")
    return brought


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
        gone = removed_places(memory, count, min_offset)
        is_needed = not gone
        for name, expected in expected_files(queue, memory, count, file_bytes=file_bytes):
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


def removed_places(memory: QueueMemory, count: int, min_offset: int) -> int:
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


def expected_files(queue: Queue, memory: QueueMemory, count: int, *, file_bytes: int) -> Iterator[tuple[str, bytes]]:
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
            raise GuaranteeBroken(4, f"unit {number} of {name} is wrong", _shown_unit(wanted), _shown_unit(stored))


def places_of(units: bytes) -> list[tuple[int, int]]:
    """Return where units point to; their tags codes may lie in the extension."""
    return [unit[:2] for unit in decode_units(units)]


def _shown_unit(unit: StoredUnit) -> str:
    return f"offset {unit[0]}, size {unit[1]}, tags code {unit[2]}"


def _first_unit(found: bytes) -> str:
    return next(_shown_unit(unit) for unit in decode_units(found) if any(unit))


BitMapOf = Callable[[Record], bytes]
"""What the extension has to hold of a record."""


def bit_maps_of(settings: Settings) -> BitMapOf:
    """Return what a store with these settings has to hold of each record; without filters the bit maps are empty."""
    return _told_by_its_filters if settings.bit_maps else _no_bit_map


def _told_by_its_filters(record: Record) -> bytes:
    values = ((name, property_of(record.message.properties, name)) for name in LOOKED_AT)
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
    """Contract 4: each address leads to a unit that says what its message says, behind that of the unit before.

    Of messages in front of `min_offset` the extension may have nothing any more. Without `bit_map_of` nobody can tell
    what the bit maps are, and the rest is compared.
    """
    by_directory: dict[str, dict[int, bytes]] = {}
    for name, data in content.items():
        if name.startswith(EXTENSIONS) and not name.endswith(STRAY):
            directory, slash, base = name.rpartition("/")
            if not is_base(base):
                raise GuaranteeBroken(4, f"{name} does not belong among the extensions")
            by_directory.setdefault(directory + slash, {})[int(base)] = data
    if not by_directory:  # no address leads anywhere, which is for who judges the tags codes
        return
    for queue, memory, count in derived.queues_at(end_offset):
        extension = by_directory.get(f"{EXTENSIONS}{queue[0]}/{queue[1]}/")
        if extension is not None:
            units = memory.units[min(memory.first_at(min_offset), count) : count]
            codes = _third_fields(content, queue, units, file_bytes=settings.queue_units * UNIT_BYTES)
            _compare_extension(queue, units, codes, extension, bit_map_of)


def _third_fields(content: Mapping[str, bytes], queue: Queue, units: Sequence[Unit], *, file_bytes: int) -> list[int]:
    """Return what queue units have where a tags code or an address stands; 0 where there is no unit."""
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
        which = f"the extension unit of message {unit.queue_offset} of queue {queue}"
        if before is not None and address <= before:
            raise GuaranteeBroken(4, f"{which} does not lie behind the one before", f"behind {before}", str(address))
        before = address
        stored, record = decode_ext_unit(extension, address), unit.record
        if stored is None:
            raise GuaranteeBroken(4, f"{which} is not there", f"a unit at {address}")
        said, wanted = (stored.tags_code, stored.store_timestamp), (unit.tags_code, record.store_timestamp)
        if said != wanted:
            raise GuaranteeBroken(4, f"{which} says another tags code or store time", str(wanted), str(said))
        if bit_map_of is not None and stored.bit_map != (bit_map := bit_map_of(record)):
            raise GuaranteeBroken(4, f"{which} has another bit map", bit_map.hex(), stored.bit_map.hex())
