"""Provide a store in memory that answers like the model: a reference, and a mock in tests.

1. It has the operations of every store under test: put, get, read, find, flush and close.
2. Its only state is a `CommitLog` value; `model.step` computes the effect of a put or a flush.
3. Its promises are arguments: a message is safe from a power loss (`durable`) or from a process kill (`kill`) after a
   put, a flush, a close, or never.
4. Crash faults are operations too: `survivors` returns every state that one may leave, `crash` continues with one of
   them.
5. A crash may leave a message whose put has no answer. Recovery does not make it safe, nor does a later close of a
   store with a stronger promise. A store that makes such messages safe when it opens promises `recovered`.

It writes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tornpage.model import commitlog, index, reading
from tornpage.model.answers import Answer, PutAnswer
from tornpage.model.crash import crash
from tornpage.model.message import Message
from tornpage.model.operations import Flush, Operation, Put, Step
from tornpage.model.state import Clock, CommitLog, Layout, Record, State
from tornpage.model.step import step
from tornpage.properties.foreign.shapes.language import BadPromise, points_of

__all__ = ["SAFE_AFTER", "CrashFault", "ReferenceState", "ReferenceStore", "SafeAfter"]

SafeAfter = Literal["put", "flush", "close", "nothing"]
"""The answer after which a message is safe."""
SAFE_AFTER: tuple[SafeAfter, ...] = ("put", "flush", "close", "nothing")
"""The strongest promise first. A store that keeps one promise also keeps those that follow it."""
CrashFault = Literal["kill", "power"]

_BODY_BYTES_MAX = 1 << 20
_HOST = ("192.0.2.1", 10_911)


@dataclass(frozen=True, slots=True)
class ReferenceState:
    """Hold the log, the bytes of it safe from a kill, and the bytes of answered puts.

    The bytes safe from a power loss are in the log itself (`flushed_offset`).
    """

    log: CommitLog
    killed_offset: int = 0
    answered_offset: int = 0

    def floor(self, fault: CrashFault) -> int:
        """Return the offset up to which everything survives."""
        return self.killed_offset if fault == "kill" else self.log.flushed_offset


class ReferenceStore:
    """Store messages as the model does.

    Raises ValueError for contradictory promises: what survives a power loss survives a kill too.
    """

    def __init__(
        self,
        *,
        durable: SafeAfter | Sequence[str] = "put",
        kill: SafeAfter | Sequence[str] | None = None,
        recovered: bool = False,
        body_bytes_max: int = _BODY_BYTES_MAX,
    ) -> None:
        kill = durable if kill is None else kill
        self._durable, self._kill = _points(durable), _points(kill)
        if not set(self._durable) <= set(self._kill):
            raise ValueError(f"durable after {durable!r} and kill after {kill!r}: a kill takes less than a power loss")
        self._given = {"durable": durable, "kill": kill}
        self._recovered = recovered
        self._body_bytes_max = body_bytes_max
        self._layout = Layout(
            file_bytes=1 << 62, record_bytes_max=1 << 40, trailer=False, sync_flush="put" in self._durable, files_max=1
        )
        self._closed = False
        self.state = ReferenceState(CommitLog())

    @property
    def promises(self) -> dict[str, Any]:
        """Return the promises as in a handshake."""
        return {
            **self._given,
            "recovered": self._recovered,
            "offsets": True,
            "queues": True,
            "index": True,
            "body_bytes_max": self._body_bytes_max,
        }

    @property
    def log(self) -> CommitLog:
        """Return the value that the store has."""
        return self.state.log

    # ---- the operations of every store -------------------------------------------------------------------------------

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str] = ()) -> tuple[int, int]:
        """Store a message; return its offset and its number in its queue.

        Raises ValueError for a refused message.
        """
        self._must_be_open()
        if len(body) > self._body_bytes_max:
            raise ValueError(f"the body has {len(body)} bytes, at most {self._body_bytes_max} are allowed")
        message = Message(
            topic=topic,
            body=body,
            queue_id=queue,
            properties={"KEYS": " ".join(keys)} if keys else "",
            flag=0,
            sys_flag=0,
            born_timestamp=0,
            born_host=_HOST,
            store_host=_HOST,
        )
        log, answer = self._after(Put(advance_ms=0), given=message)
        assert isinstance(answer.put, PutAnswer)
        if answer.put.offset < 0:
            raise ValueError(f"the message is refused: {answer.put.status}")
        killed_offset = log.end_offset if "put" in self._kill else self.state.killed_offset
        self.state = ReferenceState(log, killed_offset, log.end_offset)
        self.state = ReferenceState(self._after(Step("reput"))[0], killed_offset, log.end_offset)
        return answer.put.offset, answer.put.queue_offset

    def get(self, offset: int) -> bytes | None:
        """Return the body of the message at an offset, or None if none begins there."""
        self._must_be_open()
        return _body(commitlog.get(self.log, offset)[1])

    def read(self, topic: str, queue: int, number: int) -> bytes | None:
        """Return the body of message `number` of a queue, or None if there is none."""
        self._must_be_open()
        unit = reading.unit_at(self.log, self._layout, topic, queue, number)
        return None if unit is None else _body(unit.record)

    def find(self, topic: str, key: str) -> list[bytes]:
        """Return the bodies of a topic's messages with a key, oldest first.

        At most the newest 64 are returned.
        """
        self._must_be_open()
        found = index.query(self.log, self._layout, topic, key, self._layout.query_max, 0, 1 << 62)
        return [record.message.body or b"" for record in found]

    def flush(self) -> None:
        """Flush, and keep what a flush promises."""
        self._must_be_open()
        self._now_safe_after("flush")

    def close(self) -> None:
        """Close, and keep what a close promises.

        Every later operation but `reopen` raises ValueError.
        """
        self._must_be_open()
        self._now_safe_after("close")
        self._closed = True

    def reopen(self) -> None:
        """Open again after a close. Everything is there if anything is promised."""
        self._closed = False
        if not self._kill:
            self.state = ReferenceState(CommitLog())

    # ---- crashes --------------------------------------------------------------------------------------------------

    def survivors(self, fault: CrashFault, *, since: ReferenceState | None = None) -> dict[int, ReferenceState]:
        """Return every state that a crash fault may leave, by the number of messages left.

        With the earlier state `since`, an operation was running that had not answered.
        """
        before = self.state if since is None else since
        floor = before.floor(fault)
        promised = before.log.changed(flushed_offset=floor)
        found: dict[int, ReferenceState] = {}
        for log in crash(promised, self.log, "power loss", layout=self._layout):
            flushed_offset = min(before.log.flushed_offset, log.end_offset)
            killed_offset = min(before.killed_offset, log.end_offset)
            answered_offset = min(before.answered_offset, log.end_offset)
            if self._recovered:
                flushed_offset = killed_offset = log.end_offset
            log = log.changed(flushed_offset=flushed_offset)
            found[len(log.records)] = ReferenceState(log, killed_offset, answered_offset)
        return found

    def crash(self, fault: CrashFault, *, messages: int | None = None, since: ReferenceState | None = None) -> int:
        """Continue after a crash fault with `messages` messages, or the fewest.

        Return the number left. Raises ValueError for a number that no such crash fault leaves.
        """
        left = self.survivors(fault, since=since)
        count = min(left) if messages is None else messages
        if count not in left:
            raise ValueError(f"{count} messages: a {fault} leaves {min(left)} to {max(left)}")
        self.go_on_with(left[count])
        return count

    def go_on_with(self, state: ReferenceState) -> None:
        """Continue, open, with a state that `survivors` returned."""
        self.state, self._closed = state, False

    def _now_safe_after(self, verb: SafeAfter) -> None:
        """Move both floors as far as the answer of a flush or a close promises.

        A promise of just this verb covers every message. A stronger promise covers messages with an answer only.
        """
        log, killed_offset, answered_offset = self.log, self.state.killed_offset, self.state.answered_offset
        if self._durable[:1] == (verb,):
            log, _ = self._after(Flush())
        elif verb in self._durable:
            log = log.changed(flushed_offset=max(log.flushed_offset, answered_offset))
        if self._kill[:1] == (verb,):
            killed_offset = log.end_offset
        elif verb in self._kill:
            killed_offset = max(killed_offset, answered_offset)
        self.state = ReferenceState(log, killed_offset, answered_offset)

    def _after(self, operation: Operation, given: Message | None = None) -> tuple[CommitLog, Answer]:
        """Return the log after an operation, and its answer.

        A message's number in the log serves as its time.
        """
        before = State(self.log, clock=Clock(len(self.log.records)))
        after, answer = next(step(before, operation, self._layout, given=given))
        return after.log, answer

    def _must_be_open(self) -> None:
        if self._closed:
            raise ValueError("the store is closed")


def _points(promise: SafeAfter | Sequence[str]) -> tuple[str, ...]:
    """Return the points of a promise, a word or a list. Raises ValueError."""
    try:
        return points_of(promise, SAFE_AFTER[:-1])
    except BadPromise:
        raise ValueError(f"{promise!r} is no promise: {', '.join(SAFE_AFTER)}") from None


def _body(record: Record | None) -> bytes | None:
    return None if record is None else record.message.body or b""
