"""Change the queues and numbers that records of a copy claim, and judge the copy.

No checksum covers these fields in a store without trailers. Which numbers the copy has to serve is specified in
`model.damage.numbering`, from the claims of its records and the units in its queue files. The copy is judged twice: as
it is, and when it is opened again after puts to all of its queues.
"""

import re
import struct
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, takewhile

from tornpage.impl.store import MessageStore
from tornpage.model import corruption, salvage
from tornpage.model.damage.numbering import Entry, Evidence, Numbering, numberings
from tornpage.model.dispatch import Queue, places
from tornpage.model.operations import HarmNumbers, WrongClaim
from tornpage.model.state import Layout, Record
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.decode.consumequeue import UNIT_BYTES
from tornpage.properties.decode.units import PREFILL_UNIT, decode_units
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.closing import close
from tornpage.properties.lockstep.copies.harmed_copies import FLOORS, place_of, pull_queue, put_to_queue
from tornpage.properties.lockstep.pair import Pair
from tornpage.properties.lockstep.recovery import Recovery
from tornpage.properties.program.log_places import ROOT, log_files

__all__ = ["harm_numbers"]

_QUEUES = f"{ROOT}/consumequeue/"
_QUEUE_FILE = re.compile(re.escape(_QUEUES) + "([^/]+)/(-?[0-9]+)/([0-9]{20})")
_EXTENSIONS = f"{ROOT}/consumequeue_ext/"
_CLAIM = struct.Struct(">i")
_NUMBER = struct.Struct(">q")
_QUEUE_ID_AT, _NUMBER_AT = 12, 20
_FIXED_BYTES = 88
"""The least bytes of a record before its body."""
_IDS, _NUMBERS = 1 << 32, 1 << 64
_NOWHERE = ("repeated_queue_offset", "impossible_queue_offset")
_PREFILL = decode_units(PREFILL_UNIT)[0]


def harm_numbers(pair: Pair, recovery: Recovery, harm: HarmNumbers) -> None:
    """Close the store, open a copy with wrong claims, judge it, and open the store again."""
    if not corruption.applies(pair.model, harm):
        return
    pair.files.mend()
    close(pair)
    is_whole = pair.log.flushed_offset == pair.log.end_offset and pair.store.read_only_reason is None
    if is_whole and not pair.settings.trailer and pair.layout.role != "SLAVE":
        records = _changed(pair, harm.changes)
        image = pair.durable(pair.files)
        if records != list(pair.log.retained):
            _judge(pair, _harmed(pair, image, records, harm), records)
            pair.cover("harmed_numbers")
            pair.cover(f"harmed_numbers_{harm.units}")
    recovery.open()


# ---- the copy --------------------------------------------------------------------------------------------------------


def _changed(pair: Pair, changes: Iterable[WrongClaim]) -> list[Record]:
    """Return the records with their wrong claims."""
    records = list(pair.log.retained)
    for change in changes:
        queued = [at for at, record in enumerate(records) if places(record, pair.layout)]
        if queued:
            at = queued[change.record % len(queued)]
            other = records[queued[change.value % len(queued)]]
            _change(records, at, change, other)
    return records


def _change(records: list[Record], at: int, change: WrongClaim, other: Record) -> None:
    record = records[at]
    mine = record.message.topic, record.message.queue_id
    match change.change:
        case "number":
            records[at] = _claiming(record, change.value)
        case "shift":
            records[at] = _claiming(record, record.queue_offset + change.value)
        case "queue_id":
            records[at] = replace(record, message=replace(record.message, queue_id=_signed(change.value, _IDS)))
        case "topic" if record.message.topic.isascii():
            topic = chr(ord("A") + change.value % 26) + record.message.topic[1:]
            records[at] = replace(record, message=replace(record.message, topic=topic))
        case "other":
            theirs = other.message
            is_as_long = len(theirs.topic.encode()) == len(record.message.topic.encode())
            topic = theirs.topic if is_as_long else record.message.topic
            message = replace(record.message, topic=topic, queue_id=theirs.queue_id)
            records[at] = replace(record, message=message, queue_offset=other.queue_offset)
        case "from_here" | "again":
            by = change.value if change.change == "from_here" else -record.queue_offset
            for later in range(at, len(records)):
                each = records[later]
                if (each.message.topic, each.message.queue_id) == mine and each.message.counts_in_its_queue:
                    records[later] = _claiming(each, each.queue_offset + by)


def _claiming(record: Record, number: int) -> Record:
    return replace(record, queue_offset=_signed(number, _NUMBERS))


