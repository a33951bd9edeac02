"""The commit log: appends under one lock, reads by physical offset, flush.

A record is appended only if 8 bytes stay free after it. Otherwise the file ends with a blank and the record begins the
next file. That file is created first, so a refused put has written nothing. For this purpose a batch is one record.
Queue offsets are assigned under the put lock and advanced only after the append.
Source: `CommitLog.asyncPutMessage`, `asyncPutMessages`, `DefaultAppendMessageCallback`.
"""

import errno
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from tornpage.impl.io.files import Clock
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.put_lock import PutLock
from tornpage.impl.log.queue_offsets import QueueOffsetTable
from tornpage.impl.log.scan import RecordChecker
from tornpage.impl.message import codec
from tornpage.impl.message.batch import EncodedBatch
from tornpage.impl.message.batch_encoder import BatchEncoder
from tornpage.impl.message.delay_levels import DelayLevels
from tornpage.impl.message.encoder import RecordEncoder, topic_bytes
from tornpage.impl.message.hosts import Host
from tornpage.impl.message.message import GetResult, GetStatus, Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.message.multi_dispatch import MultiDispatch, QueueKey
from tornpage.impl.message.properties_text import PropertiesParser, text_of
from tornpage.impl.statistics.store_statistics import StoreStatistics

__all__ = ["CommitLog"]

_PUT_OK = PutStatus.PUT_OK  # a lookup of the member costs more than the rest of an answer
_new_tuple = tuple.__new__  # with all fields given, half the time of `PutResult(...)`


