"""The side of a master: accept replicas, send them the log, take their acknowledgements.

Each connection is a small state machine. It waits for the greeting of a slave, answers with START, CUT or GONE, then
sends frames of data and heartbeats. Everything is checked before it has an effect:

1. A replica counts once its first acknowledgement after the greeting has come. A bare connection never counts (R17).
2. An acknowledgement past what this connection has sent ends the connection (R3, R18).
3. A second connection of a replica ends its first one, so that a replica counts once.
4. A connection that is silent for `ha_housekeeping_interval` ends, and one whose frame is incomplete for that long.
5. A put whose message retention has removed is not confirmed any more. A replica that begins after it never has it.

Bytes of the log are copied into the frame, so no file is held while a frame waits (R28).
Source: `HAService.AcceptSocketService`, `HAConnection`.
"""

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tornpage.impl.replication.frames import (
    FRAME_BYTES_MAX,
    Action,
    BadFrame,
    Frame,
    FrameReader,
    Greeting,
    Kind,
    data_frame,
    greeting_of,
    ping_frame,
    read_ack,
    refusal_frame,
    welcome_frame,
)
from tornpage.impl.replication.generations import Generation, common_point
from tornpage.impl.replication.link import Link, Listener
from tornpage.impl.replication.requests import ReplicaRequests
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.store import MessageStore

__all__ = ["CONNECTION_BYTES_MAX", "ReplicaConnection", "ReplicaServer", "ReplicaState"]

_LOG = logging.getLogger("tornpage.replication")

Compare = Callable[[Sequence[Generation], int, Sequence[Generation], int], int | None]
"""See `impl.replication.generations.common_point`."""

_READ_BYTES = 64 << 10
_FRAMES_PER_STEP = 64
_FINDINGS_MAX = 100
_UNEVEN_BYTES = 16 << 10
"""A part of so many bytes is worth a frame of its own."""
_BURST_PAUSE_MS = 1
"""After an acknowledgement of that much, a smaller part waits so long for the next puts of the same callers."""
_REQUEST_BYTES_MAX = 0
"""A slave sends no data, so its frames are as long as a greeting at most."""
CONNECTION_BYTES_MAX = 2 * _READ_BYTES + FRAME_BYTES_MAX
"""Bytes that a connection holds of what its peer has sent: two copies of one read, and one incomplete frame."""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """One connection, for operators.

    Offsets are physical. `received` and `durable` are 0 before the first acknowledgement.
    """

    peer: str
    node: str
    counts: bool
    sent: int
    received: int
    durable: int


