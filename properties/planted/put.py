"""Define bugs of the put path: encoding, refusal, delay and dispatch of a message."""

import struct
import threading
from dataclasses import replace
from typing import Any

from tornpage.impl.dispatch.dispatch_records import dispatch_records, read_record
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.queue_offsets import QueueOffsetTable
from tornpage.impl.message import batch as plain
from tornpage.impl.message.batch import BatchFrame, EncodedBatch
from tornpage.impl.message.batch_encoder import BatchEncoder
from tornpage.impl.message.codec import TRAILER_BYTES
from tornpage.impl.message.delay_levels import HALF_TOPIC, DelayLevels
from tornpage.impl.message.dispatching import Dispatched, DispatchRules, QueueRun
from tornpage.impl.message.encoder import RecordEncoder
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.message.multi_dispatch import MultiDispatch, QueueKey
from tornpage.impl.message.properties_text import text_of
from tornpage.impl.parts import Parts
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.put.rewriting import delayed
from tornpage.impl.put.time_outs import Awaited, Request
from tornpage.model.operations import Crash, FailAppend, FailSync, Member, Open, Put, PutBatch
from tornpage.properties.planted.programs import PUT, SMALL, SYNC
from tornpage.properties.planted.record import Origin, PlantedBug
from tornpage.properties.program.case import Settings

__all__ = ["BUGS"]

_HEAD = struct.Struct(">iiiii")
_WRAPS_AT = 1 << 16
_STAND_IN = "stand-in"


# ---- one message -----------------------------------------------------------------------------------------------------


class _BeginTimeStays(CommitLog):
    """Leave the start time of the put lock set after an append raised (RMQ-B16)."""

    def _under_lock(self, incoming: Any, draft: Any, now_ms: int) -> PutResult:
        result = super()._under_lock(incoming, draft, now_ms)
        if result.status is PutStatus.UNKNOWN_ERROR:
            self.begin_time_in_lock = self._clock()
        return result


class _OffsetForARefusal(CommitLog):
    """Advance the queue offset for a refused message (RMQ-B18)."""

    def put(self, message: Message, *, now_ms: int) -> PutResult:
        key = (message.topic.encode(errors="replace"), message.queue_id)
        before = self._queue_offsets.next_offset(key)
        result = super().put(message, now_ms=now_ms)
        if result.status in (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED):
            self._queue_offsets.advance(key, before + 1)
        return result


class _WrongTimeout(GroupCommit):
    """Report a failed flush as a time-out of the slave (RMQ-B23)."""

    def submit(self, request: Request) -> None:
        def say(status: PutStatus) -> None:
            failed = status is PutStatus.FLUSH_DISK_TIMEOUT
            request.answer(PutStatus.FLUSH_SLAVE_TIMEOUT if failed else status)

        super().submit(
            Awaited(
                say,
                end_offset=request.end_offset,
                deadline_ms=request.deadline_ms,
                timeout_status=request.timeout_status,
            )
        )


class _TopicInCharacters(RecordEncoder):
    """Limit a topic length in characters, although it is stored in one signed byte (limit 11).

    Limit 11 is that of the wire format.
    """

    def _learn(self, topic: str) -> bytes | None:
        stored = super()._learn(topic)
        data = topic.encode(errors="replace")
        if stored is None and 0 < len(topic) <= 127 < len(data) < 256 and not set(b"\0/") & set(data):
            return bytes((len(data),)) + data
        return stored


# ---- batches ---------------------------------------------------------------------------------------------------------


def _members(body: bytes) -> list[tuple[int, bytes, bytes]]:
    """Return flag, body and properties of each message of a valid batch body."""
    members, at = [], 0
    while at < len(body):
        total, _, _, flag, body_bytes = _HEAD.unpack_from(body, at)
        members.append((flag, body[at + 20 : at + 20 + body_bytes], body[at + 22 + body_bytes : at + total]))
        at += total
    return members


def _client_body(members: list[tuple[int, bytes, bytes]]) -> bytes:
    return b"".join(
        _HEAD.pack(22 + len(body) + len(properties), 0, 0, flag, len(body))
        + body
        + len(properties).to_bytes(2, "big")
        + properties
        for flag, body, properties in members
    )


def _wrapping(body: bytes, frame: BatchFrame) -> EncodedBatch | PutStatus:
    """Check each part of the properties but not their sum. Its length is stored modulo 65,536."""
    encoded = plain.encode_batch(body, frame)
    if encoded is not PutStatus.PROPERTIES_SIZE_EXCEEDED:
        return encoded
    data, ends = bytearray(), []
    for flag, content, properties in _members(body):
        merged = properties + (b"\x02" if properties and frame.properties else b"") + frame.properties
        small = plain.encode_batch(_client_body([(flag, content, b"")]), replace(frame, properties=b""))
        if not isinstance(small, EncodedBatch):
            return encoded
        trailer = bytes(TRAILER_BYTES) if frame.trailer else b""
        head = small.data[: len(small.data) - len(trailer) - 2]
        length = (len(merged) + len(trailer)) % _WRAPS_AT
        record = bytearray(head + length.to_bytes(2, "big") + merged + trailer)
        record[:4] = len(record).to_bytes(4, "big")
        data += record
        ends.append(len(data))
    if len(data) > min(frame.record_bytes_max, frame.room_bytes_max):
        return PutStatus.MESSAGE_ILLEGAL
    return EncodedBatch(data, ends, store_timestamp_at=48 + len(frame.born_host), trailer=frame.trailer)