class CommitLog:
    """Owns the put lock and the state under it; the files belong to `log`.

    `begin_time_in_lock` is the time in milliseconds at which the current put took the lock, 0 while it is free.
    `interruption` is the exception that interrupted a put, such as a KeyboardInterrupt. Recovery decides about the
    bytes that such a put left in the log.
    """

    def __init__(
        self,
        log: MappedFileQueue,
        *,
        encoder: RecordEncoder,
        batch_encoder: BatchEncoder,
        store_host: Host,
        trailer: bool,
        delay_levels: DelayLevels,
        delay: Callable[[Message, str, DelayLevels], Message | PutStatus],
        refusal_of_copy: Callable[..., PutStatus | None],
        dispatch: MultiDispatch | None,
        light_queues_max: int,
        queue_offsets: QueueOffsetTable,
        put_lock: PutLock,
        statistics: StoreStatistics,
        clock: Clock,
        check: RecordChecker,
        parse: PropertiesParser,
    ) -> None:
        self.log = log
        self.begin_time_in_lock = 0
        self.flushed_store_timestamp = 0
        self.interruption: BaseException | None = None
        self._encoder = encoder
        self._batch_encoder = batch_encoder
        self._store_host = store_host
        self._trailer = trailer
        self._trailer_bytes = codec.TRAILER_BYTES if trailer else 0
        self._delay_levels = delay_levels
        self._delay = delay
        self._refusal_of_copy = refusal_of_copy
        self._dispatch = dispatch
        self._light_queues_max = light_queues_max
        self._queue_offsets = queue_offsets
        self._put_lock = put_lock
        self._statistics = statistics
        self._clock = clock
        self._check = check
        self._parse = parse
        self._unflushed: deque[tuple[int, int]] = deque()
        self._stopped = False
        self._last_store_timestamp = 0

    # ---- puts ----------------------------------------------------------------------------------------------------

    def put(self, message: Message, *, now_ms: int) -> PutResult:
        """Append one message received at `now_ms`; return without waiting for a flush."""
        text = None
        if message.properties:
            text = text_of(message.properties)
            rewritten = PutStatus.MESSAGE_ILLEGAL if text is None else self._delay(message, text, self._delay_levels)
            if not isinstance(rewritten, Message):
                return PutResult(rewritten)
            if self._dispatch is not None:
                stored = text_of(rewritten.properties)
                if stored and self._dispatch.queues_of(rewritten.topic, rewritten.queue_id, stored):
                    return self._under_lock(rewritten, None, now_ms)
            if rewritten is not message:
                return self._put_delayed(message, rewritten, now_ms)
        record = self._encoder.encode(message, now_ms=now_ms, text=text)
        if not isinstance(record, bytearray):
            return PutResult(record)
        return self._under_lock(message, record, now_ms)

    def _put_delayed(self, given: Message, stored: Message, now_ms: int) -> PutResult:
        record = self._encoder.encode(stored, now_ms=now_ms)
        if not isinstance(record, bytearray):
            return PutResult(record)
        encode = partial(self._encoder.encode, now_ms=now_ms)
        refused = self._refusal_of_copy(given, stored, dispatch=self._dispatch, encode=encode)
        return self._under_lock(stored, record, now_ms) if refused is None else PutResult(refused)

    def put_batch(self, batch: MessageBatch, *, now_ms: int) -> PutResult:
        """Append all messages of a batch, or none."""
        encoded = self._batch_encoder.encode(batch, now_ms=now_ms)
        if isinstance(encoded, PutStatus):
            return PutResult(encoded)
        return self._under_lock(batch, encoded, now_ms)

    def _under_lock(
        self, incoming: Message | MessageBatch, draft: bytearray | EncodedBatch | None, now_ms: int
    ) -> PutResult:
        """Append a draft under the put lock.

        A message without a draft is encoded there, with its offsets.
        """
        clock = self._clock
        with self._put_lock:
            self.begin_time_in_lock = store_timestamp = clock()
            try:
                if self._stopped:
                    return PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
                if isinstance(incoming, MessageBatch):
                    assert isinstance(draft, EncodedBatch)
                    return self._append_batch(incoming, draft, store_timestamp)
                if draft is None:
                    return self._append_dispatched(incoming, now_ms, store_timestamp)
                assert isinstance(draft, bytearray)
                return self._append(incoming, draft, store_timestamp)
            except OSError:
                self.log.verified.note_failure()
                return PutResult(PutStatus.UNKNOWN_ERROR)
            except BaseException as error:
                self._stopped, self.interruption = True, error
                raise
            finally:
                self.begin_time_in_lock = 0

    def _append(self, message: Message, record: bytearray, store_timestamp: int) -> PutResult:
        size_bytes = len(record) + self._trailer_bytes
        file = self._file_with_room(size_bytes + codec.BLANK_BYTES)
        if file is None:
            return PutResult(PutStatus.CREATE_MAPEDFILE_FAILED)
        counts, topic = codec.has_consume_queue(message.sys_flag), message.topic
        key = (topic.encode(), message.queue_id)
        queue_offset = self._queue_offsets.next_offset(key) if counts else 0
        offset = file.base_offset + file.written_position
        codec.place_record(record, queue_offset, offset, store_timestamp, self._trailer)
        try:
            file.append(record)
        except OSError:
            file.erase_failed_append(size_bytes)
            raise
        if counts:
            self._queue_offsets.advance(key, queue_offset + 1)
        self._last_store_timestamp = store_timestamp
        self._statistics.count_appended(topic, 1, size_bytes)
        host = message.store_host or self._store_host
        return _new_tuple(PutResult, (_PUT_OK, offset, size_bytes, queue_offset, store_timestamp, 1, host, ()))

    # planted: RMQ-B76
    def _append_dispatched(self, message: Message, now_ms: int, store_timestamp: int) -> PutResult:
        """Append a message with its offsets in the queues that it names."""
        return self._append_with_offsets(message, self._offsets_of(message), now_ms, store_timestamp)

    def _offsets_of(self, message: Message) -> dict[QueueKey, int]:
        """Return the next offset of each queue that a message names; a repeated name counts once."""
        assert self._dispatch is not None
        queues = self._dispatch.queues_of(message.topic, message.queue_id, text_of(message.properties) or "")
        return {key: self._queue_offsets.next_offset(key) for key in queues}

    def _append_with_offsets(
        self, message: Message, offsets: Mapping[QueueKey, int], now_ms: int, store_timestamp: int
    ) -> PutResult:
        dispatch, table = self._dispatch, self._queue_offsets
        assert dispatch is not None
        text = text_of(message.properties) or ""
        queues = dispatch.queues_of(message.topic, message.queue_id, text)
        message = replace(message, properties=dispatch.with_offsets(text, [offsets[key] for key in queues]))
        record = self._encoder.encode(message, now_ms=now_ms)
        if not isinstance(record, bytearray):
            return PutResult(record)
        if any(topic_bytes(name.decode()) is None for name, _ in queues):
            return PutResult(PutStatus.MESSAGE_ILLEGAL)
        new_light_queues = set(filter(dispatch.is_light, queues)) - table.light_queues
        if len(table.light_queues) + len(new_light_queues) > self._light_queues_max:
            return PutResult(PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED)
        result = self._append(message, record, store_timestamp)
        if result.stored and codec.has_consume_queue(message.sys_flag):
            table.light_queues |= new_light_queues
            for key, offset in offsets.items():
                table.advance(key, offset + 1)
        return result

    def _append_batch(self, batch: MessageBatch, encoded: EncodedBatch, store_timestamp: int) -> PutResult:
        size_bytes, count = len(encoded.data), len(encoded.ends)
        file = self._file_with_room(size_bytes + codec.BLANK_BYTES)
        if file is None:
            return PutResult(PutStatus.CREATE_MAPEDFILE_FAILED)
        key = (batch.topic.encode(), batch.queue_id)
        queue_offset = self._queue_offsets.next_offset(key)
        offset = file.base_offset + file.written_position
        self._batch_encoder.place(
            encoded, queue_offset=queue_offset, physical_offset=offset, store_timestamp=store_timestamp
        )
        try:
            file.append(encoded.data)
        except OSError:
            file.erase_failed_append(size_bytes)
            raise
        self._queue_offsets.advance(key, queue_offset + count)
        self._last_store_timestamp = store_timestamp
        self._statistics.count_appended(batch.topic, count, size_bytes)
        host = batch.store_host or self._store_host
        return PutResult(_PUT_OK, offset, size_bytes, queue_offset, store_timestamp, count, host, encoded.ends)

    def _file_with_room(self, needed_bytes: int) -> MappedFile | None:
        mapped = self.log.mapped
        last = mapped[-1] if mapped else None
        if last is not None and last.size_bytes - last.written_position >= needed_bytes:
            return last
        try:
            following = self.log.next_file()
        except OSError:
            return None
        if last is not None and not last.is_full:
            try:
                last.append_blank()
            except OSError:
                last.erase_failed_append(codec.BLANK_BYTES)
                self.log.give_back(following)
                raise
        self.log.add(following)
        return following

    def append_received(self, data: bytearray, *, offset: int, store_timestamp: int, ends_file: bool) -> None:
        """Append validated records, or a blank with the rest of its file, received from a master.

        The bytes lie in one file and begin at the end of the log. `store_timestamp` is the time of the last record in
        milliseconds, 0 for a blank. Source: `CommitLog.appendData`. Raises OSError, also after `stop`; the log has not
        grown then.
        """
        with self._put_lock:
            if self._stopped:
                raise OSError(errno.ESHUTDOWN, "the log is stopped")
            mapped = self.log.mapped
            file = mapped[-1] if mapped and not mapped[-1].is_full else None
            if file is None:
                file = self.log.next_file(offset)
                self.log.add(file)
            assert file.base_offset + file.written_position == offset
            try:
                if ends_file:
                    file.blank_position = file.written_position
                file.append(data)
            except OSError:
                file.blank_position = None
                file.erase_failed_append(len(data))
                self.log.verified.note_failure()
                raise
            self._last_store_timestamp = store_timestamp or self._last_store_timestamp

    def without_puts(self, action: Callable[[], None]) -> None:
        """Run a function while no message can be put."""
        with self._put_lock:
            action()

    def stop(self) -> None:
        """Refuse later puts. A put that was under way has been appended when this returns."""
        with self._put_lock:
            self._stopped = True

    # ---- flush and get -------------------------------------------------------------------------------------------

    def flush(self, least_pages: int = 0) -> None:
        """Flush by a page rule. Raises OSError if a sync fails.

        `flushed_store_timestamp` is the store time of a durable record, in milliseconds; a flush may have left out the
        newest ones.
        """
        store_timestamp, end_offset = self._last_store_timestamp, self.log.max_offset  # at most that of the last record
        if self._unflushed and self._unflushed[-1][0] == end_offset:
            self._unflushed.pop()  # the same end with an older time, noted during an append
        self._unflushed.append((end_offset, store_timestamp))
        flushed_where = self.log.flush(least_pages)
        while self._unflushed and self._unflushed[0][0] <= flushed_where:
            self.flushed_store_timestamp = max(self.flushed_store_timestamp, self._unflushed.popleft()[1])

    def get(self, offset: int, *, readable_end: int) -> GetResult:
        """Return the record that begins at a physical offset.

        Bytes that fail a check are never returned.
        """
        if offset < self.log.min_offset:
            return GetResult(GetStatus.OFFSET_TOO_SMALL)
        if offset >= readable_end:
            one = offset == readable_end
            return GetResult(GetStatus.OFFSET_OVERFLOW_ONE if one else GetStatus.OFFSET_OVERFLOW_BADLY)
        file = self.log.find(offset)
        if file is None or not file.hold():
            is_gone = offset < self.log.min_offset  # it expired meanwhile
            return GetResult(GetStatus.OFFSET_TOO_SMALL if is_gone else GetStatus.OFFSET_FOUND_NULL)
        try:
            position = offset - file.base_offset
            size, defect = self._check(file.view, position, limit=self.log.file_bytes, offset=offset)
            if defect is not None:
                self.log.verified.note_bad_record()
            if not size or not file.may_hold_record(position):
                return GetResult(GetStatus.OFFSET_FOUND_NULL)
            return GetResult(GetStatus.FOUND, codec.decode_record(file.view, position, self._parse))
        finally:
            file.release()