def _signed(value: int, values: int) -> int:
    return (value + values // 2) % values - values // 2


def _harmed(pair: Pair, image: Image, records: Sequence[Record], harm: HarmNumbers) -> Image:
    """Return the image with the claims of records, and with its queue files changed."""
    files = {path: data for path, data in image.files.items() if path not in FLOORS}
    for before, record in zip(pair.log.retained, records, strict=True):
        if before == record:
            continue
        path, start = place_of(pair, image, record)
        content = bytearray(files[path])
        _CLAIM.pack_into(content, start + _QUEUE_ID_AT, record.message.queue_id)
        _NUMBER.pack_into(content, start + _NUMBER_AT, record.queue_offset)
        old, new = before.message.topic.encode(), record.message.topic.encode()
        body_bytes = len(before.message.body or b"")
        at = content.find(bytes([len(old)]) + old, start + _FIXED_BYTES + body_bytes, start + record.size_bytes) + 1
        assert at, "a record has its topic"
        content[at : at + len(new)] = new
        files[path] = bytes(content)
    if harm.units == "lost":
        files = {path: data for path, data in files.items() if not path.startswith((_QUEUES, _EXTENSIONS))}
    elif harm.units != "whole":
        newest = {path.rpartition("/")[0]: path for path in sorted(files) if _QUEUE_FILE.fullmatch(path)}
        for path in newest.values():
            files[path] = _with_units(files[path], harm)
    return Image(image.directories, files)


def _with_units(data: bytes, harm: HarmNumbers) -> bytes:
    """Return a queue file with its units cut, shifted or exchanged."""
    units = [data[at : at + UNIT_BYTES] for at in range(0, len(data), UNIT_BYTES)]
    count = sum(map(any, units))
    if harm.units == "short":
        kept = max(0, count - 1 - harm.amount % 3)
        units[kept:] = [bytes(UNIT_BYTES)] * (len(units) - kept)
    elif harm.units == "shifted":
        units = [PREFILL_UNIT, *units[:-1]]
    elif count > 1:
        at = harm.amount % (count - 1)
        units[at], units[at + 1] = units[at + 1], units[at]
    return b"".join(units)


# ---- what it owes ----------------------------------------------------------------------------------------------------


def _judge(pair: Pair, image: Image, records: Sequence[Record]) -> None:
    deleted = dict(pair.log.deleted)
    claimed = [entry for record in records for entry in _entries(record, pair.layout)]
    entries = [entry for entry in claimed if entry.offset >= deleted.get(entry.queue[0], 0)]
    files = pair.new_disk(image)
    store = pair.open_on(files, whole_log=True, verifies=True)
    claims = {(record.offset, *place) for record in records for place in places(record, pair.layout)}
    found = _compare(pair, image, entries, claims, store)
    for queue in sorted(found.pulled):
        put_to_queue(store, queue, found)
        if queue not in found.puts:
            continue
        number, is_reached = found.puts[queue]
        end = max(found.pulled[queue], default=-1)
        if not is_reached or number <= end:
            sentence = f"a put to {queue} is answered with a number that no consumer reaches"
            raise GuaranteeBroken(18, sentence, f"more than {end}", str(number))
    if found.stuck:
        raise GuaranteeBroken(7, f"a pull of {found.stuck[0]} does not move on")
    store.close()
    image = pair.durable(files)
    again = pair.open_on(pair.last_disk(image), whole_log=True, verifies=True)
    more = _put_after(pair.log.retained[-1], again)
    if len(more) < len(found.puts):
        raise GuaranteeBroken(2, "a put to a copy is not served after the next open", str(len(found.puts)), str(more))
    claims |= {(entry.offset, entry.queue, entry.number) for entry in more}
    _compare(pair, image, [*entries, *more], claims, again)
    again.close()


def _put_after(last: Record, store: MessageStore) -> list[Entry]:
    """Return the claims of the records that were put after a record."""
    return [
        Entry(message.offset, message.size_bytes, (message.topic, message.queue_id), message.queue_offset)
        for message in store.messages()
        if message.offset > last.offset
    ]


def _entries(record: Record, layout: Layout) -> list[Entry]:
    """Return the claims of a record: in its own queue, and in each other queue that it names."""
    there = places(record, layout)
    if not there:
        return []
    (own, number), *others = there
    named = dict(others)
    entries = [Entry(record.offset, record.size_bytes, own, number, is_named=own in named)]
    named.pop(own, None)
    return entries + [Entry(record.offset, record.size_bytes, *place, is_named=True) for place in named.items()]


def _compare(
    pair: Pair,
    image: Image,
    entries: Sequence[Entry],
    claims: Container[tuple[int, Queue, int]],
    store: MessageStore,
) -> salvage.Opened:
    """Compare what the store serves, and what its findings name, with the legal results."""
    if store.read_only_reason is not None:
        raise GuaranteeBroken(7, "wrong claims are taken for damage of the log", "read-write", store.read_only_reason)
    bases = [int(path.rpartition("/")[2]) for path in log_files(image.files)]
    units = _units_in(image, pair.settings.queue_units)
    legal = numberings(Evidence(entries, units, pair.settings.queue_units, min(bases)))
    found = salvage.Opened(is_writable=True, log_end=store.max_offset)
    for queue in sorted({entry.queue for entry in entries} | set(units) | set(observed("queues", store.queues))):
        pull_queue(store, queue, found)
    expected = [_served(numbering, claims) for numbering in legal]
    pulled = {(queue, number): offset for queue, some in found.pulled.items() for number, (offset, _) in some.items()}
    if not legal:
        return found
    pair.cover("judged_numbers")
    kept = _kept(legal[0], units, claims)
    pulled = {place: offset for place, offset in pulled.items() if kept.get(place) != offset}
    minima = {
        queue: observed("min_offset_in_queue", partial(store.min_offset_in_queue, *queue)) for queue in found.pulled
    }
    told = {(finding.code, finding.offset) for finding in store.findings}
    if not any(
        each == pulled and _is_told(numbering, told) and _has_minima(numbering, minima)
        for each, numbering in zip(expected, legal, strict=True)
    ):
        is_served = pulled in expected
        sentence = (
            "findings or minima of queues are other ones than the claims of the records call for"
            if is_served
            else _difference(expected[0], pulled)
        )
        raise GuaranteeBroken(18 if is_served else 17, sentence, str(legal[0]), f"{sorted(told)}, {minima}")
    return found


def _served(numbering: Numbering, claims: Container[tuple[int, Queue, int]]) -> dict[tuple[Queue, int], int]:
    """Return the physical offset of the record that readers get at each place.

    A reader passes a record that does not claim the place, neither for its own queue nor by its properties.
    """
    return {
        (queue, number): entry.offset
        for queue, some in numbering.queues.items()
        for number, entry in some.items()
        if (entry.offset, queue, number) in claims
    }


def _kept(
    numbering: Numbering,
    units: Mapping[Queue, Mapping[int, tuple[int, int] | None]],
    claims: Container[tuple[int, Queue, int]],
) -> dict[tuple[Queue, int], int]:
    """Return what readers may also get: stored units before the first number of a queue stay.

    Their records claim another number for their own queue and this one in their properties.
    """
    return {
        (queue, number): unit[0]
        for queue, some in units.items()
        for number, unit in some.items()
        if unit is not None
        and number < min(numbering.queues.get(queue, {}), default=0)
        and (unit[0], queue, number) in claims
    }


def _is_told(numbering: Numbering, told: set[tuple[str, int]]) -> bool:
    moved = {offset for code, offset in told if code == "queue_offset_outvoted"}
    nowhere = {offset for code, offset in told if code in _NOWHERE}
    gaps = {offset for code, offset in told if code == "queue_gap"}
    return (
        moved == {entry.offset for entry in numbering.moved}
        and nowhere >= {entry.offset for entry in numbering.left_out}
        and gaps >= set(_after_gaps(numbering))
    )


def _after_gaps(numbering: Numbering) -> Iterator[int]:
    """Yield the physical offset of each record before whose number a queue has a gap."""
    for there in numbering.queues.values():
        for before, after in pairwise(sorted(there)):
            if after > before + 1:
                yield there[after].offset


def _has_minima(numbering: Numbering, minima: Mapping[Queue, int]) -> bool:
    return all(minima.get(queue) == first for queue, first in numbering.first.items())


def _difference(expected: dict[tuple[Queue, int], int], pulled: dict[tuple[Queue, int], int]) -> str:
    place = min(key for key in {*expected, *pulled} if expected.get(key) != pulled.get(key))
    have = [f"the record at {some[place]}" if place in some else "nothing" for some in (expected, pulled)]
    return f"number {place[1]} of {place[0]} holds {have[1]} and not {have[0]}"


def _units_in(image: Image, file_units: int) -> dict[Queue, dict[int, tuple[int, int] | None]]:
    """Return the units of the newest queue files without a gap, by queue and number."""
    by_queue: dict[Queue, dict[int, bytes]] = {}
    for path in image.files:
        if (found := _QUEUE_FILE.fullmatch(path)) is not None:
            by_queue.setdefault((found[1], int(found[2])), {})[int(found[3]) // UNIT_BYTES] = image.files[path]
    units: dict[Queue, dict[int, tuple[int, int] | None]] = {}
    for queue, files in by_queue.items():
        first = max(base for base in files if base - file_units not in files)
        stored = [unit for base in sorted(files) if base >= first for unit in decode_units(files[base])]
        possible = takewhile(lambda unit: unit[0] >= 0 and unit[1] > 0, stored)
        units[queue] = {first + index: None if unit == _PREFILL else unit[:2] for index, unit in enumerate(possible)}
    return units
