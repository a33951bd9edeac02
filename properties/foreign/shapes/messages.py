"""Define the shape of message stores.

Messages are found by offset, by queue and number, and by key. This is the shape of a store that names none. All
messages are effects of one cell, the log, in the order of their puts.
The history is a state of the model of the project's own store (`ReferenceState`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tornpage.model.operations import Close, Flush, Get, GetMessage, Open, Operation, Put, QueryKey
from tornpage.model.payloads import message_of
from tornpage.model.state import CommitLog
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.foreign.judging import Expectation, found_by_key, judge_survivors, keys_in
from tornpage.properties.foreign.reference_store import SAFE_AFTER, ReferenceState, ReferenceStore
from tornpage.properties.foreign.shapes.language import BadPromise, Fault, Promises
from tornpage.properties.foreign.shapes.shape import Choose, shown
from tornpage.properties.judge.rulings import require

__all__ = ["MessageBook", "MessagePromises", "MessageState", "keys_of_put"]

_SIZES = (0, 8, 8, 40, 300, 900, 5000)
_PROPERTIES = ("", "", "KEYS\x01k1", "KEYS\x01k1 k2")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePromises(Promises):
    """List the promises of a message store.

    `body_bytes_max` is the longest body that it accepts.
    """

    POINTS: ClassVar[tuple[str, ...]] = tuple(SAFE_AFTER[:-1])

    ordered: bool = True
    offsets: bool = True
    queues: bool = True
    index: bool = False
    body_bytes_max: int = 4096

    def check(self) -> None:
        """Check promises against each other. Raises BadPromise."""
        if not (self.offsets or self.queues):
            raise BadPromise("offsets and queues are both false: then nothing can be read back")
        if not self.ordered:
            raise BadPromise("ordered is false: state the shape queue for queues that are independent of each other")
        if self.callers > 1:
            raise BadPromise("callers is more than 1: only other shapes have concurrent callers")

    def said_of_shape(self) -> list[str]:
        """Return what can be read, as a part of a line."""
        return [", ".join(name for name in ("offsets", "queues", "index") if getattr(self, name))]

    def reference(self) -> ReferenceStore:
        """Return the reference of a store with these promises."""
        return ReferenceStore(durable=self.durable, kill=self.kill, body_bytes_max=self.body_bytes_max)


@dataclass(frozen=True, slots=True)
class _Answer:
    """Hold an answer.

    Messages up to the offset `power` survive a power loss, up to `kill` a kill.
    """

    said: str
    power: int
    kill: int


@dataclass(frozen=True, slots=True)
class MessageState:
    """Hold the reference, the offsets that the store gave, the queues, and the answers.

    `cut` are offsets of messages that crashes have taken.
    """

    reference: ReferenceState
    offsets: Mapping[int, int]
    cut: frozenset[int] = frozenset()
    queues: frozenset[tuple[str, int]] = frozenset()
    answers: tuple[_Answer, ...] = ()

    @property
    def log(self) -> CommitLog:
        """Return the log of the reference."""
        return self.reference.log

    def summary(self) -> str:
        """Return the state after an answer in words."""
        records = self.log.records
        power, kill = (
            sum(record.end_offset <= self.reference.floor(fault) for record in records) for fault in ("power", "kill")
        )
        return f"answered: {_messages(len(records))}, {power} promised to survive a power loss, {kill} a kill"


class MessageBook:
    """Follow a run of a message store."""

    midway: ClassVar[tuple[tuple[int, Any], ...]] = ()
    epilogues: ClassVar[tuple[tuple[Operation, ...], ...]] = (
        (),
        (Put(fill=6),),
        (Flush(),),
        (Close(), Open()),
        (Put(fill=6), Close()),
    )
    first_write: ClassVar[Operation] = Put()

    def __init__(self, promises: MessagePromises) -> None:
        self.promises = promises
        self.reference = promises.reference()
        self._rest = MessageState(self.reference.state, {})

    @property
    def state(self) -> MessageState:
        """Return the present state."""
        return replace(self._rest, reference=self.reference.state)

    @property
    def log(self) -> CommitLog:
        """Return the log of the reference."""
        return self.reference.log

    def go_on_with(self, state: MessageState) -> None:
        """Continue from a state."""
        self._rest = state
        self.reference.go_on_with(state.reference)

    # ---- operations --------------------------------------------------------------------------------------------------

    def draw(self, choose: Choose) -> Operation:
        """Draw an operation that the store has promised to support."""
        reads = [name for name in ("offsets", "queues", "index") if getattr(self.promises, name)]
        match choose(("put",) * 6 + tuple(reads)):
            case "offsets":
                return Get(record=choose(range(20)))
            case "queues":
                return GetMessage(queue=choose(range(4)), shift=choose(range(8)))
            case "index":
                return QueryKey(key=choose(range(4)))
        return Put(
            topic=choose(("T", "T", "U")),
            queue_id=choose((0, 0, 1)),
            body_bytes=choose(_SIZES),
            fill=choose(range(6)),
            properties=choose(_PROPERTIES),
        )

    def carry_out(self, operation: Operation, store: Any, number: int) -> bool:
        """Carry out an operation and compare; return whether it was a put."""
        match operation:
            case Put():
                self._put(operation, store)
                self._note_answer(f"the answer of operation {number} (put)")
                return True
            case Get(record):
                self._get(record, store)
            case GetMessage():
                self._read(operation, store)
            case QueryKey(key):
                keys = keys_in(self.log.records)
                if keys and self.promises.index:
                    require(found_by_key(store, self.reference, *keys[key % len(keys)]))
        return False

    def _put(self, put: Put, store: Any) -> None:
        body = (message_of(put).body or b"")[: self.promises.body_bytes_max]
        keys = keys_of_put(put)
        offset, number = store.put(put.topic, put.queue_id, body, keys)
        expected_offset, expected = self.reference.put(put.topic, put.queue_id, body, keys)
        if self.promises.queues and number != expected:
            sentence = "a put returns another number than the next one of its queue"
            raise GuaranteeBroken(4, sentence, str(expected), str(number))
        if self.promises.offsets and offset in self._rest.offsets.values():
            raise GuaranteeBroken(8, "a put returns an offset that another message has", "a new one", str(offset))
        self._rest = replace(
            self._rest,
            offsets={**self._rest.offsets, expected_offset: offset},
            queues=self._rest.queues | {(put.topic, put.queue_id)},
        )

    def _get(self, number: int, store: Any) -> None:
        offsets = self._rest.offsets
        known = [record for record in self.log.records if record.offset in offsets]
        if known and self.promises.offsets:
            record = known[number % len(known)]
            _same(store.get(offsets[record.offset]), self.reference.get(record.offset), "an offset")

    def _read(self, read: GetMessage, store: Any) -> None:
        if self._rest.queues and self.promises.queues:
            topic, queue = sorted(self._rest.queues)[read.queue % len(self._rest.queues)]
            number = max(0, read.shift)
            expected = self.reference.read(topic, queue, number)
            _same(store.read(topic, queue, number), expected, f"a number of queue {topic} {queue}")

    def flushed(self, answer: str) -> None:
        """Note the answer of a flush."""
        self.reference.flush()
        self._note_answer(answer)

    def closed(self, answer: str) -> None:
        """Note the answer of a close."""
        self.reference.close()
        self._note_answer(answer)

    def recovered(self, answer: str) -> None:
        """Note the answer of an open after a crash."""
        if self.promises.recovered:
            log, state = self.log, self.reference.state
            safe = log.changed(flushed_offset=log.end_offset)
            self.reference.go_on_with(ReferenceState(safe, log.end_offset, state.answered_offset))
        self._note_answer(answer)

    def _note_answer(self, said: str) -> None:
        now = self.reference.state
        answer = _Answer(said, now.floor("power"), now.floor("kill"))
        self._rest = replace(self._rest, answers=(*self._rest.answers, answer))

    # ---- crashes -----------------------------------------------------------------------------------------------------

    def judge(self, store: Any, fault: Fault, since: MessageState) -> int:
        """Judge the store after a crash; return the number of lost messages.

        The run continues with what the store has.
        """
        legal = self.reference.survivors(fault, since=since.reference)
        records, rest = self.log.records, self._rest
        known = Expectation(
            records,
            min(legal),
            dict(rest.offsets),
            rest.cut,
            rest.queues,
            lambda number: _promised_by(since.answers, records[number].end_offset, fault),
        )
        survived = judge_survivors(store, known, legal, self.reference)
        require(survived.ruling)
        gone = {record.offset for record in records[survived.count :]}
        self._rest = replace(
            rest,
            answers=since.answers,
            offsets={there: given for there, given in rest.offsets.items() if there not in gone},
            cut=rest.cut | {given for there, given in rest.offsets.items() if there in gone},
        )
        return len(gone)

    def legal(self, fault: Fault, before: MessageState, after: MessageState) -> str:
        """Return how many messages a crash between two states may leave."""
        reference = self.promises.reference()
        reference.go_on_with(after.reference)
        legal = reference.survivors(fault, since=before.reference)
        fewest, most = min(legal), max(legal)
        return _messages(fewest) if fewest == most else f"{fewest} to {most} messages, the first ones"


def _promised_by(answers: tuple[_Answer, ...], end_offset: int, fault: Fault) -> str:
    """Return the answer that promised the records up to an offset.

    It is the first answer of the latest unbroken row of answers that promise them.
    """
    first: _Answer | None = None
    for answer in answers:
        promised = (answer.power if fault == "power" else answer.kill) >= end_offset
        first = (first or answer) if promised else None
    return "" if first is None else first.said


def _same(found: bytes | None, expected: bytes | None, what: str) -> None:
    if found != expected:
        raise GuaranteeBroken(17, f"{what} leads to another message than the one put", shown(expected), shown(found))


def _messages(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"


def keys_of_put(put: Put) -> list[str]:
    """Return the keys of a message."""
    pairs = dict(pair.split("\x01", 1) for pair in put.properties.split("\x02") if "\x01" in pair)
    return [key for key in pairs.get("KEYS", "").split(" ") if key]
