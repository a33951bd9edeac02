"""Bugs in messages that go elsewhere, or to several queues (RMQ-B65, RMQ-B74 to B77)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from impl.commit_log import CommitLog
from impl.delay import HALF_TOPIC, DelayLevels
from impl.dispatch_records import dispatch_records, read_record
from impl.dispatching import Dispatched, DispatchRules, QueueRun
from impl.message import Message, PutResult, PutStatus
from impl.multi_dispatch import MultiDispatch, QueueKey
from impl.parts import Parts
from impl.queue_offsets import QueueOffsetTable
from impl.rewriting import delayed

__all__ = ["BUGS"]

_STAND_IN = "stand-in"


def _half_message_delayed(message: Message, text: str, levels: DelayLevels) -> Message | PutStatus:
    """Delay a half message that has a delay level: it goes into the schedule topic (RMQ-B65)."""
    if message.topic != HALF_TOPIC:
        return delayed(message, text, levels)
    stored = delayed(replace(message, topic=_STAND_IN), text, levels)
    if isinstance(stored, PutStatus) or stored.topic == _STAND_IN:
        return message
    return replace(stored, properties=str(stored.properties).replace(_STAND_IN, HALF_TOPIC))


class _LightQueuesForgotten(QueueOffsetTable):
    """The counters of named queues begin at 0 after a restart (RMQ-B74)."""

    def __init__(self, dispatch: MultiDispatch | None) -> None:
        super().__init__(dispatch)
        self._forgotten: set[QueueKey] = set()

    def learn(self, run: QueueRun) -> None:
        if run.named:
            self._forgotten.add(run.key)
            return
        super().learn(run)

    def learn_maximum(self, key: QueueKey, next_offset: int) -> None:
        is_light = self._dispatch is not None and self._dispatch.is_light(key)
        if key not in self._forgotten and not is_light:
            super().learn_maximum(key, next_offset)


class _RetriesDispatched(MultiDispatch):
    """A message stored again under a retry or schedule topic goes to its light queues again (RMQ-B75)."""

    def queues_of(self, topic: str, queue_id: int, text: str) -> tuple[QueueKey, ...]:
        return super().queues_of("any other", queue_id, text)


class _OffsetsBeforeTheLock(CommitLog):
    """Offsets of named queues are read before the put lock is taken (RMQ-B76)."""

    def _under_lock(self, append: Callable[[Any, Any, int], PutResult], incoming: Any, draft: Any) -> PutResult:
        if append == self._append_dispatched:
            early = self._offsets_of(incoming)
            append = partial(self._late, early)
        return super()._under_lock(append, incoming, draft)

    def _late(self, early: dict[QueueKey, int], message: Message, now_ms: int, store_timestamp: int) -> PutResult:
        return self._append_with_offsets(message, early, now_ms, store_timestamp)


class _QuotaOfAnotherVariable(CommitLog):
    """The limit of light queues is worked out and then not looked at (RMQ-B77)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"light_queues_max": 1 << 62})


def _own_name_forgotten(view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
    """A light queue that a message is put into and names as well counts as its own alone, once it is read again."""
    given, own = dispatch_records(view, position, end, rules), set()
    while position < given.end_position and not isinstance(record := read_record(view, position, end), str):
        position += record.size_bytes
        own.add(((record.topic, record.queue_id), record.offset + record.size_bytes))
    runs = [run._replace(named=False) if (run.key, run.end_offset) in own else run for run in given.runs]
    return given._replace(runs=runs)


BUGS = (
    ("RMQ-B65", "a half message with a delay level is delayed", 8, Parts({delayed: _half_message_delayed})),
    ("RMQ-B74", "the counters of light queues begin at 0 after a restart", 1,
     Parts({QueueOffsetTable: _LightQueuesForgotten})),
    ("RMQ-B75", "a retried message is dispatched to its light queues again", 8,
     Parts({MultiDispatch: _RetriesDispatched})),
    ("RMQ-B76", "the offsets of light queues are read before the put lock is taken", 17,
     Parts({CommitLog: _OffsetsBeforeTheLock})),
    ("RMQ-B77", "the limit of light queues is worked out and not looked at", 8,
     Parts({CommitLog: _QuotaOfAnotherVariable})),
    ("own-light-queue-not-counted", "a light queue that its own messages name is not counted after a restart", 8,
     Parts({dispatch_records: _own_name_forgotten})),
)  # fmt: skip
