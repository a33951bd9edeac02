"""Put messages and batches at their limits into a small log, beside a list (contract 8).

The reference is a list of files, each with its records, and a table of numbers. What is stored of a message and why it
is refused are functions of the model. The rest follows these rules:

1. A record lies in one file and leaves room for a blank there. Otherwise the file ends with a blank, and the record
   begins the next one. The records of a batch follow each other in one file.
2. A message takes the next number of its queue. The messages of a batch take numbers in a row. A prepared or
   rolled-back transaction takes none and has number 0. A message takes a number of each queue that it names, one for
   all namings of a queue.
3. A log without room for the record answers CREATE_MAPEDFILE_FAILED. A blank or a record that cannot be written answers
   UNKNOWN_ERROR. Neither takes a number or leaves a byte of the record. What reads know of verified records is taken
   back.
4. An answer names place, length, number, time, host and the end of each record. Statistics count stored messages only.
5. The put lock has a begin time while bytes are written, and none afterwards.
6. The store time of a flush is the greatest one of the last records whose end was noted by a flush and is durable.
7. After a stop, or after an exception that ends a put in the middle, each put is refused with SERVICE_NOT_AVAILABLE. A
   message that is refused anyway may get its own status.
"""

import errno
import random
import socket
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.log_directories import LogDirectories
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.queue_offsets import QueueOffsetTable
from tornpage.impl.log.verified_records import VerifiedRecords
from tornpage.impl.message.message import Message, MessageBatch, PutResult
from tornpage.impl.message.multi_dispatch import MultiDispatch
from tornpage.impl.parts import Parts
from tornpage.impl.put.put_path import commit_log_of
from tornpage.impl.service.runner import ThreadRunner
from tornpage.model import batch as batches
from tornpage.model import message as model
from tornpage.model.admission import as_given, as_stored, is_topic
from tornpage.model.delay import copy_refusal, refusal, rewritten
from tornpage.model.dispatch import named_queues
from tornpage.model.properties import changed, property_of, stored_bytes, text_of
from tornpage.model.state import Layout
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.lockstep.functions.comparing import is_value
from tornpage.properties.lockstep.parts.part_disk import PartDisk, tried

__all__ = ["check"]

_PUTS = 30
_LOG = "/part/log"
_MAGIC, _BLANK_MAGIC, _TRAILER = 0xDAA320A7, 0xCBD43194, b"__CRC32#\x01"
_BLANK_BYTES = 8
_SIZES = ((2_048, 900), (2_048, 9_000), (1_024, 1_016), (40_000, 39_000))
"""Bytes of a file, and of the longest record."""
_HOST = ("198.51.100.3", 10_911)
_TOPICS = ("T", "T", "T", "U", "té", "%RETRY%g", model.SCHEDULE_TOPIC, "RMQ_SYS_TRANS_HALF_TOPIC", "x" * 127)
_BAD_TOPICS = ("", ".", "..", "a/b", "a\0b", "x" * 128, "\ud800")
_HOSTS = (("127.0.0.1", 0), ("::1", 7), ("255.0.255.1", (1 << 31) - 1), ("fe80:1::ff", -(1 << 31)))
_BAD_HOSTS = (("localhost", 1), ("127.0.0.1", 1 << 31), ("::1", -(1 << 31) - 1))
_NAMES = (
    "INNER_MULTI_DISPATCH\x01T", "INNER_MULTI_DISPATCH\x01a,b,a", "INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b",
    "INNER_MULTI_DISPATCH\x01%LMQ%c", "INNER_MULTI_DISPATCH\x01 ", "INNER_MULTI_DISPATCH\x01a,,b",
    "INNER_MULTI_DISPATCH\x01a/b",
)  # fmt: skip
_PLAIN = (
    "KEYS\x01k", "TAGS\x01t", "WAIT\x01true", "WAIT\x01no", "UNIQ_KEY\x01u", "REAL_TOPIC\x01U", "REAL_QID\x017",
    "x" * 20, "a\x01b\x01c", "", "é\x01é", "DELAY\x010", "DELAY\x01-1", "__CRC32#\x010123456789",
)  # fmt: skip
_PAIRS = (*_PLAIN, *_PLAIN, *_PLAIN, "DELAY\x011", "DELAY\x012", "DELAY\x0199", "DELAY\x01x", "n\0\x01v", *_NAMES)
_RARE = ("s\x01\ud800", "n\0\x01v", "DELAY\x01x")
_LONG = (32_767, 32_768, 32_746, 32_747, 32_748)
"""Lengths of properties, at the limits with and without a trailer."""
_QUEUE_IDS = (0, 0, 0, 1, 3, (1 << 31) - 1)
_BAD_QUEUE_IDS = (-1, 1 << 31)
_INT32, _INT64 = ((1 << 31) - 1, -(1 << 31)), ((1 << 63) - 1, -(1 << 63))
_BAD_INT32, _BAD_INT64 = (1 << 31, -(1 << 31) - 1), (1 << 63, -(1 << 63) - 1)
_FLAGS = (0, 0, 0, 4, 8, 12, 0x30, 1 << 20)
_Given = model.Message | model.Batch


