"""Judge what a foreign store holds after a crash.

1. The store is asked for every message ever put, by queue and number and by offset, as far as it promises these.
2. The messages found must be one of the states that the reference allows after the crash, a prefix of what was put.
3. Then the store is asked for every key.

A state is found by comparison and never copied from the store: a message that is there must be the right one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tornpage.model.index import keys_of
from tornpage.model.state import Record
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.foreign.reference_store import ReferenceState, ReferenceStore
from tornpage.properties.foreign.shapes.shape import shown
from tornpage.properties.judge.rulings import Ruling, holds, judge, require, ruling_of

if TYPE_CHECKING:
    from tornpage.properties.foreign.session import StoreSession

__all__ = ["Expectation", "Survived", "found_by_key", "judge_survivors", "keys_in"]

Queue = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Expectation:
    """Hold what was put before a crash, without messages that earlier crashes cut.

    `floor` is the number of `records` that must survive. `offsets` are those that the store returned, as far as it
    answered. `cut` are offsets of messages that are gone for good. `promised_by` names the answer that promised the
    survival of a record, by the number of the record.
    """

    records: tuple[Record, ...]
    floor: int
    offsets: Mapping[int, int]
    cut: frozenset[int]
    queues: frozenset[Queue]
    promised_by: Callable[[int], str] = lambda number: ""


@dataclass(frozen=True, slots=True)
class Survived:
    """Hold the ruling on the state after a crash, and the number of messages in it."""

    ruling: Ruling
    count: int = 0


def judge_survivors(
    store: "StoreSession", known: Expectation, legal: Mapping[int, ReferenceState], reference: ReferenceStore
) -> Survived:
    """Judge the state of a store after a crash (contract 1 to 5).

    `reference` continues with that state.
    """
    try:
        count = _count_in_queues(store, known) if store.promises.queues else _count_by_offset(store, known)
        _require_legal(count, known, legal)
        reference.go_on_with(legal[count])
        if store.promises.offsets:
            _agrees_by_offset(store, known, count)
        if store.promises.index:
            keys = keys_in(known.records)
            store.ahead("find", ({"topic": topic, "key": key} for topic, key in keys))
            for topic, key in keys:
                require(found_by_key(store, reference, topic, key))
    except GuaranteeBroken as broken:
        return Survived(ruling_of(broken))
    return Survived(holds(2, ""), count)


def _require_legal(count: int, known: Expectation, legal: Mapping[int, ReferenceState]) -> None:
    if count < known.floor:
        lost = known.records[count]
        promised_by = known.promised_by(count)
        raise GuaranteeBroken(
            2,
            "a message that was promised to survive is lost",
            _said(known.records[: known.floor]) + (f"; promised by {promised_by}" if promised_by else ""),
            _said(known.records[:count]) + f"; the first lost message is {_name(lost)}",
        )
    if count not in legal:
        raise GuaranteeBroken(
            2, "this number of messages cannot survive", " or ".join(map(str, sorted(legal))), str(count)
        )


def keys_in(records: Iterable[Record]) -> list[tuple[str, str]]:
    """Return topic and key of each key of the records, each pair once, in order."""
    return list(dict.fromkeys((record.message.topic, key) for record in records for key in keys_of(record)))


@judge(5)
def found_by_key(store: "StoreSession", reference: ReferenceStore, topic: str, key: str) -> None:
    """Check that a query by key finds every message with the key and no other (contract 5)."""
    expected, found = reference.find(topic, key), store.find(topic, key)
    if found != expected:
        sentence = "a query by key returns other messages than those put with the key"
        raise GuaranteeBroken(5, sentence, _bodies(expected), _bodies(found))


def _count_in_queues(store: "StoreSession", known: Expectation) -> int:
    """Return how many messages are in the queues.

    They must be the first ones (contract 1 and 4).
    """
    put: dict[Queue, list[Record]] = {queue: [] for queue in sorted(known.queues)}
    for record in known.records:
        put[record.message.topic, record.message.queue_id].append(record)
    there: set[int] = set()
    store.ahead(
        "read",
        (
            {"topic": topic, "queue": queue, "number": number}
            for (topic, queue), records in put.items()
            for number in range(len(records) + 1)
        ),
    )
    for (topic, queue), records in put.items():
        # reads one number too many so that an extra message is noticed
        found = [store.read(topic, queue, number) for number in range(len(records) + 1)]
        held = [body for body in found if body is not None]
        if None in found[: len(held)]:
            gap = found.index(None)
            raise GuaranteeBroken(4, f"queue {topic} {queue} has a gap", f"message {gap}", _bodies_or_none(found))
        expected = [record.message.body or b"" for record in records]
        if held != expected[: len(held)]:
            sentence = f"queue {topic} {queue} holds other messages than were put there"
            raise GuaranteeBroken(1 if len(held) <= len(expected) else 4, sentence, _bodies(expected), _bodies(held))
        there.update(record.offset for record in records[: len(held)])
    return _first_ones(known.records, [record.offset in there for record in known.records])


def _count_by_offset(store: "StoreSession", known: Expectation) -> int:
    """Return how many messages are found by offset. They must be the first ones (contract 1)."""
    asked = [record for record in known.records if record.offset in known.offsets]
    store.ahead("get", ({"offset": known.offsets[record.offset]} for record in asked))
    return _first_ones(asked, [_is_there(store, record, known.offsets[record.offset]) for record in asked])


def _first_ones(records: Sequence[Record], is_there: Sequence[bool]) -> int:
    count = sum(is_there)
    if not all(is_there[:count]):
        hole = is_there.index(False)
        last = len(is_there) - 1 - is_there[::-1].index(True)
        sentence = "a message survives although an earlier one is lost"
        raise GuaranteeBroken(1, sentence, _name(records[hole]), _name(records[last]))
    return count


def _agrees_by_offset(store: "StoreSession", known: Expectation, count: int) -> None:
    """Check that offsets lead only to messages that survived (contract 1 and 3)."""
    survived = {known.offsets[record.offset] for record in known.records[:count] if record.offset in known.offsets}
    asked = [offset for record in known.records if (offset := known.offsets.get(record.offset)) is not None]
    store.ahead("get", ({"offset": offset} for offset in asked))
    for number, record in enumerate(known.records):
        offset = known.offsets.get(record.offset)
        if offset is None:
            continue
        if number < count and not _is_there(store, record, offset):
            raise GuaranteeBroken(
                1, "a message is in its queue, but a read at its offset finds nothing", _name(record), "nothing"
            )
        if number >= count and offset not in survived and store.get(offset) is not None:
            raise GuaranteeBroken(
                4, "a message is not in its queue, but a read at its offset finds one", "nothing", str(offset)
            )
    for offset in sorted(known.cut - survived - set(known.offsets.values())):
        if store.get(offset) is not None:
            raise GuaranteeBroken(3, "a message comes back that an earlier recovery had cut", "nothing", str(offset))


def _is_there(store: "StoreSession", record: Record, offset: int) -> bool:
    found, expected = store.get(offset), record.message.body or b""
    if found is not None and found != expected:
        raise GuaranteeBroken(
            1, "a read at an offset returns another message than was put there", shown(expected), shown(found)
        )
    return found is not None


def _name(record: Record) -> str:
    message = record.message
    return f"number {record.queue_offset} of queue {message.topic} {message.queue_id}"


def _said(records: Sequence[Record]) -> str:
    last = f", the last one {_name(records[-1])}" if records else ""
    return f"{len(records)} message{'s' * (len(records) != 1)}{last}"


def _bodies(bodies: Sequence[bytes]) -> str:
    return ", ".join(map(shown, bodies)) or "nothing"


def _bodies_or_none(bodies: Sequence[bytes | None]) -> str:
    return ", ".join(map(shown, bodies))
