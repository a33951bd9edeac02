"""Finding and checking the record of a queue unit; the interfaces that reads use.

A unit is only a hint. Its record must be valid at its offset (`log_reader`) and must belong to the queue with this
number: by its own topic, queue id and queue offset, or, for a multi-dispatched message, by the names and offsets in its
properties. Prepared and rolled-back messages are in no queue.
"""

from collections.abc import Iterable
from typing import Protocol

from tornpage.impl.message.codec import has_consume_queue, properties_of_record, queue_of_record
from tornpage.impl.message.multi_dispatch import MultiDispatch, QueueKey, offsets_in
from tornpage.impl.queue.consume_queue_ext import ExtUnit
from tornpage.impl.queue.units import Unit
from tornpage.impl.read.log_reader import LogSession

__all__ = ["QueuedRecords", "ReadableQueue", "ReadableQueues"]


class _Extension(Protocol):
    def get(self, address: int) -> ExtUnit | None: ...


class ReadableQueue(Protocol):
    """The part of a consume queue that reads use.

    `impl.queue.consume_queue.ConsumeQueue` implements it.
    """

    @property
    def key(self) -> QueueKey: ...
    @property
    def topic(self) -> str: ...
    @property
    def queue_id(self) -> int: ...
    @property
    def min_offset(self) -> int: ...
    @property
    def max_offset(self) -> int: ...
    @property
    def ext(self) -> _Extension | None: ...
    def unit(self, number: int, /) -> Unit | None: ...
    def units(self, number: int, limit: int, /) -> Iterable[Unit]: ...
    def unit_bytes(self, number: int, limit: int, /) -> bytes: ...


class ReadableQueues(Protocol):
    """The part of the table of queues that reads use; a lookup creates no queue."""

    def find(self, topic: str, queue_id: int, /) -> ReadableQueue | None: ...
    def all(self) -> Iterable[ReadableQueue]: ...


class QueuedRecords:
    """Finds the records of units.

    `dispatch` is None if no record may be in a queue that it names.
    """

    def __init__(self, dispatch: MultiDispatch | None) -> None:
        self._dispatch = dispatch

    def find(self, session: LogSession, key: QueueKey, number: int, offset: int) -> int:
        """Find the record at an offset and return its size.

        Returns 0 if it cannot be served as message `number`.
        """
        size = session.find(offset)
        return size if size and self._belongs(session, key, number) else 0

    def _belongs(self, session: LogSession, key: QueueKey, number: int) -> bool:
        """Return whether the record found last is message `number` of a queue."""
        view, position = session.view, session.position
        topic, queue_id, queue_offset, sys_flag = queue_of_record(view, position)
        if not has_consume_queue(sys_flag):
            return False
        if queue_offset == number and queue_id == key[1] and topic == key[0]:
            return True
        return self._dispatch is not None and self._is_named(view, position, topic, queue_id, key, number)

    def _is_named(
        self, view: memoryview, position: int, topic: bytes, queue_id: int, key: QueueKey, number: int
    ) -> bool:
        assert self._dispatch is not None
        text = properties_of_record(view, position)
        names = self._dispatch.queues_of(topic.decode(errors="replace"), queue_id, text)
        offsets = offsets_in(text)
        return len(names) == len(offsets) and (key, number) in zip(names, offsets, strict=True)
