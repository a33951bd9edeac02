"""The commit log: puts under one lock, gets by physical offset, flush.

A record is appended only if 8 bytes stay free behind it; else the file ends with a blank and the record begins the
next file, which is created first, so that a refused put has written nothing. Source: `CommitLog.asyncPutMessage`.
"""

import threading
from dataclasses import replace

from impl import codec
from impl.config import MessageStoreConfig
from impl.files import Clock
from impl.mapped_file import MappedFile
from impl.mapped_file_queue import MappedFileQueue
from impl.message import GetResult, GetStatus, Message, PutResult, PutStatus
from impl.policy import FlushPolicy
from impl.scan import RecordChecker

__all__ = ["CommitLog"]


class CommitLog:
    """Owns the put lock and the queue offset table; the files belong to `log`."""

    def __init__(
        self,
        log: MappedFileQueue,
        *,
        config: MessageStoreConfig,
        clock: Clock,
        check: RecordChecker,
        queue_offsets: dict[tuple[bytes, int], int],
    ) -> None:
        self.log = log
        self._config = config
        self._flush_policy = FlushPolicy(config.flush_disk_type)
        self._trailer = config.record_checksum == "record"
        self._clock = clock
        self._check = check
        self._put_lock = threading.Lock()
        self._queue_offsets = queue_offsets
        self._stopped = False
        self._last_store_timestamp = 0
        self.flushed_store_timestamp = 0

    def put(self, message: Message) -> PutResult:
        """Append one message; answer when the flush policy allows it (docs/statuses.md)."""
        record = codec.encode_record(
            message, now_ms=self._clock(), store_host=self._config.store_host, trailer=self._trailer
        )
        if isinstance(record, PutStatus):
            return PutResult(record)
        needed_bytes = len(record) + codec.BLANK_BYTES
        if len(record) > self._config.max_message_size or needed_bytes > self.log.file_bytes:
            return PutResult(PutStatus.MESSAGE_ILLEGAL)
        with self._put_lock:
            if self._stopped:
                return PutResult(PutStatus.SERVICE_NOT_AVAILABLE)
            file = self._file_with_room(needed_bytes)
            if file is None:
                return PutResult(PutStatus.CREATE_MAPEDFILE_FAILED)
            result = self._append(file, message, record)
        if self._flush_policy.answers_after_flush(wait_store_msg_ok=codec.wait_store_msg_ok(message.properties)):
            return self._answer_after_flush(result)
        return result

    def _file_with_room(self, needed_bytes: int) -> MappedFile | None:
        last = self.log.mapped[-1] if self.log.mapped else None
        if last is not None and last.size_bytes - last.written_position >= needed_bytes:
            return last
        try:
            following = self.log.append_file()
        except OSError:
            return None
        if last is not None and last.written_position < last.size_bytes:
            last.append_blank()
        return following

    def _append(self, file: MappedFile, message: Message, record: bytearray) -> PutResult:
        store_timestamp = self._clock()
        key = (message.topic.encode(), message.queue_id)
        queue_offset = self._queue_offsets.setdefault(key, 0) if codec.has_consume_queue(message.sys_flag) else 0
        offset = file.base_offset + file.written_position
        codec.place_record(
            record,
            queue_offset=queue_offset,
            physical_offset=offset,
            store_timestamp=store_timestamp,
            trailer=self._trailer,
        )
        file.append(record)
        if codec.has_consume_queue(message.sys_flag):
            self._queue_offsets[key] = queue_offset + 1
        self._last_store_timestamp = store_timestamp
        host = message.store_host or self._config.store_host
        return PutResult(
            PutStatus.PUT_OK, offset, len(record), queue_offset, store_timestamp, codec.message_id(host, offset)
        )

    def _answer_after_flush(self, result: PutResult) -> PutResult:
        try:
            self.flush()
        except OSError:
            return replace(result, status=PutStatus.FLUSH_DISK_TIMEOUT)
        return result

    def stop(self) -> None:
        """Refuse puts from here on; one that is under way has been appended when this returns."""
        with self._put_lock:
            self._stopped = True

    def flush(self) -> None:
        """Make everything put so far durable. Raises the OSError of a failed sync."""
        store_timestamp = self._last_store_timestamp  # before the sync: later records are not covered by it
        self.log.flush()
        self.flushed_store_timestamp = max(self.flushed_store_timestamp, store_timestamp)

    def get(self, offset: int, *, readable_end: int) -> GetResult:
        """Return the record that begins at a physical offset; bytes that fail a check are never served."""
        if offset < self.log.min_offset:
            return GetResult(GetStatus.OFFSET_TOO_SMALL)
        if offset >= readable_end:
            one = offset == readable_end
            return GetResult(GetStatus.OFFSET_OVERFLOW_ONE if one else GetStatus.OFFSET_OVERFLOW_BADLY)
        file = self.log.find(offset)
        if file is None or not file.hold():
            return GetResult(GetStatus.OFFSET_FOUND_NULL)
        try:
            position = offset - file.base_offset
            size, _ = self._check(file.view, position, limit=self.log.file_bytes, offset=offset)
            if not size or not file.may_hold_record(position):
                return GetResult(GetStatus.OFFSET_FOUND_NULL)
            return GetResult(GetStatus.FOUND, codec.decode_record(file.view, position))
        finally:
            file.release()
