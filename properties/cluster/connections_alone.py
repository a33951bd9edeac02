"""Run one connection of a master alone beside a reference (contracts 8, 15 and 16).

A slave, the log and time are drawn, and each link has a room of its own. Drawn ends of the log are often exactly at a
limit of the reference, or a byte beside it. The reference is written from docs/replication/design.md, and knows every
byte:

(a) A greeting is answered with START, CUT, GONE or a refusal. Only START is followed by more.
(b) A frame of data ends at the end of a log file, of a batch, or of what may be sent. Which puts share a frame follows
    "Shared frames".
(c) A heartbeat is sent after a time without a sent byte. Silence, and a frame that stays incomplete, end the link.
(d) An acknowledgement of more than was sent, and each frame that may not come, end the link without an effect.
(e) What operators are shown, and which offset counts for puts.
(f) A step has something to send once the log has grown up to `wake_offset`. Before that it has nothing to send, unless
    `poll_interval` is over.
"""

import random
import struct
import sys
import zlib
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import cast

from tornpage.impl.replication.generations import Generation
from tornpage.impl.replication.requests import ReplicaRequests
from tornpage.impl.replication.server import ReplicaConnection, ReplicaState
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.store import MessageStore
from tornpage.properties.cluster.client_lines import ClientLink
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["connections_hold"]

_PROGRAMS, _EVENTS = 120, 120
_HELLO, _WELCOME, _DATA, _PING, _ACK, _REFUSAL = 1, 2, 3, 4, 5, 6
_START, _CUT, _GONE = 1, 2, 3
_FILE_BYTES = 96 << 10
_CONTENT = bytes(1 + at * 7 % 251 for at in range(_FILE_BYTES))
"""The bytes of each log file. A frame of another place of a file has other bytes."""
_FIRST_BYTE = 3 * _FILE_BYTES
_READ_BYTES, _SENDS_MAX = 64 << 10, 64
_UNEVEN_BYTES, _BURST_MS = 16 << 10, 1
_POLL_MS, _HEARTBEAT_MS, _SILENCE_MS = 5, 50, 90
_LEAST_BYTES = 8
"""No record and no blank of a log is shorter."""
_TIMES_MS = (0, 1, 1, 2, 2, 4, 5, 6, 10)
_LONG_TIMES_MS, _SHARE_OF_LONG = (49, 50, 51, 51, 89, 90, 91), 0.06
_ROOMS_BYTES = (0, 1, 20, 200, 20_000)
_NODE, _OTHER = b"m" * 16, b"s" * 16
_TOKENS = b"a" * 16, b"b" * 16, b"c" * 16


# ---- what stands around a connection ---------------------------------------------------------------------------------


class _Buffer:
    """Bytes of the log that a reader holds. The end of the `with` releases them."""

    def __init__(self, data: bytes) -> None:
        self.view = memoryview(data)

    def __enter__(self) -> "_Buffer":
        return self

    def __exit__(self, *_: object) -> None:
        self.view.release()


@dataclass
class _Log:
    """The log of a master. `ends` are the ends of puts that wait for replicas."""

    min_offset: int
    committed_offset: int
    flushed_offset: int
    max_offset: int
    ends: list[int] = field(default_factory=list)

    def commit_log_data(self, offset: int) -> _Buffer | None:
        """Return the bytes from an offset to the end of its file, or of what may be read."""
        if not self.min_offset <= offset < self.committed_offset:
            return None
        return _Buffer(self.bytes_at(offset, self.committed_offset))

    @staticmethod
    def bytes_at(offset: int, end: int) -> bytes:
        """Return the bytes up to an end, at most to the end of the file."""
        at = offset % _FILE_BYTES
        return _CONTENT[at : at + end - offset]

    def end_from(self, offset: int) -> int | None:
        """Return the end of the first waiting put at an offset or past it."""
        return min((end for end in self.ends if end >= offset), default=None)


def _frame(kind: int, body: bytes = b"", *, reserved: int = 0, size: int | None = None, changed: int = 0) -> bytes:
    head = bytes((kind, reserved, 0, 0)) + struct.pack(">I", len(body) if size is None else size)
    return head + struct.pack(">II", zlib.crc32(head), zlib.crc32(body) ^ changed) + body


