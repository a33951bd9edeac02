"""Compare dispatch and the flush of queues with references (contracts 4, 5 and 16).

Log, queues, index and checkpoint are stand-ins. A call of one of them may fail.

Dispatch:

1. A round dispatches each record below the readable end once, in log order, also what becomes readable meanwhile. It
   goes on past the blank of a file, and after a clean-up has removed dispatched files.
2. Listeners and followers hear of each batch once, when queues and index have it.
3. A round that fails leaves the position at the begin of its batch. The next round begins there.
4. At bytes that are no record dispatch stops for good. The error names their offset and the defect, and a running flag
   refuses puts. Nothing is dispatched after that. The flag is also set if an open has met such bytes.
5. A wake-up is needed if the service sleeps and bytes to dispatch are there. It does not sleep during a round, nor
   after one that failed or stopped for good.

Flush:

6. The first round is thorough, and so is each one that comes long enough after the last complete one. Others keep to
   the page rule. Each round flushes all queues in order, then it raises the derived floor.
7. A thorough round notes the position of dispatch before it flushes. After the queues it writes the checkpoint, with
   the time from before. It is complete when the checkpoint is durable. If anything fails before that, the next round is
   thorough.
"""

import errno
import logging
import random
import struct
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from tornpage.impl.config.policy import QueueFlushPolicy
from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.dispatch.dispatch_records import dispatch_records
from tornpage.impl.dispatch.queue_flush import FlushConsumeQueues
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.message.delay_levels import DelayLevels
from tornpage.impl.message.dispatching import DispatchRules, IndexPuts, QueueRun
from tornpage.impl.service.running_flags import RunningFlag, RunningFlags
from tornpage.properties.lockstep.functions.comparing import is_value
from tornpage.properties.lockstep.parts.part_disk import tried

__all__ = ["check"]

_PROGRAMS = 4
_ROUNDS = 12
_FLUSHES = 14
_FAILING_IN = (0, 0, 1, 2, 3, 5)
"""The call that fails, counted from 1. 0 lets none fail."""
_FILE_BYTES = 1_024
_BLANK_BYTES = 8
_MAGIC, _BLANK_MAGIC = 0xDAA320A7, 0xCBD43194
_HEAD = struct.Struct(">IIIiiqqiq")
_UNIT = struct.Struct(">qiq")
_T0 = 1_700_000_000_000
_SMALLEST_BYTES = 91
_EXPIRES = 0.2
"""The share of rounds before which a clean-up removes the first file."""


def check(rng: random.Random) -> None:
    """Run some programs of both services. Raises GuaranteeBroken."""
    log = logging.getLogger("tornpage.store")
    was_disabled, log.disabled = log.disabled, True  # dispatch that stops is meant
    try:
        for _ in range(_PROGRAMS):
            dispatching = _Dispatching(rng)
            dispatching.run()
            dispatching.reopen()
    finally:
        log.disabled = was_disabled
    _flushes(rng)


class _Failing:
    """Calls of which one fails, if one is chosen."""

    def __init__(self) -> None:
        self.failing_in = 0
        self.has_failed = False

    def call(self) -> None:
        """Fail if it is the chosen call."""
        self.failing_in -= 1
        if not self.failing_in:
            self.has_failed = True
            raise OSError(errno.EIO, "a call that was chosen to fail")


# ---- dispatch --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Record:
    """A record of the log, in one of some queues."""

    offset: int
    data: bytes
    queue_id: int
    number: int
    time: int

    @property
    def end(self) -> int:
        return self.offset + len(self.data)

    @property
    def unit(self) -> tuple[int, int, int, int]:
        """Queue, number, offset and size."""
        return self.queue_id, self.number, self.offset, len(self.data)


@dataclass
class _File:
    """Stands for a mapped file."""

    base_offset: int
    view: memoryview
    looks: int = 0

    size_bytes = _FILE_BYTES

    @property
    def end_offset(self) -> int:
        """The offset after the file."""
        return self.base_offset + _FILE_BYTES

    def hold(self) -> bool:
        """Begin a look."""
        self.looks += 1
        return True

    def release(self) -> None:
        """End a look."""
        self.looks -= 1


