"""Put messages into a Raft log: one entry for each record, answered once it is committed.

1. A record is the body of an entry. Its physical offset is the position of the entry and 48 bytes.
2. Queue offsets are reserved when an entry is appended to the log of a leader. The counters are rebuilt from queues and
   log at each election and after each cut, so that the numbers of cut entries are given again (L5).
3. A put is answered PUT_OK once its entry is committed and durable here. A put whose leader loses its role before, or
   whose time is over, is answered OUTCOME_UNKNOWN, since its entry may still be committed. DLedger answers such a put
   with UNKNOWN_ERROR or OS_PAGECACHE_BUSY, which a producer takes for a refusal (L4, L17).
4. A batch is several entries. A crash may leave the first ones.

Source: `DLedgerCommitLog.asyncPutMessage`, `DLedgerEntryPusher.waitAck`.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.message import codec
from tornpage.impl.message.batch import EncodedBatch
from tornpage.impl.message.message import Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.message.multi_dispatch import QueueKey
from tornpage.impl.put.put_answers import PendingAnswer, PutAnswers
from tornpage.impl.raft.appended_puts import AppendedPut, AppendedPuts
from tornpage.impl.raft.entry_codec import BLANK_BYTES_MIN, HEADER_BYTES
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import Envelope
from tornpage.impl.raft.raft_log import RaftLog

__all__ = ["RaftCommitLog", "RaftPutAnswers", "Send"]

Send = Callable[[Sequence[Envelope]], object]
"""Takes messages to send. It must not wait for an event of the member."""


class RaftCommitLog(CommitLog):
    """The commit log of a store on a Raft log. Its put lock is the lock of the member.

    `send` gets the messages of each put, after the lock is released. `fail` is called if the member cannot continue.
    """

    def __init__(
        self,
        *arguments: Any,
        member: RaftMember,
        raft_log: RaftLog,
        send: Send,
        fail: Callable[[BaseException], object],
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self.puts = AppendedPuts()
        self._member = member
        self._raft_log = raft_log
        self._send = send
        self._fail = fail
        self._sent: list[Envelope] = []
        self._own = threading.local()

    def put(self, message: Message, *, now_ms: int) -> PutResult:
        """Append one message as an entry, and send it.

        Returns without waiting for a commit.
        """
        result = super().put(message, now_ms=now_ms)
        self._send_all()
        return result

    def put_batch(self, batch: MessageBatch, *, now_ms: int) -> PutResult:
        """Append the messages of a batch as entries, and send them."""
        result = super().put_batch(batch, now_ms=now_ms)
        self._send_all()
        return result

    def flush(self, least_pages: int = 0) -> None:
        """Do nothing: a sync is an event of the member."""

    def appended(self) -> AppendedPut:
        """Return the put that this thread has appended last."""
        put: AppendedPut = self._own.put
        return put

    def attach(self, put: AppendedPut, request: PendingAnswer) -> PutStatus | None:
        """Let a request wait for a put; return the status if it is known already."""
        with self._put_lock:
            return self.puts.attach(put, request)

    def rebuild_numbers(self, dispatched_end: int, queue_ends: Sequence[tuple[QueueKey, int]]) -> None:
        """Set the next number of each queue by the queues and the log after the dispatched end.

        The caller holds the put lock. Raises RaftLogDamaged and OSError.
        """
        table, log = self._queue_offsets, self._raft_log
        table.forget(table.known())
        for key, end in queue_ends:
            table.learn_maximum(key, end)
        for place in range(log.first_place_from(dispatched_end), log.end):
            body = log.body_at(place)
            if body:
                topic, queue_id, number, sys_flag = codec.queue_of_record(memoryview(body), 0)
                if codec.has_consume_queue(sys_flag):
                    table.learn_maximum((topic, queue_id), number + 1)

    def _append(self, message: Message, record: bytearray, store_timestamp: int) -> PutResult:
        size_bytes = len(record) + self._trailer_bytes
        if not self._fits(size_bytes):
            return PutResult(PutStatus.MESSAGE_ILLEGAL)
        counts = codec.has_consume_queue(message.sys_flag)
        key = (message.topic.encode(), message.queue_id)
        number = self._queue_offsets.next_offset(key) if counts else 0
        offset = self._raft_log.next_position(size_bytes) + HEADER_BYTES
        codec.place_record(record, number, offset, store_timestamp, self._trailer)
        refusal = self._propose([record], key if counts else None, number)
        if refusal is not None:
            return PutResult(refusal)
        self._note_appended(message.topic, 1, size_bytes, store_timestamp)
        host = message.store_host or self._store_host
        return PutResult(PutStatus.PUT_OK, offset, size_bytes, number, store_timestamp, 1, host)

    def _append_batch(self, batch: MessageBatch, encoded: EncodedBatch, store_timestamp: int) -> PutResult:
        key, records = (batch.topic.encode(), batch.queue_id), _records_of(encoded, self._trailer_bytes)
        if not all(self._fits(len(record) + self._trailer_bytes) for record in records):
            return PutResult(PutStatus.MESSAGE_ILLEGAL)
        number = self._queue_offsets.next_offset(key)
        position, offsets = None, []
        for at, record in enumerate(records):
            size_bytes = len(record) + self._trailer_bytes
            position = self._raft_log.next_position(size_bytes, position)
            offsets.append(position + HEADER_BYTES)
            position += HEADER_BYTES + size_bytes
            codec.place_record(record, number + at, offsets[-1], store_timestamp, self._trailer)
        refusal = self._propose(records, key, number)
        if refusal is not None:
            return PutResult(refusal)
        self._note_appended(batch.topic, len(records), len(encoded.data), store_timestamp)
        host, first = batch.store_host or self._store_host, offsets[0]
        ends = (*(offset - first for offset in offsets[1:]), offsets[-1] - first + len(records[-1]))
        return PutResult(PutStatus.PUT_OK, first, ends[-1], number, store_timestamp, len(records), host, ends)

    def _fits(self, size_bytes: int) -> bool:
        return HEADER_BYTES + size_bytes + BLANK_BYTES_MIN <= self.log.file_bytes

    def _propose(self, records: Sequence[bytearray], key: QueueKey | None, number: int) -> PutStatus | None:
        """Append records as entries, and reserve their numbers; return the refusal, or None.

        A write may fail after some entries of a batch. The member takes no more events then. Raises OSError if the
        write of the first entry fails; then nothing has changed.
        """
        begin = self._raft_log.end
        try:
            sent = self._member.propose([bytes(record) for record in records])
        except OSError as error:
            if self._raft_log.end == begin:
                raise
            self._fail(error)
            return PutStatus.OUTCOME_UNKNOWN
        if sent is None:
            return PutStatus.NOT_LEADER
        self._sent += sent
        if key is not None:
            self._queue_offsets.advance(key, number + len(records))
        put = AppendedPut(self._raft_log.end_position_of(self._raft_log.end), key, number)
        self.puts.add(put)
        self._own.put = put
        return None

    def _note_appended(self, topic: str, count: int, size_bytes: int, store_timestamp: int) -> None:
        self._last_store_timestamp = store_timestamp
        self._statistics.count_appended(topic, count, size_bytes)

    def _send_all(self) -> None:
        with self._put_lock:
            sent, self._sent = self._sent, []
        if sent:
            self._send(sent)


def _records_of(encoded: EncodedBatch, trailer_bytes: int) -> list[bytearray]:
    """Return the unplaced records of a batch, without their trailers."""
    begins = (0, *(int(end) for end in encoded.ends[:-1]))
    return [
        bytearray(encoded.data[begin : int(end) - trailer_bytes])
        for begin, end in zip(begins, encoded.ends, strict=True)
    ]


class RaftPutAnswers(PutAnswers):
    """Answers puts when their entries are committed.

    Every put waits, whatever its properties say.
    """

    def __init__(self, *, commit_log: RaftCommitLog, **settings: Any) -> None:
        super().__init__(**settings)
        self._commit_log = commit_log

    def settle(
        self, result: PutResult, *, waits: bool, on_answer: Callable[[PutResult], None]
    ) -> PutResult | PendingAnswer:
        """Return the pending answer of an appended put."""
        put = self._commit_log.appended()
        pending = PendingAnswer(
            result,
            deadline_ms=self._time_outs_runner.now_ms() + self._slave_timeout_ms,
            timeout_status=PutStatus.OUTCOME_UNKNOWN,
            on_answer=on_answer,
        )
        status = self._commit_log.attach(put, pending)
        if status is not None:
            pending.answer(status)
        else:
            self._watch(pending, self._slave_timeout_ms)
        return pending