def _glued(body: bytes, frame: BatchFrame) -> EncodedBatch | PutStatus:
    """Join the properties of message and batch without a separator."""
    encoded = plain.encode_batch(body, frame)
    if not isinstance(encoded, EncodedBatch):
        return encoded
    glued = [(flag, content, properties + frame.properties) for flag, content, properties in _members(body)]
    again = plain.encode_batch(_client_body(glued), replace(frame, properties=b""))
    return again if isinstance(again, EncodedBatch) else encoded


class _PropertyLengthWraps(BatchEncoder):
    """Let the length of merged properties wrap in its 16 bits (RMQ-B19)."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings, encode_batch=_wrapping)  # type: ignore[arg-type]


class _SeparatorLost(BatchEncoder):
    """Leave out the separator between properties of a message and of its batch (RMQ-B20)."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings, encode_batch=_glued)  # type: ignore[arg-type]


class _KeyOfTheBatch(BatchEncoder):
    """Give every message the unique key of the batch besides its own (RMQ-B21)."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings, encode_batch=self._with_its_key)  # type: ignore[arg-type]
        self._batch_text = ""

    def encode(self, batch: MessageBatch, *, now_ms: int) -> EncodedBatch | PutStatus:
        self._batch_text = text_of(batch.properties) or ""
        return super().encode(batch, now_ms=now_ms)

    def _with_its_key(self, body: bytes, frame: BatchFrame) -> EncodedBatch | PutStatus:
        return plain.encode_batch(body, replace(frame, properties=self._batch_text.encode()))


def _half_message_delayed(message: Message, text: str, levels: DelayLevels) -> Message | PutStatus:
    """Delay a half message that has a delay level: store it in the schedule topic (RMQ-B65)."""
    if message.topic != HALF_TOPIC:
        return delayed(message, text, levels)
    stored = delayed(replace(message, topic=_STAND_IN), text, levels)
    if isinstance(stored, PutStatus) or stored.topic == _STAND_IN:
        return message
    return replace(stored, properties=str(stored.properties).replace(_STAND_IN, HALF_TOPIC))


# ---- delayed messages and light queues -------------------------------------------------------------------------------


class _LightQueuesForgotten(QueueOffsetTable):
    """Restart the counters of named queues at 0 after a restart (RMQ-B74)."""

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
    """Dispatch a message to its light queues again when it is stored again (RMQ-B75)."""

    def queues_of(self, topic: str, queue_id: int, text: str) -> tuple[QueueKey, ...]:
        return super().queues_of("any other", queue_id, text)


class _OffsetsBeforeTheLock(CommitLog):
    """Read the offsets of named queues before taking the put lock (RMQ-B76)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._early: dict[int, dict[QueueKey, int]] = {}

    def _under_lock(self, incoming: Any, draft: Any, now_ms: int) -> PutResult:
        if draft is None:
            self._early[threading.get_ident()] = self._offsets_of(incoming)
        return super()._under_lock(incoming, draft, now_ms)

    def _append_dispatched(self, message: Message, now_ms: int, store_timestamp: int) -> PutResult:
        early = self._early.pop(threading.get_ident())
        return self._append_with_offsets(message, early, now_ms, store_timestamp)