class ReplicaConnection:
    """One accepted link. `ended` is the reason once it is closed, else an empty text.

    Small puts share frames, steps and acknowledgements. While the replica has not acknowledged all records that were
    sent to it, less than half a frame is held back. It is sent after the acknowledgement, once it fills half a frame,
    or after `poll_interval`. A record is sent at once if everything before it is acknowledged. If more than was sent
    last time waits then, a part of it is held back, so that callers and replica work at the same time.
    """

    def __init__(
        self,
        link: Link,
        store: MessageStore,
        requests: ReplicaRequests,
        *,
        node: bytes,
        generations: Sequence[Generation],
        file_bytes: int,
        settings: ReplicationSettings,
        now_ms: int,
        reader: type[FrameReader] = FrameReader,
        compare: Compare = common_point,
    ) -> None:
        self.ended = ""
        self.replica = b""
        self.counts = False
        self.sent = self.received = self.durable = 0
        self._link = link
        self._store = store
        self._requests = requests
        self._node = node
        self._generations = tuple(generations)
        self._file_bytes = file_bytes
        self._settings = settings
        self._reader = reader(_REQUEST_BYTES_MAX)
        self._compare = compare
        self._unsent = b""
        self._is_streaming = False
        self._is_last = False
        self.expects_more = False
        self._stopped_early = False
        self._seen_end = 0  # the end of the sendable log when the last step looked
        self._flight_bytes = 0  # sent since everything before was acknowledged
        self._whole_sent = 0  # the highest sent offset at which a record is known to end
        self._heard_ms = self._sent_ms = now_ms

    @property
    def state(self) -> ReplicaState:
        """The state for operators."""
        return ReplicaState(self._link.peer, self.replica.hex(), self.counts, self.sent, self.received, self.durable)

    @property
    def confirmed(self) -> int:
        """The offset that counts for waiting puts."""
        return self.durable if self._settings.acknowledge == "durable" else self.received

    def step(self, now_ms: int) -> None:
        """Read, then write, without blocking."""
        try:
            self._read(now_ms)
            self._write(now_ms)
        except BadFrame as error:
            self.end(str(error))

    def end(self, reason: str) -> None:
        """End the connection."""
        if not self.ended:
            self.ended = reason
            self.counts = False
            self._link.close()

    # ---- reading -------------------------------------------------------------------------------------------------

    def _read(self, now_ms: int) -> None:
        for frame in self._reader.feed(self._receive(now_ms)):
            self._take(frame)
        self._reader.check_time(now_ms, self._settings.ha_housekeeping_interval)

    def _receive(self, now_ms: int) -> bytes:
        """Return what has arrived.

        Raises BadFrame if the link has ended or was silent for too long.
        """
        data = self._link.receive(_READ_BYTES)
        if data is None:
            raise BadFrame("the replica has ended the link")
        if data:
            self._heard_ms = now_ms
        elif now_ms - self._heard_ms > self._settings.ha_housekeeping_interval:
            raise BadFrame(f"nothing was received for {now_ms - self._heard_ms} ms")
        return data

    def _take(self, frame: Frame) -> None:
        if frame.kind is Kind.HELLO and not self.replica:
            self._greet(greeting_of(frame.body))
        elif frame.kind is Kind.ACK and self._is_streaming:
            self._acknowledge(*read_ack(frame.body))
        else:
            raise BadFrame(f"a frame of kind {frame.kind.name} may not come here")

    def _greet(self, theirs: Greeting) -> None:
        """Compare both logs and answer a slave."""
        store, self.replica = self._store, theirs.node
        begin, end = store.min_offset, store.max_offset
        ours = Greeting(self._node, self._file_bytes, end > 0, begin, end, store.flushed_offset, self._generations)
        if theirs.file_bytes != self._file_bytes:
            self._refuse(f"log files have {self._file_bytes} bytes here and {theirs.file_bytes} there")
            return
        if theirs.node == self._node:
            self._refuse("the replica has the identity of its master: it is a copy of this directory")
            return
        if not theirs.has_log:
            self._start(begin, ours)
            return
        point = self._compare(self._generations, end, theirs.generations, theirs.end)
        if point is None:
            self._refuse("both logs have no common generation: they belong to different stores")
        elif point < theirs.end:
            self._unsent += welcome_frame(Action.CUT, point, ours)
            self._is_last = True
        elif point < begin:
            self._unsent += welcome_frame(Action.GONE, begin, ours)
            self._is_last = True
        else:
            self._start(point, ours)

    def _start(self, position: int, ours: Greeting) -> None:
        self.sent, self._is_streaming = position, True
        self._unsent += welcome_frame(Action.START, position, ours)

    def _refuse(self, sentence: str) -> None:
        self._unsent += refusal_frame(sentence)
        self._is_last = True

    def _acknowledge(self, received: int, durable: int) -> None:
        if received > self.sent:
            raise BadFrame(f"offset {received} is acknowledged, but only {self.sent} was sent")
        self.received, self.durable, self.counts = received, durable, True

    # ---- writing -------------------------------------------------------------------------------------------------

    def _write(self, now_ms: int) -> None:
        self._stopped_early = False
        for _ in range(_FRAMES_PER_STEP):
            if not self._unsent and self._is_streaming:
                self._unsent = self._next_frame(now_ms)
            if not self._unsent:
                break
            count = self._link.send(self._unsent)
            if not count:
                return
            self._unsent, self._sent_ms = self._unsent[count:], now_ms
        else:
            self._stopped_early = True
        if self._is_last and not self._unsent:
            raise BadFrame("the answer to the greeting is sent")

    def _next_frame(self, now_ms: int) -> bytes:
        """Return the next frame of data or a heartbeat, b"" if nothing is to be sent."""
        if self.sent < self._store.min_offset:
            raise BadFrame(f"the log begins at {self._store.min_offset} now, and {self.sent} was not sent")
        self._seen_end = self._sendable_end
        is_acknowledged, begin = self._is_acknowledged, self.sent
        end = self._due_end(self._seen_end, now_ms)
        frame = self._frame_at(begin, end)
        if frame:
            self._whole_sent = end if self.sent >= end else self._whole_sent
            self._flight_bytes = self.sent - begin + (0 if is_acknowledged else self._flight_bytes)
            return frame
        if now_ms - self._sent_ms > self._settings.ha_send_heartbeat_interval:
            return self._heartbeat()
        return b""

    @property
    def _sendable_end(self) -> int:
        """The physical offset up to which the log may be sent. A record ends there."""
        store = self._store
        return store.flushed_offset if self._settings.send_flushed_only else store.committed_offset

    @property
    def _is_acknowledged(self) -> bool:
        """Whether the replica has acknowledged each whole record that was sent to it."""
        return self.received >= self._whole_sent

    def _due_end(self, end: int, now_ms: int) -> int:
        """Return up to where the log is sent now, of the sendable bytes up to `end`."""
        begin, settings = self.sent, self._settings
        self.expects_more = False
        if not self._is_acknowledged:
            is_small = end - begin < settings.ha_transfer_batch_size // 2
            return begin if is_small and now_ms - self._sent_ms < settings.poll_interval else end
        is_burst = self._flight_bytes > _UNEVEN_BYTES and now_ms - self._heard_ms <= _BURST_PAUSE_MS
        self.expects_more = is_burst and end - begin < self._flight_bytes // 2
        if self.expects_more:
            return begin
        if end - begin > self._flight_bytes + _UNEVEN_BYTES:
            middle = self._requests.end_from(begin + (end - begin + self._flight_bytes) // 2)
            return end if middle is None else min(middle, end)
        return end

    @property
    def wake_offset(self) -> int:
        """The sendable end of the log from which on a step has something to send at once."""
        if self._unsent or not self._is_streaming or self.ended:
            return sys.maxsize  # the link decides when a step is due
        if not self._is_acknowledged:
            return self.sent + self._settings.ha_transfer_batch_size // 2
        return self.sent + (self._flight_bytes // 2 if self.expects_more else 1)

    @property
    def has_more(self) -> bool:
        """Whether more can be sent at once: the step stopped early, or the log has grown since."""
        if self._stopped_early:
            return True
        end = self._sendable_end
        return end > self._seen_end and end >= self.wake_offset

    def _data(self, offset: int, data: memoryview) -> bytes:
        return data_frame(offset, data)

    def _heartbeat(self) -> bytes:
        return ping_frame(self._store.max_offset)

    def _frame_at(self, offset: int, end: int) -> bytes:
        """Return a frame with the next bytes of the log below `end`, b"" without any."""
        size_bytes = min(self._settings.ha_transfer_batch_size, end - offset)
        buffer = self._store.commit_log_data(offset) if size_bytes > 0 else None
        if buffer is None:
            return b""
        with buffer, buffer.view[:size_bytes] as data:
            self.sent = offset + len(data)
            return self._data(offset, data)


class ReplicaServer:
    """All connections of a master.

    `findings` are sentences about connections that ended, the newest last.
    """

    def __init__(
        self,
        store: MessageStore,
        listener: Listener,
        requests: ReplicaRequests,
        *,
        node: bytes,
        generations: Sequence[Generation],
        file_bytes: int,
        settings: ReplicationSettings,
        connection: type[ReplicaConnection] = ReplicaConnection,
        reader: type[FrameReader] = FrameReader,
        compare: Compare = common_point,
    ) -> None:
        self._new_connection = partial(connection, reader=reader, compare=compare)
        self.findings: list[str] = []
        self._store = store
        self._listener = listener
        self._requests = requests
        self._node = node
        self._generations = generations
        self._file_bytes = file_bytes
        self._settings = settings
        self._connections: list[ReplicaConnection] = []

    @property
    def replicas(self) -> tuple[ReplicaState, ...]:
        """The state of each connection."""
        return tuple(each.state for each in self._connections)

    @property
    def address(self) -> str:
        """The address at which it listens."""
        return self._listener.address

    @property
    def has_more(self) -> bool:
        """Whether a connection has more to send at once.

        Ask after a step. A put during the step did not wake the node.
        """
        return any(each.has_more for each in self._connections)

    @property
    def expects_more(self) -> bool:
        """Whether a connection waits a millisecond for puts that it expects."""
        return any(each.expects_more for each in self._connections)

    def step(self, now_ms: int) -> None:
        """Accept new links and let each connection read and write once."""
        self._requests.wake_offset = sys.maxsize  # puts during a step are noticed at its end
        self._requests.forgo(self._store.min_offset)
        while (link := self._listener.accept()) is not None:
            self._accept(link, now_ms)
        for connection in tuple(self._connections):
            connection.step(now_ms)
            if connection.replica and not connection.ended and len(self._connections) > 1:
                self._end_others(connection)
            self._note(connection)
        self._requests.step(now_ms)
        self._requests.wake_offset = min((each.wake_offset for each in self._connections), default=sys.maxsize)

    def _accept(self, link: Link, now_ms: int) -> None:
        if len(self._connections) >= self._settings.connections_max:
            link.close()
            self._find(link.peer, f"there are {self._settings.connections_max} connections already")
            return
        if self._settings.peers and link.peer.rpartition(":")[0] not in self._settings.peers:
            link.close()
            self._find(link.peer, "this address is not in `peers`")
            return
        self._connections.append(
            self._new_connection(
                link,
                self._store,
                self._requests,
                node=self._node,
                generations=self._generations,
                file_bytes=self._file_bytes,
                settings=self._settings,
                now_ms=now_ms,
            )
        )

    def _end_others(self, newest: ReplicaConnection) -> None:
        """End older connections of the same replica."""
        place = self._connections.index(newest)
        for older in self._connections[:place]:
            if older.replica == newest.replica:
                older.end("the replica has a newer connection")

    def _note(self, connection: ReplicaConnection) -> None:
        for ended in [each for each in self._connections if each.ended]:
            self._connections.remove(ended)
            self._find(ended.state.peer, ended.ended)
            if ended.replica and not any(each.replica == ended.replica and each.counts for each in self._connections):
                self._requests.forget(ended.replica)
        if connection.counts:
            self._requests.note(connection.replica, connection.confirmed)

    def _find(self, peer: str, reason: str) -> None:
        _LOG.info("connection_ended peer=%s reason=%r", peer, reason)
        self.findings = [*self.findings[1 - _FINDINGS_MAX :], f"{peer}: {reason}"]

    @property
    def most_received(self) -> int | None:
        """The highest offset that a counted replica has received; None without one."""
        return max((each.received for each in self._connections if each.counts), default=None)

    def close(self) -> None:
        """End all connections and stop listening."""
        self._listener.close()
        for connection in self._connections:
            connection.end("the master is closing")
            self._requests.forget(connection.replica)
        self._connections = []