def _offsets(*values: int) -> bytes:
    return struct.pack(f">{len(values)}q", *values)


@dataclass(frozen=True)
class _Greeting:
    """What a node states in its greeting."""

    node: bytes
    has_log: bool
    begin: int
    end: int
    flushed: int
    generations: tuple[tuple[int, int, bytes], ...]
    file_bytes: int = _FILE_BYTES

    @property
    def packed(self) -> bytes:
        """The greeting as bytes."""
        head = struct.pack(">HBxI", 1, self.has_log, len(self.generations)) + self.node
        numbers = _offsets(self.file_bytes, self.begin, self.end, self.flushed)
        return head + numbers + b"".join(_offsets(number, at) + token for number, at, token in self.generations)


def _common_point(ours: _Greeting, theirs: _Greeting) -> int | None:
    """Return the smaller end of the newest generation that both have, None without one."""
    found = None
    for entry in ours.generations:
        if entry in theirs.generations and entry[1] <= min(ours.end, theirs.end):
            found = min(_generation_end(each, entry) for each in (ours, theirs))
    return found


def _generation_end(greeting: _Greeting, entry: tuple[int, int, bytes]) -> int:
    later = greeting.generations[greeting.generations.index(entry) + 1 :]
    return min([greeting.end, *(begin for _, begin, _ in later[:1])])


# ---- the reference ---------------------------------------------------------------------------------------------------


class _EndsError(Exception):
    """The end of the connection. The text is a part of the reason."""


@dataclass
class _Wrong:
    """A frame that ends the connection, and a part of the reason."""

    reason: str


