"""Drawn sequences of operations on a `ProcessQueue`, with all fields after each operation.

`cleanExpiredMsg` has no counterpart, because ours reports an overdue run and never repeats it (breach C17).
`tryUnlockTimes` has none, because our hand-over does not try an unlock again and again. Clocks are compared as ages,
because Java reads the clock itself. Source: `impl/consumer/process_queue.py`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, cast

from tornpage.impl.consumer.messages import ConsumerMessage
from tornpage.impl.consumer.process_queue import ProcessQueue
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.message.message import StoredMessage
from tornpage.peers.consumers.suites import Case, Suite

__all__ = ["SEQUENCES", "SEQUENCES_DRAWN"]

SEQUENCES_DRAWN = 10_000
_CHUNK = 100
_OPERATIONS = 24
_NOW_MS = 10_000_000
_QUEUE = MessageQueue("T", "broker-a", 0)
_AGES_MS = (0, 20_000, 40_000, 100_000, 140_000, 2_000_000)
"""Ages that are some seconds away from each limit, since Java's clock goes on during an operation."""

Row = list[int]
"""The offset of a message, the size of its body, and the end of the queue that the broker states, or -1."""
Operation = list[Any]


# ---- cases -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def sequences(seed: int, chunk: int) -> tuple[Case, ...]:
    """Return drawn sequences."""
    random = Random(f"sequences {seed} {chunk}")
    return tuple({"operations": _Drawing(random).operations()} for _ in range(_CHUNK))


