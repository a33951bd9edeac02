"""Records that a slave receives from its master, checked and then appended to its log.

1. Only whole records are appended. A log of a slave ends at a record or at the end of a file, at any time.
2. Each record is checked as recovery checks it: position, lengths, checksums. A blank is appended with the rest of its
   file.
3. A refusal has changed nothing.

RocketMQ appends whatever arrives and ignores a failed append (R2, R11 and R12 of docs/replication/design.md).
Source: `DefaultMessageStore.appendToCommitLog`, `CommitLog.appendData`.
"""

import struct
from collections.abc import Callable
from typing import NamedTuple

from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.scan import LogWalker, RecordChecker
from tornpage.impl.message import codec
from tornpage.impl.service.lifecycle import Lifecycle

__all__ = ["Received", "ReceivedRecords"]

_HEAD = struct.Struct(">ii")
_REST_BYTES_MAX = 64 << 10
_EMPTY_FILE = "the only file of the log is empty and begins at another offset"


class Received(NamedTuple):
    """The answer to received bytes: how many were appended, and why others were refused.

    Without a refusal the bytes left are the begin of a record that has not arrived completely. With `must_empty` the
    only file of the log is empty and begins at another offset. It has to be removed first.
    """

    appended_bytes: int
    refusal: str | None
    must_empty: bool = False


class ReceivedRecords:
    """Appends what a master sends. Call `written` with the end offset of each append."""

    def __init__(
        self,
        log: MappedFileQueue,
        commit_log: CommitLog,
        lifecycle: Lifecycle,
        *,
        role: BrokerRole,
        record_bytes_max: int,
        written: Callable[[int], None],
        check: RecordChecker,
        walk: LogWalker,
    ) -> None:
        self._log = log
        self._commit_log = commit_log
        self._lifecycle = lifecycle
        self._is_slave = role is BrokerRole.SLAVE
        self._unit_bytes_max = min(log.file_bytes, record_bytes_max + _REST_BYTES_MAX)
        self._written = written
        self._check = check
        self._walk = walk

    def append(self, offset: int, data: memoryview) -> Received:
        """Append the whole records at the begin of `data`."""
        refusal = self._refusal(offset)
        if refusal is not None:
            return Received(0, refusal, must_empty=refusal is _EMPTY_FILE)
        appended_bytes = 0
        while refusal is None and appended_bytes < len(data):
            rest, ends_file = data[appended_bytes:], False
            size_bytes, last = self._whole_records(offset + appended_bytes, rest)
            if not size_bytes:
                size_bytes, ends_file, refusal = self._next_unit(offset + appended_bytes, rest)
            if not size_bytes:
                break
            unit = rest[:size_bytes]
            store_timestamp = 0 if ends_file else codec.store_timestamp_of_record(unit, last)
            try:
                self._commit_log.append_received(
                    bytearray(unit),
                    offset=offset + appended_bytes,
                    store_timestamp=store_timestamp,
                    ends_file=ends_file,
                )
            except OSError as error:
                refusal = f"append at {offset + appended_bytes} failed: {error.strerror or error}"
                break
            appended_bytes += size_bytes
        if appended_bytes:
            self._written(offset + appended_bytes)
        return Received(appended_bytes, refusal)

    def _refusal(self, offset: int) -> str | None:
        """Return why nothing can be appended at an offset, or None."""
        if not self._is_slave:
            return "this store is not a slave"
        if self._lifecycle.shut or self._lifecycle.read_only_reason is not None:
            return f"the store is read-only: {self._lifecycle.read_only_reason}"
        end = self._log.max_offset
        if self._log.mapped and offset != end == self._log.min_offset:
            return _EMPTY_FILE
        if self._log.mapped and offset != end:
            return f"bytes for offset {offset}, but the log ends at {end}"
        if not self._log.mapped and offset % self._log.file_bytes:
            return f"an empty log cannot begin at {offset}, inside a file of {self._log.file_bytes} bytes"
        return None

    def _whole_records(self, offset: int, data: memoryview) -> tuple[int, int]:
        """Return the size of the valid whole records at the begin, and where the last begins."""
        room = self._log.file_bytes - offset % self._log.file_bytes
        some = data[: self._unit_bytes_max]
        end, _ = self._walk(some, 0, file_bytes=room, base_offset=offset, check=self._check)
        if end > len(some):
            return 0, 0
        last = following = 0
        while following < end:
            last, following = following, following + codec.size_of_record(some, following)
        return end, last

    def _next_unit(self, offset: int, data: memoryview) -> tuple[int, bool, str | None]:
        """Return the size of the next record or blank, whether it ends its file, and the refusal.

        The size is 0 without a whole one.
        """
        room = self._log.file_bytes - offset % self._log.file_bytes
        if len(data) < _HEAD.size:
            return 0, False, None
        total, magic = _HEAD.unpack_from(data)
        ends_file = magic == codec.BLANK_MAGIC and total == room
        if not ends_file and (magic != codec.MESSAGE_MAGIC or not 0 < total <= room - codec.BLANK_BYTES):
            return 0, False, f"no record begins at {offset}"
        if total > self._unit_bytes_max:
            return 0, False, f"the record at {offset} has {total} bytes, more than {self._unit_bytes_max}"
        if len(data) < total:
            return 0, False, None
        if ends_file:
            return total, True, None
        size, reason = self._check(data[:total], 0, limit=room, offset=offset)
        return (size, False, None) if size else (0, False, f"{reason} at {offset}")