def check(rng: random.Random) -> None:
    """Run a program. Raises GuaranteeBroken."""
    _Program(rng).run()


# ---- stand-ins -------------------------------------------------------------------------------------------------------


class _Disk(PartDisk):
    """A part's disk on which the next write of one kind may fail.

    Its bytes are in the page cache then.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failing_mark = ""
        self.error: BaseException = OSError()
        self.passing: Callable[[], None] = lambda: None

    def mark(self, label: str) -> None:
        """Pass a point of the store, or fail there."""
        if label in ("record", "blank"):
            self.passing()
        if label == self.failing_mark:
            self.failing_mark = ""
            self.failed += 1
            raise self.error


class _Verified(VerifiedRecords):
    """Counts the failures that take back what reads know."""

    failures = 0

    def note_failure(self) -> None:
        """Count it."""
        self.failures += 1
        super().note_failure()


@dataclass
class _File:
    """A file of the reference: its bytes, and how far they are written."""

    content: bytearray
    written: int = 0


@dataclass
class _Appended:
    """A record of the reference, and where it lies."""

    offset: int
    content: bytes
    number: int
    message: model.Message


_Answer = tuple[str, int, int, int, int, int, tuple[str, int], tuple[int, ...]]
"""The fields of a `PutResult`, with the name of its status."""


def _refused(status: str) -> _Answer:
    return status, -1, -1, -1, -1, 0, ("", 0), ()


def _packed(host: tuple[str, int]) -> bytes:
    family = socket.AF_INET6 if ":" in host[0] else socket.AF_INET
    return socket.inet_pton(family, host[0]) + struct.pack(">i", host[1])


def _record(stored: model.Message, *, offset: int, number: int, time: int, trailer: bool) -> bytes:
    """Return the record of a message, built from docs/format.md, section 3."""
    born, host = _packed(stored.born_host), _packed(stored.store_host)
    text = stored_bytes(stored.properties, trailer=trailer, errors="surrogateescape")
    body, topic = stored.body or b"", stored.topic.encode()
    flags = stored.sys_flag & ~0x30 | 0x10 * (len(born) == 20) | 0x20 * (len(host) == 20)
    size = model.record_bytes(replace(stored, properties=""), trailer=trailer) + len(text)
    record = b"".join(
        (
            struct.pack(">iIiii", size, _MAGIC, zlib.crc32(body) & 0x7FFFFFFF, stored.queue_id, stored.flag),
            struct.pack(">qqiq", number, offset, flags, stored.born_timestamp),
            born,
            struct.pack(">q", time),
            host,
            struct.pack(">iqi", stored.reconsume_times, stored.prepared_transaction_offset, len(body)),
            body,
            bytes((len(topic),)),
            topic,
            struct.pack(">h", len(text) + 20 * trailer),
            text,
        )
    )
    if trailer:
        record += _TRAILER + f"{zlib.crc32(record) & 0x7FFFFFFF:010d}"[::-1].encode() + b"\x02"
    is_value("the length of a record of the reference", size, len(record))
    return record


class _Program:
    """One program: a log, its drawn settings, and the reference."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        file_bytes, record_bytes_max = rng.choice(_SIZES)
        dispatches, has_light = rng.random() < 0.6, rng.random() < 0.6
        self._layout = Layout(
            file_bytes=file_bytes, record_bytes_max=record_bytes_max, trailer=rng.random() < 0.5, sync_flush=False,
            files_max=1 << 30, multi_dispatch=dispatches, light_queues=has_light,
            light_queues_max=rng.choice((0, 1, 2, 9)), delay_levels=2,
        )  # fmt: skip
        self._disk, self._now = _Disk(), 5_000
        self._disk.passing = self._under_way
        self._files = list[_File]()
        self._next = Counter[tuple[str, int]]()
        self._light = set[str]()
        self._last_ms = self._flushed_ms = 0
        self._noted = list[tuple[int, int]]()
        self._counted = list[tuple[str, int, int]]()
        self._found_counted = list[tuple[str, int, int]]()
        self._failures = 0
        self._verified = _Verified("once")
        self._stopped = False
        self._log, self._table, self._puts = self._opened(dispatches=dispatches, has_light=has_light)

    def _opened(self, *, dispatches: bool, has_light: bool) -> tuple[MappedFileQueue, QueueOffsetTable, CommitLog]:
        layout, policy = self._layout, AllocationPolicy()
        directories = LogDirectories(
            self._disk, (_LOG,), read_only=(), file_bytes=layout.file_bytes, clean_forcibly_ratio=0.85
        )
        self._disk.make_directory(_LOG)
        maker = LogFileMaker(
            self._disk, directories, file_bytes=layout.file_bytes, mapped_file=MappedFile, policy=policy,
            flush_disk_type=FlushDiskType.ASYNC_FLUSH,
        )  # fmt: skip
        allocation = AllocateMappedFiles(maker, policy=policy, runner=ThreadRunner)
        self._allocation = allocation
        log = MappedFileQueue(maker, allocation, verified=self._verified)
        dispatch = MultiDispatch(light_queues=has_light) if dispatches else None
        table = QueueOffsetTable(dispatch)
        config = MessageStoreConfig(
            mapped_file_size_commit_log=layout.file_bytes, max_message_size=layout.record_bytes_max,
            record_checksum="record" if layout.trailer else "body", enable_multi_dispatch=dispatches,
            enable_lmq=has_light, max_lmq_consume_queue_num=layout.light_queues_max, store_host=_HOST,
            message_delay_level="1s 5s",
        )  # fmt: skip
        held: Any = SimpleNamespace(log=log, dispatch=dispatch, queue_offsets=table)
        statistics: Any = SimpleNamespace(count_appended=lambda *given: self._found_counted.append(given))
        return log, table, commit_log_of(held, config, Parts(), statistics=statistics, clock=lambda: self._now)

    def _under_way(self) -> None:
        """Judge the begin time of the lock while bytes are written."""
        is_value("the begin time of the put lock during a put", self._now, self._puts.begin_time_in_lock)

    # ---- what is put ---------------------------------------------------------------------------------------------

    def _drawn(self, usual: Sequence[Any], wrong: Sequence[Any]) -> Any:
        """Return a usual value, or rarely a wrong one."""
        return self._rng.choice(wrong if self._rng.random() < 0.02 else usual)

    def _properties(self, pairs: Sequence[str] = _PAIRS) -> dict[str, str] | str:
        rng = self._rng
        if rng.random() < 0.05:
            return "p\x01" + "v" * (rng.choice(_LONG) - 2 - rng.choice((0, 1))) + rng.choice(("", "\x02"))
        pieces = [self._drawn(pairs, _RARE) for _ in range(rng.choice((0, 0, 1, 2, 4)))]
        if pairs is _PAIRS and self._layout.multi_dispatch and rng.random() < 0.4:
            pieces.append(rng.choice(_NAMES))
        text = "\x02".join(pieces) + rng.choice(("", "\x02"))
        if rng.random() < 0.7:
            return text if rng.random() < 0.9 else text + "__CRC32#\x01" + "0" * rng.choice((10, 11))
        return {name: value for name, _, value in (each.partition("\x01") for each in pieces)}

    def _message(self) -> model.Message:
        rng = self._rng
        return model.Message(
            topic=self._drawn(_TOPICS, _BAD_TOPICS),
            body=rng.choice((None, b"", b"b")),
            queue_id=self._drawn(_QUEUE_IDS, _BAD_QUEUE_IDS),
            properties=self._properties(),
            flag=self._drawn((0, 5, *_INT32), _BAD_INT32),
            sys_flag=self._drawn(_FLAGS, _BAD_INT32),
            born_timestamp=self._drawn((self._now, 7, *_INT64), _BAD_INT64),
            born_host=self._drawn(_HOSTS, _BAD_HOSTS),
            store_host=self._drawn((_HOST, *_HOSTS), _BAD_HOSTS),
            reconsume_times=self._drawn((0, 3, *_INT32), _BAD_INT32),
            prepared_transaction_offset=self._drawn((0, 9, *_INT64), _BAD_INT64),
        )

    def _batch(self) -> model.Batch:
        rng, common = self._rng, self._message()
        pairs = _PAIRS if rng.random() < 0.2 else _PLAIN
        members = [
            (rng.choice((0, 9, *_INT32)), rng.randbytes(rng.choice((0, 1, 40))), _as_bytes(self._properties(pairs)))
            for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))
        ]
        body = bytearray(b"".join(map(_member, members)))
        if body and rng.random() < 0.15:  # a field of the first member that is not right
            at, change = rng.choice((0, 16, 20 + len(members[0][1]))), rng.choice((-1, 1, 1 << 14))
            form = ">h" if at >= 20 else ">i"
            (number,) = struct.unpack_from(form, body, at)
            struct.pack_into(form, body, at, max(-(1 << 15), min(number + change, (1 << 15) - 1)))
        if rng.random() < 0.1:
            body = bytearray(rng.choice((body[:-1], body + b"x", body + bytes(22))))
        return model.Batch(
            topic=common.topic, body=None if rng.random() < 0.05 else bytes(body), queue_id=common.queue_id,
            properties=self._properties(pairs), sys_flag=self._drawn((0, 0x30, 1 << 20), (4, 8, 12, 1 << 31)),
            born_timestamp=common.born_timestamp, born_host=common.born_host, store_host=common.store_host,
            reconsume_times=common.reconsume_times,
        )  # fmt: skip

    def _sized(self, given: model.Message) -> model.Message:
        """Return a message whose record has one of the lengths at a limit, if it can have it."""
        layout = self._layout
        stored = self._stored(given)
        if isinstance(stored, str) or self._rng.random() < 0.4:
            return given
        room = layout.file_bytes - self._files[-1].written if self._files else layout.file_bytes
        limits = (layout.record_bytes_max, layout.file_bytes - _BLANK_BYTES, room - _BLANK_BYTES, 300)
        wanted = self._rng.choice(limits) + self._rng.choice((-1, 0, 0, 1))
        more = wanted - model.record_bytes(stored[0], trailer=layout.trailer)
        return replace(given, body=self._rng.randbytes(more + len(given.body or b""))) if more > 0 else given

    # ---- what is expected ----------------------------------------------------------------------------------------

    def _stored(self, given: _Given) -> list[model.Message] | str:
        """Return the messages to store, or the status that refuses them."""
        layout = self._layout
        if isinstance(given, model.Batch):
            stored = batches.messages_of(given, layout=layout)
            return stored.value if isinstance(stored, model.PutStatus) else list(stored)
        refused = as_given(given) or refusal(given, layout=layout)
        if refused is not None:
            return refused.value
        placed = rewritten(given, layout=layout)
        queues = named_queues(placed, layout=layout)
        offsets = {"INNER_MULTI_QUEUE_OFFSET": ",".join(str(self._next[queue]) for queue in queues)}
        text = changed(placed.properties, offsets, less="WAIT") if queues else text_of(placed.properties)
        final = replace(placed, properties=text)
        refused = as_stored(given, final, layout=layout) or copy_refusal(given, placed, layout=layout)
        if refused is not None:
            return refused.value
        names = {name for name, _ in queues}
        if not all(map(is_topic, names)):
            return "MESSAGE_ILLEGAL"
        light = {name for name in names if layout.light_queues and name.startswith("%LMQ%")}
        if names and layout.light_queues and len(self._light | light) > layout.light_queues_max:
            return "LMQ_CONSUME_QUEUE_NUM_EXCEEDED"
        return [final]

    def _expected(self, given: _Given) -> _Answer:
        """Carry a put out in the reference; call it after the store."""
        layout = self._layout
        stored = self._stored(given)
        if isinstance(stored, str):
            return _refused(stored)
        if self._stopped:
            return _refused("SERVICE_NOT_AVAILABLE")
        sizes = [_size(message, layout.trailer) for message in stored]
        if not self._has_room(sum(sizes)):
            if self._refused_by == "file":
                self._failures += 2  # the failed call of the log, and
                return _refused("CREATE_MAPEDFILE_FAILED")
            if self._files and self._files[-1].written < layout.file_bytes:
                if self._refused_by == "blank":
                    self._failures += 1
                    return _refused("UNKNOWN_ERROR")
                self._end_file()
            self._files.append(_File(bytearray(layout.file_bytes)))
        if self._refused_by == "record":
            self._failures += 1
            return _refused("UNKNOWN_ERROR")
        return self._append(stored, sizes)

    _refused_by = ""

    def _has_room(self, size: int) -> bool:
        return bool(self._files) and self._files[-1].written + size + _BLANK_BYTES <= self._layout.file_bytes

    def _end_file(self) -> None:
        file, size = self._files[-1], self._layout.file_bytes
        struct.pack_into(">iI", file.content, file.written, size - file.written, _BLANK_MAGIC)
        file.written = size

    def _append(self, stored: Sequence[model.Message], sizes: Sequence[int]) -> _Answer:
        layout, first, file = self._layout, stored[0], self._files[-1]
        base = (len(self._files) - 1) * layout.file_bytes
        offset, key = base + file.written, (first.topic, first.queue_id)
        counts = first.counts_in_its_queue
        number = self._next[key] if counts else 0
        ends = list[int]()
        for index, (message, size) in enumerate(zip(stored, sizes, strict=True)):
            at = file.written
            file.content[at : at + size] = _record(
                message, offset=base + at, number=number + index, time=self._now, trailer=layout.trailer
            )
            file.written = at + size
            ends.append(file.written + base - offset)
        if counts:
            self._next[key] = number + len(stored)
            named = () if isinstance(self._given, model.Batch) else named_queues(first, layout=layout)
            taken = _numbers_in(first) if named else ()
            for queue, one in zip(named, taken, strict=True):
                self._next[queue] = one + 1
                if layout.light_queues and queue[0].startswith("%LMQ%"):
                    self._light.add(queue[0])
        self._last_ms = self._now
        self._counted.append((first.topic, len(stored), sum(sizes)))
        is_batch = isinstance(self._given, model.Batch)
        return (
            "PUT_OK", offset, sum(sizes), number, self._now, len(stored), first.store_host,
            tuple(ends) if is_batch else (),
        )  # fmt: skip

    # ---- the program ---------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Put, flush and read, then stop; compare after each call."""
        rng = self._rng
        for _ in range(_PUTS):
            self._now += rng.choice((0, 1, 1, 50, -20))
            self._put(rng.choice(("", "", "", "file", "blank", "record")))
            if rng.random() < 0.3:
                self._flush()
        self._get()
        if rng.random() < 0.5:
            tried("stop", self._puts.stop)
        else:
            self._interrupt()
        self._stopped = True
        for _ in range(3):
            self._put("")
        self._received()
        self._log.close()
        self._allocation.close()
        is_value("the files that a closed log still holds", (0, 0), self._disk.held)

    def _put(self, failing: str) -> None:
        rng, disk = self._rng, self._disk
        given: _Given = self._batch() if rng.random() < 0.3 else self._sized(self._message())
        self._given = given
        failed_before = disk.failed
        disk.failing_in = rng.randrange(1, 4) if failing == "file" else 0
        disk.failing_mark, disk.error = (failing if failing != "file" else ""), OSError(errno.EIO, "chosen to fail")
        is_batch = isinstance(given, model.Batch)
        form: Any = MessageBatch if is_batch else Message
        put: Any = self._puts.put_batch if is_batch else self._puts.put
        fields = {name: getattr(given, name) for name in given.__dataclass_fields__}
        if given.store_host == _HOST:
            fields["store_host"] = rng.choice((None, _HOST))
        if given.born_timestamp == self._now:
            fields["born_timestamp"] = rng.choice((None, self._now))
        what = f"a put of {fields!r:.600} with {self._layout}"
        found: PutResult = tried(what, lambda: put(form(**fields), now_ms=self._now))
        self._refused_by = failing if disk.failed > failed_before else ""
        if failing == "file" and found.stored:  # a call without which a file is whole too
            self._refused_by = ""
        disk.failing_in, disk.failing_mark = 0, ""
        expected = self._expected(given)
        answer = (found.status.name, *found[1:7], tuple(map(int, found.record_ends)))
        if not (self._stopped and answer == _refused("SERVICE_NOT_AVAILABLE")):  # before or after the other checks
            is_value(f"the answer of {what}", expected, answer)
        at = found.offset
        offsets = (at, *(at + end for end in expected[7][:-1])) if at >= 0 else ()
        is_value("the offsets of the records of a put", offsets, found.record_offsets)
        self._compare(what)

    def _compare(self, what: str) -> None:
        log, size = self._log, self._layout.file_bytes
        is_value(
            f"the files after {what}",
            [(index * size, file.written) for index, file in enumerate(self._files)],
            [(file.base_offset, file.written_position) for file in log.mapped],
        )
        for ours, file in zip(self._files[-2:], log.mapped[-2:], strict=True):
            if bytes(ours.content) != bytes(file.view):
                at = next(at for at in range(size) if ours.content[at] != file.view[at])
                around = slice(max(0, at - 20), at + 20)
                is_value(
                    f"the bytes around position {at} of a file after {what}",
                    bytes(ours.content[around]), bytes(file.view[around]),
                )  # fmt: skip
        is_value(
            "the numbers of queues",
            {(name.encode(), queue): number for (name, queue), number in self._next.items() if number},
            {key: self._table.next_offset(key) for key in self._table.known()},
        )
        is_value("the light queues", {(name.encode(), 0) for name in self._light}, self._table.light_queues)
        is_value("the counted messages", self._counted, self._found_counted)
        is_value("the begin time of a free put lock", 0, self._puts.begin_time_in_lock)
        is_value("how often reads lose what they know", bool(self._failures), bool(self._verified.failures))
        self._failures = self._verified.failures = 0

    def _flush(self) -> None:
        self._noted.append((self._log.max_offset, self._last_ms))
        tried("a flush", lambda: self._puts.flush(self._rng.choice((0, 0, 1))))
        durable = [time for end, time in self._noted if end <= self._log.flushed_where]
        self._flushed_ms = max(self._flushed_ms, *durable, 0)
        is_value("the store time of a flush", self._flushed_ms, self._puts.flushed_store_timestamp)

    def _get(self) -> None:
        """Read at the limits of the log, and at places that are none."""
        end = self._log.max_offset
        for offset, expected in (
            (-1, "OFFSET_TOO_SMALL"),
            (end, "OFFSET_OVERFLOW_ONE"),
            (end + 1, "OFFSET_OVERFLOW_BADLY"),
        ):
            found = tried("get", lambda offset=offset: self._puts.get(offset, readable_end=end))  # type: ignore[misc]
            is_value(f"the answer of a read at {offset}", (expected, None), (found.status.name, found.message))

    def _interrupt(self) -> None:
        """End a put in the middle by an exception that is no OSError."""
        error = KeyboardInterrupt("chosen")
        self._disk.failing_mark, self._disk.error = "record", error
        try:
            self._puts.put(Message("T", b"x"), now_ms=self._now)
        except KeyboardInterrupt:
            is_value("the exception that ended a put", True, self._puts.interruption is error)
        else:
            raise GuaranteeBroken(8, "an exception in the middle of a put is lost")
        finally:
            self._disk.failing_mark = ""
        if not self._has_room(_size(model.Message("T", b"x", 0, "", 0, 0, 0, _HOSTS[0], _HOST), self._layout.trailer)):
            if self._files and self._files[-1].written < self._layout.file_bytes:
                self._end_file()
            self._files.append(_File(bytearray(self._layout.file_bytes)))
        file, mapped = self._files[-1], self._log.mapped[-1]
        file.content[:] = mapped.view  # recovery decides about these bytes

    def _received(self) -> None:
        """Append received bytes to a stopped log."""
        end = self._log.max_offset
        try:
            self._puts.append_received(bytearray(9), offset=end, store_timestamp=1, ends_file=False)
        except OSError as error:
            is_value("the error of a stopped log", errno.ESHUTDOWN, error.errno)
        else:
            raise GuaranteeBroken(8, "a stopped log takes received bytes")
        is_value("the end of a stopped log", end, self._log.max_offset)


def _numbers_in(stored: model.Message) -> tuple[int, ...]:
    """Return the numbers in the queues that a stored message names."""
    text = property_of(stored.properties, "INNER_MULTI_QUEUE_OFFSET") or ""
    return tuple(map(int, text.split(",")))


def _size(stored: model.Message, trailer: bool) -> int:
    text = stored_bytes(stored.properties, trailer=trailer, errors="surrogateescape")
    return model.record_bytes(replace(stored, properties=""), trailer=trailer) + len(text)


def _as_bytes(properties: dict[str, str] | str) -> bytes:
    """Return the properties of a member of a batch, also some that are no text."""
    return text_of(properties).encode("utf-8", "surrogatepass")


def _member(member: tuple[int, bytes, bytes]) -> bytes:
    flag, body, text = member
    text = text[: (1 << 15) - 1]
    head = struct.pack(">iiiii", 22 + len(body) + len(text), 0, 0, flag, len(body))
    return head + body + struct.pack(">h", len(text)) + text