@dataclass
class _Log:
    """Stands for the log, whose readable end grows."""

    files: list[_File] = field(default_factory=list)
    readable_end: int = 0

    @property
    def committed_where(self) -> int:
        """The committed end."""
        return self.readable_end

    @property
    def min_offset(self) -> int:
        """The begin of the log."""
        return self.files[0].base_offset

    def find(self, offset: int) -> _File | None:
        """Return the file with an offset."""
        return next((file for file in self.files if file.base_offset <= offset < file.end_offset), None)


class _Dispatching:
    """Runs rounds of dispatch over a log that grows."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._failing = _Failing()
        self._records: list[_Record] = []
        self._wrong: tuple[int, str] | None = None
        """Where the bytes are that are no record, and their defect."""
        self._ends = [0]
        """The readable ends, ascending."""
        self._log = _Log(self._written())
        self._units: dict[tuple[int, int], tuple[int, int, int, int]] = {}
        self._entries: list[tuple[int, int, int]] = []
        self._heard: list[tuple[int, int]] = []
        self._followed: list[tuple[int, int, int, int]] = []
        self._woken = 0
        self._grows = 0
        rules = DispatchRules(
            index=True, delay_levels=DelayLevels((1_000,)), multi_dispatch=None, ext=False, bit_map_of=None,
            batch_bytes_max=rng.choice((1, 150, 400, 1 << 20)),
        )  # fmt: skip
        queues: Any = SimpleNamespace(of=lambda key: SimpleNamespace(append=lambda run: self._append(key, run)))
        index: Any = SimpleNamespace(put=self._put, index_files=())
        self._derived = Derived(queues, index, dispatch=dispatch_records, rules=rules, listeners=(self._listen,))
        self._derived.add_follower(self._follow)
        self._flags = RunningFlags()
        log: Any = self._log
        self._service = ReputMessages(self._derived, log, self._flags)
        self._service.wake = self._wake

    def _written(self) -> list[_File]:
        """Return log files with records, which end in a drawn way."""
        rng, at, files, numbers = self._rng, 0, list[_File](), dict[int, int]()
        for last in (False,) * rng.choice((0, 1, 2)) + (True,):
            data, count = bytearray(), rng.choice((0, 1, 3, 20))
            while not last or count:
                room, size = _FILE_BYTES - len(data), rng.choice((92, 110, 250, 400))
                if size > room - _BLANK_BYTES:
                    break
                queue_id = rng.choice((0, 0, 1, 7))
                number = numbers.get(queue_id, 0)
                numbers[queue_id], count = number + 1, count - 1
                self._records.append(_record(at + len(data), size, queue_id, number, _T0 + rng.randrange(1_000)))
                data += self._records[-1].data
                self._ends.append(at + len(data))
            if last:
                data += self._end(at + len(data), _FILE_BYTES - len(data))
            else:
                data += struct.pack(">II", _FILE_BYTES - len(data), _BLANK_MAGIC)
                self._ends.append(at + _FILE_BYTES)
            files.append(_File(at, memoryview(bytes(data.ljust(_FILE_BYTES, b"\0")))))
            at += _FILE_BYTES
        return files

    def _end(self, offset: int, room: int) -> bytes:
        """Return the bytes after the last record: nothing, or bytes that are no record."""
        rng = self._rng
        kind = rng.choice(("nothing", "nothing", "no magic", "place", "length", "rest of the file"))
        if kind == "nothing":
            return b""
        if kind == "rest of the file":  # what does not fit begins with the magic of a record
            size = rng.choice((room, _SMALLEST_BYTES, 92))
            at = offset + room - rng.randrange(_BLANK_BYTES, min(room, _SMALLEST_BYTES))
            filler = _record(offset, max(92, at - offset), 3, 0, _T0)
            if at - offset < 92 or at - offset > room - _BLANK_BYTES:
                return b""
            self._records.append(filler)
            self._ends += (at, offset + room)
            self._wrong = at, "bad_length"
            return filler.data + struct.pack(">II", size, _MAGIC)
        if room < 92 + _BLANK_BYTES:
            return b""
        data = bytearray(_record(offset, 92, 0, 0, _T0).data)
        match kind:
            case "no magic":
                data[5] ^= 1
            case "place":
                struct.pack_into(">q", data, 28, offset + rng.choice((-1, 1, _FILE_BYTES)))
            case "length":
                struct.pack_into(">I", data, 0, rng.choice((0, 90, room - 7, 1 << 31)))
        self._ends.append(offset + len(data))
        self._wrong = offset, {"no magic": "bad_magic", "place": "bad_position"}.get(kind, "bad_length")
        return bytes(data)

    # ---- what the stand-ins do ----

    def _append(self, key: tuple[bytes, int], run: QueueRun) -> None:
        """Take the units of a run that are not there yet, or fail."""
        self._failing.call()
        self._grow()
        is_value("the queue of a run", (b"T", key[1]), run.key)
        for at, (offset, size, _) in enumerate(_UNIT.iter_unpack(run.units)):
            unit = key[1], run.queue_offset + at, offset, size
            is_value("a unit that is appended again", self._units.setdefault(unit[:2], unit), unit)

    def _put(self, puts: IndexPuts) -> None:
        """Take the entries that are not there yet, or fail."""
        self._failing.call()
        rows = list(zip(*puts, strict=True))
        self._entries += [row for row in rows if row not in self._entries]

    def _listen(self, arrival: Any) -> None:
        self._heard.append((arrival.queue_id, arrival.next_offset - 1))

    def _follow(self, runs: Any) -> None:
        for run in runs:
            for at, (offset, size, _) in enumerate(_UNIT.iter_unpack(run.units)):
                self._followed.append((run.key[1], run.queue_offset + at, offset, size))

    def _wake(self) -> None:
        self._woken += 1

    def _grow(self) -> None:
        """Let a put make more bytes readable while a round runs."""
        if self._grows:
            self._grows -= 1
            self._log.readable_end = self._later_end()
            self._service.note_readable(self._log.readable_end)

    def _later_end(self) -> int:
        later = [end for end in self._ends if end > self._log.readable_end]
        return self._rng.choice(later) if later else self._log.readable_end

    # ---- rounds ----

    def run(self) -> None:
        """Run rounds, and compare after each."""
        position, sleeps = 0, True
        for _ in range(_ROUNDS):
            self._log.readable_end = self._later_end()
            files = self._log.files
            if self._rng.random() < _EXPIRES and len(files) > 1 and position >= files[1].base_offset:
                del files[0]  # a clean-up removes dispatched files only
            self._wakes(sleeps=sleeps, is_needed=self._log.readable_end > position)
            self._failing.failing_in, self._failing.has_failed = self._rng.choice(_FAILING_IN), False
            self._grows = self._rng.choice((0, 0, 1, 3))
            try:
                tried("a round of dispatch", lambda: self._service.step(0))
            except OSError:
                if not self._failing.has_failed:
                    raise
            self._failing.failing_in = self._grows = 0
            position = self._derived.reput_from_offset
            is_over = self._compare(position)
            sleeps = not self._failing.has_failed and not is_over

    def _wakes(self, *, sleeps: bool, is_needed: bool) -> None:
        """Tell the service that bytes are readable."""
        self._woken = 0
        self._service.note_readable()
        is_value("the wake-ups of dispatch", int(sleeps and is_needed), self._woken)

    def _compare(self, position: int) -> bool:
        """Compare everything after a round; return whether dispatch has stopped for good."""
        end = self._log.readable_end
        wrong = self._wrong if self._wrong is not None and self._wrong[0] < end else None
        wanted = end if wrong is None else wrong[0]
        has_failed = self._failing.has_failed
        if has_failed:
            ends = [0, *(each for each in self._ends if each <= wanted)]
            is_value("whether a failed round ends at a record", True, position in ends and position <= wanted)
            wanted = position
        is_value("the position of dispatch", wanted, position)
        is_value("the bytes to dispatch", end - max(position, 0), self._service.behind_bytes)
        done = [record for record in self._records if record.end <= position]
        units = {record.unit[:2]: record.unit for record in done}
        more = self._units.keys() - units.keys()
        is_value("the units of dispatched records", units, {key: self._units.get(key) for key in units})
        is_value("whether units come from a failed batch", True, not more or has_failed)
        is_value("the arrivals that listeners hear", [record.unit[:2] for record in done], self._heard)
        is_value("the units that followers hear", sorted(units.values()), sorted(self._followed))
        newest = max((record.time for record in done), default=0)
        is_value("the newest dispatched time", newest, self._derived.store_timestamp)
        stops = wrong is not None and not has_failed
        error = f"dispatch stopped at offset {wrong[0]}: {wrong[1]}" if stops and wrong is not None else None
        is_value("the error of dispatch", error, self._service.error)
        bits = RunningFlag.WRITE_LOGICS_QUEUE_ERROR if stops else RunningFlag(0)
        is_value("the running flags after a round of dispatch", bits, self._flags.bits)
        is_value("the files that dispatch holds", 0, sum(file.looks for file in self._log.files))
        return stops

    def reopen(self) -> None:
        """Start another service, as after an open that has met wrong bytes."""
        log, flags = self._log, RunningFlags()
        tried("the start of dispatch", lambda: ReputMessages(self._derived, log, flags))  # type: ignore[arg-type]
        bits = RunningFlag(0) if self._derived.error is None else RunningFlag.WRITE_LOGICS_QUEUE_ERROR
        is_value("the running flags after the start of dispatch", bits, flags.bits)


def _record(offset: int, size: int, queue_id: int, number: int, time: int) -> _Record:
    """Return a record of `size` bytes, at least 92, without a body checksum.

    Source: docs/format.md.
    """
    body_bytes = size - 92
    head = _HEAD.pack(size, _MAGIC, 0, queue_id, 0, number, offset, 0, time)
    rest = bytes(8) + struct.pack(">q", time) + bytes(8) + struct.pack(">iqi", 0, 0, body_bytes)
    return _Record(offset, head + rest + b"b" * body_bytes + b"\1T\0\0", queue_id, number, time)


# ---- flush -----------------------------------------------------------------------------------------------------------


class _Stands:
    """Stands for queues, checkpoint and floor. Each call is noted, and one may fail."""

    def __init__(self, queues: int, failing: _Failing) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.dispatched_ms = _T0
        self._count = queues
        self._failing = failing

    def _call(self, *call: object) -> None:
        self._failing.call()
        self.calls.append(call)

    def dispatched(self) -> int:
        """Return the newest dispatched time."""
        return self.dispatched_ms

    def queues(self) -> Any:
        """Yield the queues. Dispatch goes on while they are flushed."""
        for number in range(self._count):
            self.dispatched_ms += 1
            yield SimpleNamespace(flush=lambda pages, number=number: self._call("queue", number, pages))

    def sample(self) -> None:
        """Note the position of dispatch."""
        self._call("sample")

    def note_dispatched(self, store_timestamp: int) -> None:
        """Note the time of the checkpoint."""
        self._call("time", store_timestamp)

    def flush(self) -> None:
        """Write the checkpoint."""
        self._call("checkpoint")

    def raise_floor(self) -> None:
        """Raise the derived floor."""
        self._call("floor")


def _flushes(rng: random.Random) -> None:
    """Run rounds of the flush service."""
    failing = _Failing()
    stands: Any = _Stands(rng.randrange(4), failing)
    pages, interval, pause = rng.choice((0, 1, 2, 7)), rng.choice((0, 1, 900, 60_000)), rng.choice((1, 500))
    policy = QueueFlushPolicy(pause, pages, interval)
    service = FlushConsumeQueues(policy, stands, stands.queues, dispatched=stands.dispatched, floor=stands)
    now, complete_ms = rng.choice((0, 5, 70_000)), None
    for _ in range(_FLUSHES):
        now += rng.choice((0, 1, 899, 900, 901, 59_999, 60_000))
        stands.calls.clear()
        rule = 0 if complete_ms is None or now - complete_ms >= interval else pages
        wanted: list[tuple[object, ...]] = [("queue", number, rule) for number in range(stands._count)]
        if not rule:
            wanted = [("sample",), *wanted, ("time", stands.dispatched_ms), ("checkpoint",)]
        wanted.append(("floor",))
        failing.failing_in, failing.has_failed = (
            rng.choice((0, 0, 1 + rng.randrange(len(wanted)), len(wanted) - 1)),
            False,
        )
        if 0 < failing.failing_in <= len(wanted):
            wanted = wanted[: failing.failing_in - 1]
        try:
            due = tried("a round of the flush of queues", lambda now=now: service.step(now))  # type: ignore[misc]
        except OSError:
            due = -1
        is_value("the due time of the flush of queues", -1 if failing.has_failed else now + pause, due)
        is_value("the calls of a flush of queues", wanted, stands.calls)
        if not rule and ("checkpoint",) in wanted:
            complete_ms = now