class _Drawing:
    """Draws operations that are likely to matter, from the offsets that are cached and taken."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._next = random.choice([0, 0, 7, 1 << 40])
        self._cached: set[int] = set()
        self._taken: set[int] = set()
        self._is_orderly = random.random() < 0.5

    def operations(self) -> list[Operation]:
        """Return a sequence."""
        return [self._operation() for _ in range(self._random.randint(1, _OPERATIONS))]

    def _operation(self) -> Operation:
        draw = self._random.random()
        if draw < 0.3:
            return self._put()
        if draw < 0.75:
            return self._orderly() if self._is_orderly != (draw < 0.33) else self._concurrent()
        return self._flag()

    def _put(self) -> Operation:
        random = self._random
        offsets = list(range(self._next, self._next + random.choice([0, 1, 1, 2, 3, 5, 20])))
        if offsets:
            self._next = offsets[-1] + 1 + random.choice([0, 0, 0, 1, 5])
        if random.random() < 0.2:
            offsets += random.sample(range(max(0, self._next - 12), self._next + 1), 1)
        if random.random() < 0.1:
            random.shuffle(offsets)
        self._cached.update(offsets)
        return ["put", [self._row(offset) for offset in offsets]]

    def _row(self, offset: int) -> Row:
        size = offset % 7 if self._random.random() < 0.95 else self._random.randrange(20)
        return [offset, size, self._random.choice([-1, offset, offset + 1, self._next, self._next + 100, 0])]

    def _concurrent(self) -> Operation:
        random = self._random
        lowest = sorted(self._cached)[: random.choice([1, 3, 20])]
        chosen = random.sample(lowest, random.randint(0, len(lowest)))
        if random.random() < 0.1:
            chosen.append(self._next + 3)
        self._cached.difference_update(chosen)
        return ["remove", [self._row(offset) for offset in chosen]]

    def _orderly(self) -> Operation:
        random = self._random
        name = random.choice(["take", "take", "commit", "rollback", "again"])
        if name == "take":
            count = random.choice([0, 1, 1, 2, 4])
            taken = sorted(self._cached)[:count]
            self._cached.difference_update(taken)
            self._taken.update(taken)
            return [name, count]
        again = sorted(self._taken)
        if name == "again":
            again = random.sample(again, random.randint(0, len(again)))
        if name != "commit":
            self._cached.update(again)
        self._taken.difference_update(again)
        return [name, again] if name == "again" else [name]

    def _flag(self) -> Operation:
        random = self._random
        match random.choice(
            ["drop", "lock", "pulled", "clear"] if random.random() < 0.2 else ["drop", "lock", "pulled"]
        ):
            case "drop":
                return ["drop", random.random() < 0.5]
            case "lock":
                return ["lock", random.random() < 0.7, random.choice(_AGES_MS)]
            case "pulled":
                return ["pulled", random.choice(_AGES_MS)]
        self._cached.clear()
        self._taken.clear()
        return ["clear"]


# ---- ours ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stored:
    queue_offset: int
    body: bytes


def _message(row: Row) -> ConsumerMessage:
    stored = cast(StoredMessage, _Stored(row[0], bytes(row[1])))
    return ConsumerMessage(stored, _QUEUE, _QUEUE.topic, row[2])


class _Steps:
    """Our queue, and the messages that it has ever given out."""

    def __init__(self) -> None:
        self._queue = ProcessQueue()
        self._taken: dict[int, ConsumerMessage] = {}

    def step(self, operation: Operation) -> list[Any]:
        """Carry out an operation; return its answer and the state after it."""
        self._queue.last_consume_timestamp = 0
        return [self._answer(operation[0], operation[1:]), self._state()]

    def _answer(self, name: str, given: Sequence[Any]) -> Any:
        queue = self._queue
        match name:
            case "put":
                return queue.put_message([_message(row) for row in given[0]])
            case "remove":
                return queue.remove_message([_message(row) for row in given[0]], _NOW_MS)
            case "take":
                taken = queue.take_messages(given[0], _NOW_MS)
                self._taken |= {message.queue_offset: message for message in taken}
                return [message.queue_offset for message in taken]
            case "commit":
                return queue.commit()
            case "rollback":
                queue.rollback()
            case "again":
                found = [self._taken[offset] for offset in given[0] if offset in self._taken]
                queue.make_message_to_consume_again(found)
            case "drop":
                queue.dropped = given[0]
            case "lock":
                queue.locked, queue.last_lock_timestamp = given[0], _NOW_MS - given[1]
                return queue.is_lock_expired(_NOW_MS)
            case "pulled":
                queue.last_pull_timestamp = _NOW_MS - given[0]
                return queue.is_pull_expired(_NOW_MS)
            case "clear":
                queue.clear()
                self._taken.clear()
        return True

    def _state(self) -> dict[str, Any]:
        queue = self._queue
        return {
            "msgTreeMap": list(queue.msg_tree_map),
            "consumingMsgOrderlyTreeMap": list(queue.consuming_msg_orderly_tree_map),
            "msgCount": queue.msg_count,
            "msgSize": queue.msg_size,
            "queueOffsetMax": queue.queue_offset_max,
            "consuming": queue.consuming,
            "dropped": queue.dropped,
            "locked": queue.locked,
            "msgAccCnt": queue.msg_acc_cnt,
            "maxSpan": queue.max_span,
            "hasTempMessage": queue.has_temp_message(),
            "hasConsumed": queue.last_consume_timestamp > 0,
        }


def _ours(case: Case) -> list[Any]:
    steps = _Steps()
    return [steps.step(operation) for operation in case["operations"]]


# ---- differences -----------------------------------------------------------------------------------------------------


class _Mending:
    """Maps the answers of Java to our answers, one operation after another."""

    def __init__(self, applied: Counter[str]) -> None:
        self._applied = applied
        self._offset_max = 0
        self._bytes_more = 0
        self._cached: dict[int, int] = {}
        self._consuming: dict[int, int] = {}
        self._given_out: dict[int, int] = {}

    def answer(self, operation: Operation, java: list[Any]) -> list[Any]:
        """Return our answer to one operation from that of Java."""
        name, given, (answer, state) = operation[0], operation[1:], java
        had_cached = bool(self._cached)
        self._follow(name, given)
        if name == "remove" and had_cached and not state["msgTreeMap"]:
            self._applied["queueOffsetMax"] += answer != self._offset_max + 1
            answer = self._offset_max + 1
        elif name == "commit" and answer == "NoSuchElementException":
            self._applied["commit"] += 1
            answer = -1
        self._applied["queueOffsetMax"] += state["queueOffsetMax"] != self._offset_max
        self._applied["msgSize"] += bool(self._bytes_more)
        mended = {"queueOffsetMax": self._offset_max, "msgSize": state["msgSize"] + self._bytes_more}
        return [answer, {**state, **mended}]

    def _follow(self, name: str, given: Sequence[Any]) -> None:
        """Follow the bodies that are cached, which Java does not state."""
        match name:
            case "put":
                for offset, size, _ in given[0]:
                    if offset not in self._cached:
                        self._offset_max = max(self._offset_max, offset)
                    self._cached[offset] = size
            case "remove":
                for offset, size, _ in given[0]:
                    if offset in self._cached:
                        self._bytes_more += size - self._cached.pop(offset)
            case "take":
                for offset in sorted(self._cached)[: given[0]]:
                    self._consuming[offset] = self._given_out[offset] = self._cached.pop(offset)
            case "commit":
                self._consuming.clear()
            case "rollback":
                self._cached |= self._consuming
                self._consuming.clear()
            case "again":
                for offset in given[0]:
                    if offset in self._given_out:
                        self._consuming.pop(offset, None)
                        self._cached[offset] = self._given_out[offset]
            case "clear":
                self._offset_max = self._bytes_more = 0
                self._cached.clear()
                self._consuming.clear()
                self._given_out.clear()


def _mended(case: Case, java: list[Any], applied: Counter[str]) -> list[Any]:
    mending = _Mending(applied)
    return [mending.answer(operation, each) for operation, each in zip(case["operations"], java, strict=True)]


RULES: Mapping[str, str] = {
    "queueOffsetMax": "Java takes the offset of the last new message, also if it is lower; ours never lowers it; a "
    "removal that empties the cache returns this field plus 1",
    "commit": "without a taken message Java raises NoSuchElementException, ours returns -1",
    "msgSize": "a removal lowers the size by the body of the argument in Java, by the cached body in ours",
}

SEQUENCES = Suite(
    "process queue", "process_queue", SEQUENCES_DRAWN // _CHUNK, sequences, _ours, _mended, RULES,
    lambda case: len(case["operations"]),
)  # fmt: skip