class _QuotaOfAnotherVariable(CommitLog):
    """Compute the limit of light queues but do not apply it (RMQ-B77)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"light_queues_max": 1 << 62})


def _own_name_forgotten(view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
    """Count a light queue that its own message names as unnamed when the log is read again."""
    given, own = dispatch_records(view, position, end, rules), set()
    while position < given.end_position and not isinstance(record := read_record(view, position, end), str):
        position += record.size_bytes
        own.add(((record.topic, record.queue_id), record.offset + record.size_bytes))
    runs = [run._replace(named=False) if (run.key, run.end_offset) in own else run for run in given.runs]
    return given._replace(runs=runs)


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

NARROW = Settings(file_bytes=1024, record_bytes_max=1_000)
MULTI_DISPATCH = Settings(file_bytes=1024, multi_dispatch=True)
NO_LIGHT_QUEUES = Settings(file_bytes=1024, multi_dispatch=True, light_queues=True, light_queues_max=0)
ONE_LIGHT_QUEUE = replace(NO_LIGHT_QUEUES, light_queues_max=1)
LATER = Put(advance_ms=2_000)
DELAYED_TOO_FAR = Put(properties="DELAY\x0199")
IN_BATCH = "CLUSTER\x01C"
LONGEST = 32_767
"""Bytes of properties."""

BUGS = (
    PlantedBug("RMQ-B16", "after a failed append the put lock seems held forever", 8,
        Parts({CommitLog: _BeginTimeStays}),
        origin=Origin("RMQ-B16", "Lock-begin time not cleared when an append throws", "4.9.3", "no"), machine="put",
        program=(SMALL, (FailAppend(), PUT, LATER))),
    PlantedBug("RMQ-B18", "a refused message uses up an offset of its queue", 8,
        Parts({CommitLog: _OffsetForARefusal}),
        origin=Origin("RMQ-B18", "Queue offset consumed by a rejected message", "5.1.1", "no"), machine="put",
        program=(NARROW, (Put(body_bytes=950), PUT))),
    PlantedBug("RMQ-B23", "a failed flush is answered as a time-out of the slave", 8,
        Parts({GroupCommit: _WrongTimeout}),
        origin=Origin("RMQ-B23", "Disk-flush timeout reported as slave timeout", "4.7.1", "no"), machine="put",
        program=(SYNC, (PUT, FailSync(), PUT))),
    PlantedBug("topic-in-characters", "the length of a topic is limited in characters instead of bytes", 8,
        Parts({RecordEncoder: _TopicInCharacters}), machine="put", program=(SMALL, (Put(topic="\u8ba2" * 43),))),
    PlantedBug("RMQ-B19", "the length of merged message and batch properties wraps in 16 bits", 8,
        Parts({BatchEncoder: _PropertyLengthWraps}),
        origin=Origin("RMQ-B19", "Property length wraps a signed 16-bit field", "4.9.3", "no"), holes=("H7",),
        machine="put", program=(SMALL, (PutBatch(members=(Member(properties="m\x01" + "v" * (LONGEST - 2)),)),))),
    PlantedBug("RMQ-B20", "the separator between the properties of a message and of its batch is missing", 1,
        Parts({BatchEncoder: _SeparatorLost}),
        origin=Origin("RMQ-B20", "Separator lost between message and batch properties", "4.9.3", "no"), machine="put",
        program=(SMALL, (PutBatch(members=(Member(properties="TAGS\x01TagB"),), properties=IN_BATCH),)),
        breaks_first=8),
    PlantedBug("RMQ-B21", "the unique key of a batch overwrites the unique key of each of its messages", 1,
        Parts({BatchEncoder: _KeyOfTheBatch}),
        origin=Origin("RMQ-B21", "Batch-level properties overwrite each member's unique key", "after 5.3.3", "yes"),
        machine="put", program=(SMALL, (PutBatch(members=(Member(),), properties="UNIQ_KEY\x01batch"),)),
        breaks_first=8),
    PlantedBug("RMQ-B65", "a half message with a delay level is delayed", 8, Parts({delayed: _half_message_delayed}),
        origin=Origin("RMQ-B65", "Delayed half message re-enters the half queue", "4.6.1", "no"), machine="put",
        program=(SMALL, (Put(topic="RMQ_SYS_TRANS_HALF_TOPIC", properties="DELAY\x012"),))),
    PlantedBug("RMQ-B74", "the counters of light queues restart at 0 after a restart", 1,
        Parts({QueueOffsetTable: _LightQueuesForgotten}),
        origin=Origin("RMQ-B74", "Light-queue counters not restored on restart", "4.9.5 / 5.1.0", "yes"),
        holes=("C11",), machine="put",
        program=(MULTI_DISPATCH, (DELAYED_TOO_FAR, Put(topic="%LMQ%a", properties="INNER_MULTI_DISPATCH\x01U,T"),
            Crash(others="kept")))),
    PlantedBug("RMQ-B75", "a retried message is dispatched to its light queues a second time", 8,
        Parts({MultiDispatch: _RetriesDispatched}),
        origin=Origin("RMQ-B75", "Retry copies dispatched to the light queues again", "5.1.1", "yes"), machine="put",
        program=(MULTI_DISPATCH, (Put(topic="SCHEDULE_TOPIC_XXXX", properties="INNER_MULTI_DISPATCH\x01U,T"),))),
    PlantedBug("RMQ-B76", "the offsets of light queues are read before the put lock is taken", 17,
        Parts({CommitLog: _OffsetsBeforeTheLock}),
        origin=Origin("RMQ-B76", "Light-queue offset taken under the wrong lock", "5.2.0", "no"), machine="put"),
    PlantedBug("RMQ-B77", "the limit of light queues is computed but not applied", 8,
        Parts({CommitLog: _QuotaOfAnotherVariable}),
        origin=Origin("RMQ-B77", "Light-queue quota checks the wrong variable", "not fixed on 4.9.x", "yes"),
        machine="put", program=(NO_LIGHT_QUEUES, (Put(properties="INNER_MULTI_DISPATCH\x01%LMQ%a"),))),
    PlantedBug("own-light-queue-not-counted",
        "after a restart a light queue named by its own messages does not count against the limit", 8,
        Parts({dispatch_records: _own_name_forgotten}),
        program=(ONE_LIGHT_QUEUE, (Put(topic="%LMQ%a", properties="INNER_MULTI_DISPATCH\x01%LMQ%a"), Open(),
            Put(properties="INNER_MULTI_DISPATCH\x01%LMQ%c")))),
)  # fmt: skip