@dataclass
class _Reference:
    """What has to be so on a connection.

    `unsent` waits for room. `sent_bytes` is what the link has taken since the last look.
    """

    log: _Log
    settings: ReplicationSettings
    generations: tuple[tuple[int, int, bytes], ...]
    now_ms: int
    replica: bytes = b""
    counts: bool = False
    sent: int = 0
    received: int = 0
    durable: int = 0
    is_streaming: bool = False
    is_answered: bool = False
    ended: str = ""
    unsent: bytes = b""
    sent_bytes: bytes = b""
    room: int | None = None
    heard_ms: int = 0
    last_sent_ms: int = 0
    held_ms: int = 0
    flight_bytes: int = 0
    acknowledged_from: int = 0
    seen_end: int = 0
    is_burst: bool = False
    is_cut_short: bool = False

    def __post_init__(self) -> None:
        self.heard_ms = self.last_sent_ms = self.now_ms

    @property
    def sendable_end(self) -> int:
        """The end of what may be sent."""
        return self.log.flushed_offset if self.settings.send_flushed_only else self.log.committed_offset

    @property
    def is_acknowledged(self) -> bool:
        """Whether each whole record that was sent is acknowledged."""
        return self.received >= self.acknowledged_from

    def step(self, now_ms: int, arrived: int | None, frames: list[object], *, is_within: bool) -> None:
        """Take the frames that are whole, then send.

        `arrived` is how many bytes have arrived, None after the end of the slave. `is_within` is whether an incomplete
        frame was held before.
        """
        self.now_ms = now_ms
        try:
            self._take(arrived, frames, is_within=is_within)
            self._send()
        except _EndsError as ends:
            self.ended, self.counts = str(ends), False

    # ---- what a slave sends --------------------------------------------------------------------------------------

    def _take(self, arrived: int | None, frames: list[object], *, is_within: bool) -> None:
        if arrived is None:
            raise _EndsError("the replica has ended the link")
        if arrived:
            self.heard_ms = self.now_ms
        elif self.now_ms - self.heard_ms > _SILENCE_MS:
            raise _EndsError(f"nothing was received for {self.now_ms - self.heard_ms} ms")
        for frame in frames:
            if isinstance(frame, _Wrong):
                raise _EndsError(frame.reason)
            if isinstance(frame, _Greeting):
                self._greet(frame)
            else:
                self._acknowledge(*cast("tuple[int, int]", frame))
        if not is_within or frames:
            self.held_ms = self.now_ms
        elif self.now_ms - self.held_ms > _SILENCE_MS:
            raise _EndsError(f"a frame has been incomplete for {self.now_ms - self.held_ms} ms")

    def _greet(self, theirs: _Greeting) -> None:
        if self.replica:
            raise _EndsError("HELLO may not come here")
        log, self.replica = self.log, theirs.node
        ours = _Greeting(
            _NODE, log.max_offset > 0, log.min_offset, log.max_offset, log.flushed_offset, self.generations
        )
        point = _common_point(ours, theirs)
        if theirs.file_bytes != _FILE_BYTES:
            self._answer(_refusal(f"log files have {_FILE_BYTES} bytes here and {theirs.file_bytes} there"))
        elif theirs.node == _NODE:
            self._answer(_refusal("the replica has the identity of its master: it is a copy of this directory"))
        elif not theirs.has_log:
            self._start(log.min_offset, ours)
        elif point is None:
            self._answer(_refusal("both logs have no common generation: they belong to different stores"))
        elif point < theirs.end:
            self._answer(_welcome(_CUT, point, ours))
        elif point < log.min_offset:
            self._answer(_welcome(_GONE, log.min_offset, ours))
        else:
            self._start(point, ours)

    def _answer(self, frame: bytes) -> None:
        self.unsent += frame
        self.is_answered = True

    def _start(self, position: int, ours: _Greeting) -> None:
        self.sent, self.is_streaming = position, True
        self.unsent += _welcome(_START, position, ours)

    def _acknowledge(self, received: int, durable: int) -> None:
        if not self.is_streaming:
            raise _EndsError("ACK may not come here")
        if not 0 <= durable <= received:
            raise _EndsError("an acknowledgement has")
        if received > self.sent:
            raise _EndsError(f"offset {received} is acknowledged, but only {self.sent} was sent")
        self.received, self.durable, self.counts = received, durable, True

    # ---- what the master sends -----------------------------------------------------------------------------------

    def _send(self) -> None:
        self.is_cut_short = False
        for _ in range(_SENDS_MAX):
            if not self.unsent and self.is_streaming:
                self.unsent = self._next()
            if not self.unsent:
                break
            count = len(self.unsent) if self.room is None else min(self.room, len(self.unsent))
            if not count:
                return
            self.room = None if self.room is None else self.room - count
            self.sent_bytes += self.unsent[:count]
            self.unsent, self.last_sent_ms = self.unsent[count:], self.now_ms
        else:
            self.is_cut_short = True
        if self.is_answered and not self.unsent:
            raise _EndsError("the answer to the greeting is sent")

    def _next(self) -> bytes:
        log, begin = self.log, self.sent
        if begin < log.min_offset:
            raise _EndsError(f"the log begins at {log.min_offset} now, and {begin} was not sent")
        self.seen_end = self.sendable_end
        was_acknowledged, due = self.is_acknowledged, self._due_end()
        data = log.bytes_at(begin, min(due, begin + self.settings.ha_transfer_batch_size)) if due > begin else b""
        if data:
            self.sent = begin + len(data)
            if self.sent == due:
                self.acknowledged_from = due
            self.flight_bytes = len(data) + (0 if was_acknowledged else self.flight_bytes)
            return _frame(_DATA, _offsets(begin) + data)
        if self.now_ms - self.last_sent_ms > _HEARTBEAT_MS:
            return _frame(_PING, _offsets(log.max_offset))
        return b""

    def _due_end(self) -> int:
        """Return up to where the log is sent now: "Shared frames"."""
        begin, end, half = self.sent, self.seen_end, self.settings.ha_transfer_batch_size // 2
        waiting_bytes, flight_bytes = end - begin, self.flight_bytes
        self.is_burst = False
        if not self.is_acknowledged:
            is_held = waiting_bytes < half and self.now_ms - self.last_sent_ms < _POLL_MS
            return begin if is_held else end
        if flight_bytes > _UNEVEN_BYTES and self.now_ms - self.heard_ms <= _BURST_MS:
            self.is_burst = waiting_bytes < flight_bytes // 2
        if self.is_burst:
            return begin
        if waiting_bytes > flight_bytes + _UNEVEN_BYTES:
            middle = self.log.end_from(begin + (waiting_bytes + flight_bytes) // 2)
            return end if middle is None else min(middle, end)
        return end

    def would_send(self) -> bool:
        """Return whether a step without a new byte has data to send now."""
        tried = copy(self)
        tried.room = None
        try:
            tried._send()
        except _EndsError:
            return True
        return tried.sent > self.sent


def _welcome(action: int, position: int, ours: _Greeting) -> bytes:
    return _frame(_WELCOME, struct.pack(">B7xq", action, position) + ours.packed)


def _refusal(sentence: str) -> bytes:
    return _frame(_REFUSAL, sentence.encode())


# ---- the program -----------------------------------------------------------------------------------------------------


def connections_hold() -> None:
    """Judge drawn programs. Raises GuaranteeBroken."""
    for seed in range(_PROGRAMS):
        observed("a look at a connection of a replica", _Program(random.Random(f"connections {seed}")).run)


class _Program:
    """One drawn program beside the reference."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._now_ms = rng.choice((0, 1_000))
        begin = rng.choice((0, 0, _FIRST_BYTE))
        end = begin + rng.choice((0, 0, 100, _FILE_BYTES - 50))
        self._log = _Log(begin, end, end, end)
        self._settings = ReplicationSettings(
            ha_send_heartbeat_interval=_HEARTBEAT_MS, ha_housekeeping_interval=_SILENCE_MS, poll_interval=_POLL_MS,
            ha_transfer_batch_size=rng.choice((131_072, 131_072, 40_000, 24_001, 100)),
            acknowledge=rng.choice(("received", "durable")), send_flushed_only=rng.random() < 0.3,
        )  # fmt: skip
        middle = (begin + end) // 2
        self._generations = ((1, begin, _TOKENS[0]), (3, middle, _TOKENS[1]))[: rng.choice((1, 2))]
        self._reference = _Reference(self._log, self._settings, self._generations, self._now_ms)
        self._link = ClientLink(0)
        self._ours = ReplicaConnection(
            self._link, cast(MessageStore, self._log), cast(ReplicaRequests, self._log), node=_NODE,
            generations=[Generation(*each) for each in self._generations], file_bytes=_FILE_BYTES,
            settings=self._settings, now_ms=self._now_ms,
        )  # fmt: skip
        self._waits = bytearray()  # sent by the slave, and not arrived
        self._frames: list[tuple[int, int, object]] = []  # the byte with which each acts, its end, and what it is
        self._put = self._taken = self._whole = 0

    def run(self) -> None:
        """Greet, then draw events until the connection ends."""
        rng = self._rng
        if rng.random() < 0.9:
            self._hello()
        events: tuple[tuple[int, Callable[[], None]], ...] = (
            (14, self._pass), (14, self._grow), (14, self._acknowledge), (4, self._flush), (2, self._narrow),
            (2, self._widen), (1, self._tell_wrong), (1, self._in_pieces), (1, self._retain),
        )  # fmt: skip
        weights = [weight for weight, _ in events]
        self._step()
        for _ in range(_EVENTS):
            if self._reference.ended:
                break
            (event,) = rng.choices([each for _, each in events], weights)
            event()
            self._step()
        if not self._reference.ended:
            rng.choice((self._leave, self._be_ended))()
        self._judge("the end")

    # ---- what happens --------------------------------------------------------------------------------------------

    def _step(self) -> None:
        count = min(len(self._link.inbox), _READ_BYTES)
        arrived = None if not count and self._link.has_left else count
        is_within = self._taken > self._whole
        self._taken += count
        frames: list[object] = []
        while self._frames and self._frames[0][0] <= self._taken:
            _, self._whole, what = self._frames.pop(0)
            frames.append(what)
        self._reference.step(self._now_ms, arrived, frames, is_within=is_within)
        self._ours.step(self._now_ms)
        self._judge("a step")

    def _pass(self) -> None:
        is_long = self._rng.random() < _SHARE_OF_LONG
        self._now_ms += self._rng.choice(_LONG_TIMES_MS if is_long else _TIMES_MS)
        if is_long and self._rng.random() < 0.7:
            self._acknowledge()

    def _grow(self) -> None:
        """Append records. Their end is often at a limit of what shares a frame."""
        rng, log, reference = self._rng, self._log, self._reference
        flight_bytes, half = reference.flight_bytes, self._settings.ha_transfer_batch_size // 2
        limits = (
            half, flight_bytes // 2, _UNEVEN_BYTES, flight_bytes + _UNEVEN_BYTES, 2 * flight_bytes + _UNEVEN_BYTES,
            self._settings.ha_transfer_batch_size, 300,
        )  # fmt: skip
        before, begin = log.committed_offset, reference.sent
        end = max(begin + rng.choice(limits) + rng.choice((-1, 0, 0, 1, 2, 8)), before + _LEAST_BYTES)
        log.committed_offset = log.max_offset = end
        if rng.random() < 0.2:
            log.max_offset += rng.randrange(100)
        middle = begin + (end - begin + flight_bytes) // 2
        drawn = {middle + by for by in rng.sample((-9, -1, 0, 1, 9), rng.randrange(4))} | {before, end}
        log.ends = sorted(each for each in {*log.ends[-3:], *drawn} if each <= end)
        if rng.random() < 0.7:
            log.flushed_offset = end
        self._judge_waking()

    def _flush(self) -> None:
        self._log.flushed_offset = self._log.committed_offset
        self._judge_waking()

    def _judge_waking(self) -> None:
        """Compare what the connection says of the new end with what a step would send now."""
        ours, reference = self._ours, self._reference
        end, before = reference.sendable_end, reference.seen_end
        if end <= before or reference.ended:
            return
        wakes, sends = end >= ours.wake_offset, reference.would_send()
        idle = bool(reference.unsent) or not reference.is_streaming
        if idle and ours.wake_offset != sys.maxsize:
            raise GuaranteeBroken(16, "a connection that cannot send is woken", str(sys.maxsize), str(ours.wake_offset))
        is_polled = self._now_ms - reference.last_sent_ms >= _POLL_MS
        if not idle and wakes is not sends and not (sends and is_polled and not reference.is_acknowledged):
            raise GuaranteeBroken(
                16, f"a step would send {'something' if sends else 'nothing'} of a log up to {end}", str(reference),
                f"wake offset {ours.wake_offset}",
            )  # fmt: skip
        _is("whether a step has more to send", ours.has_more, reference.is_cut_short or wakes)

    def _hello(self) -> None:
        rng, log = self._rng, self._log
        begin = rng.choice((0, log.min_offset, log.min_offset))
        end = log.max_offset
        if rng.random() < 0.3:
            end = rng.choice(((log.min_offset + end) // 2, end + 9))
        end, has_log = max(begin, end), rng.random() < 0.8
        if rng.random() < 0.1:
            begin, end = 0, max(0, log.min_offset - 1)
        known = self._generations[: rng.choice((1, 2, 2, 2, 2))]
        unknown = ((9, begin, _TOKENS[2]),) if rng.random() < 0.1 else ()
        node = _NODE if rng.random() < 0.05 else _OTHER
        size = _FILE_BYTES + (rng.random() < 0.05)
        entries = unknown or known
        greeting = _Greeting(node, has_log, begin, end, rng.choice((0, end)), entries if has_log else (), size)
        self._tell(_frame(_HELLO, greeting.packed), greeting)
        if rng.random() < 0.8:
            self._arrive(len(self._waits))

    def _tell(self, data: bytes, what: object, acts_after: int | None = None) -> None:
        acts = self._put + (len(data) if acts_after is None else acts_after)
        self._put += len(data)
        self._frames.append((acts, self._put, what))
        self._waits += data

    def _arrive(self, count: int) -> None:
        self._link.inbox += self._waits[:count]
        del self._waits[:count]

    def _acknowledge(self) -> None:
        """Let the slave acknowledge, mostly what was sent."""
        rng, reference = self._rng, self._reference
        if reference.is_streaming:
            least = max(0, reference.sent - rng.choice((0, 0, 0, 0, 1, 8, 5_000)))
            received = least + (rng.random() < 0.01)
            durable = rng.choice((received, received, 0, max(0, received - 1)))
            self._tell(_frame(_ACK, _offsets(received, durable)), (received, durable))
        self._arrive(len(self._waits))

    def _in_pieces(self) -> None:
        """Let a part of a frame arrive, often the last one for a long time."""
        self._acknowledge()
        reference = self._reference
        if not reference.is_streaming:
            return
        data = _frame(_ACK, _offsets(reference.sent, 0))
        self._tell(data, (reference.sent, 0))
        for _ in range(self._rng.randrange(1, 5)):
            self._arrive(self._rng.choice((1, 15, 16, 17)))
            self._step()
            if reference.ended:
                return
            self._now_ms += self._rng.choice((0, 30, _SILENCE_MS))

    def _tell_wrong(self) -> None:
        """Let the slave send what no correct one sends."""
        rng, sent = self._rng, self._reference.sent
        wrong: tuple[tuple[bytes, object, int | None], ...] = (
            (_frame(_ACK, _offsets(sent + 1, 0)), (sent + 1, 0), None),
            (_frame(_ACK, _offsets(0, 1)), (0, 1), None),
            (_frame(_DATA, _offsets(0) + b"x"), _Wrong("a frame of kind DATA may not come here"), None),
            (_frame(_PING, _offsets(0)), _Wrong("a frame of kind PING may not come here"), None),
            (_frame(_REFUSAL, b"no"), _Wrong("a frame of kind REFUSAL may not come here"), None),
            (_frame(77), _Wrong("no frame has the kind 77"), 16),
            (_frame(_ACK, _offsets(0, 0), reserved=1), _Wrong("no frame has the kind 5"), 16),
            (_frame(_ACK, _offsets(0, 0), changed=1), _Wrong("the checksum of a frame does not match"), None),
            (_frame(_ACK, size=16 + 56 + 256 * 32 + 1), _Wrong("a frame states"), 16),
        )
        if rng.random() < 0.3:
            self._tell(*rng.choice(wrong))
        self._arrive(len(self._waits))

    def _narrow(self) -> None:
        self._reference.room = self._link.room = self._rng.choice(_ROOMS_BYTES)

    def _widen(self) -> None:
        self._reference.room = self._link.room = None

    def _retain(self) -> None:
        """Let retention remove log files, also such that were not sent."""
        log, offset = self._log, self._rng.choice((self._reference.sent, self._log.committed_offset))
        log.min_offset = max(log.min_offset, offset // _FILE_BYTES * _FILE_BYTES)

    def _leave(self) -> None:
        self._arrive(len(self._waits))
        self._link.has_left = True
        for _ in range(2):
            if not self._reference.ended:
                self._step()

    def _be_ended(self) -> None:
        self._ours.end("another reason")
        self._reference.ended, self._reference.counts = "another reason", False

    # ---- judges --------------------------------------------------------------------------------------------------

    def _judge(self, what: str) -> None:
        ours, reference, link = self._ours, self._reference, self._link
        found = bytes(link.outbox)
        link.outbox.clear()
        sent, reference.sent_bytes = reference.sent_bytes, b""
        if found != sent:
            raise GuaranteeBroken(15, f"after {what} other bytes are sent", _told(sent), _told(found))
        _is("whether the link has ended", link.is_closed, bool(reference.ended))
        if reference.ended not in ours.ended or bool(ours.ended) != bool(reference.ended):
            raise GuaranteeBroken(8, "a connection ends for another reason", reference.ended, ours.ended)
        if link.asked_bytes > _READ_BYTES:
            raise GuaranteeBroken(8, f"{link.asked_bytes} bytes are read at once")
        state = ReplicaState(
            link.peer, reference.replica.hex(), reference.counts, reference.sent, reference.received, reference.durable
        )
        _is("what operators are shown of a connection", ours.state, state)
        confirmed = reference.durable if self._settings.acknowledge == "durable" else reference.received
        _is("the offset that counts for puts", ours.confirmed, confirmed)
        if not reference.ended:
            _is("whether the next step is due soon", ours.expects_more, reference.is_burst)
            _is("whether a step stopped early", ours.has_more or not reference.is_cut_short, True)


def _told(data: bytes) -> str:
    """Return the head of the first frame, and the number of bytes."""
    return f"{len(data)} bytes, {data[:24].hex()}"


def _is(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise GuaranteeBroken(8, f"{what} is another one", str(wanted)[:300], str(found)[:300])
