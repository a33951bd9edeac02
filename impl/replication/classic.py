"""The protocol of RocketMQ 4.9.3, for a Java broker as the peer.

    slave to master   i64: the end of the slave's log; the first one is a request, later ones are acknowledgements
    master to slave   i64 offset, i32 size, bytes of the log; size 0 is a heartbeat

Integers are big-endian. Nothing states an identity, a file size, a generation or a checksum. What can be checked
without new bytes is checked:

1. A request or acknowledgement past what was sent ends the link (R3, R18). A request below the begin of the log ends it
   with a finding (R6).
2. A request of 0 gets the whole log from its begin. RocketMQ sends its last file only (R1, R8). No heartbeat is sent to
   an empty slave before its first bytes, since it would create a file at a wrong place.
3. Sizes have a limit in both directions, and a slave appends checked records only (R11, R15, R16).
4. A replica is known by its host, and counts once (R17).

A replica that is ahead of its master cannot be cut, and a difference below the request cannot be seen.
Source: `HAConnection`, `HAService.HAClient`.
"""

import struct

from tornpage.impl.replication.client import ReplicaClient
from tornpage.impl.replication.frames import BadFrame
from tornpage.impl.replication.server import ReplicaConnection

__all__ = ["ClassicClient", "ClassicConnection"]

_OFFSET = struct.Struct(">q")
_HEAD = struct.Struct(">qi")
_BODY_BYTES_MAX = 4 << 20
"""The longest body that a slave of 4.9.3 can take is 12 bytes less."""


class ClassicConnection(ReplicaConnection):
    """One accepted link of a master that speaks the protocol of 4.9.3."""

    _held = b""
    _begin = 0
    _has_sent_data = False

    def _read(self, now_ms: int) -> None:
        arrived = self._held + self._receive(now_ms)
        whole = len(arrived) - len(arrived) % _OFFSET.size
        self._held = arrived[whole:]
        for (offset,) in _OFFSET.iter_unpack(arrived[:whole]):
            if self._is_streaming:
                self._report(offset)
            else:
                self._request(offset)

    def _request(self, offset: int) -> None:
        """Take the first report: where to begin, and an acknowledgement."""
        begin, end = self._store.min_offset, self._store.max_offset
        if not 0 <= offset <= end:
            raise BadFrame(f"the replica has a log up to {offset}, and this one ends at {end}")
        if 0 < offset < begin:
            raise BadFrame(f"the replica needs {offset}, and the log begins at {begin}")
        self.replica = self._link.peer.rpartition(":")[0].encode()
        self._begin = self.sent = offset or begin
        self._is_streaming = True
        self._has_sent_data = offset > 0
        self.received = self.durable = offset
        self.counts = True

    def _report(self, offset: int) -> None:
        if offset == 0 and not self.received:
            return  # an empty slave repeats its request as a heartbeat
        if not self._begin <= offset:
            raise BadFrame(f"offset {offset} is acknowledged, below the begin {self._begin} of what was sent")
        self._acknowledge(offset, offset)

    def _data(self, offset: int, data: memoryview) -> bytes:
        self._has_sent_data = True
        return b"".join((_HEAD.pack(offset, len(data)), data))

    def _heartbeat(self) -> bytes:
        return _HEAD.pack(self.sent, 0) if self._has_sent_data else b""


class ClassicClient(ReplicaClient):
    """The link of a slave that speaks the protocol of 4.9.3.

    It acknowledges what it has appended.
    """

    _arrived = b""

    def _begin(self, now_ms: int) -> None:
        super()._begin(now_ms)
        self._arrived = b""
        self._is_joined = True
        self._generations.adopt(())  # nothing is known of the history of what will arrive
        self._unsent = _OFFSET.pack(self._end)
        self._acknowledged = self._end, self._end

    def _read(self, now_ms: int) -> None:
        self._arrived += self._receive_bytes(now_ms)
        while len(self._arrived) >= _HEAD.size:
            offset, size_bytes = _HEAD.unpack_from(self._arrived)
            if not 0 <= size_bytes <= _BODY_BYTES_MAX:
                raise BadFrame(f"a frame states {size_bytes} bytes, more than {_BODY_BYTES_MAX} or less than 0")
            if len(self._arrived) < _HEAD.size + size_bytes:
                return
            body = self._arrived[_HEAD.size : _HEAD.size + size_bytes]
            self._arrived = self._arrived[_HEAD.size + size_bytes :]
            self._take_data(offset, body)

    def _take_data(self, offset: int, body: bytes) -> None:
        if not self._has_log and not self._pending:
            if offset % self._file_bytes:
                raise BadFrame(f"an empty log cannot begin at {offset}, inside a file of {self._file_bytes} bytes")
            self._end = offset
        if body:
            self._receive(offset, memoryview(body))
        elif offset != self._end + len(self._pending):
            raise BadFrame(f"the master is at {offset}, and {self._end + len(self._pending)} is next here")

    def _acknowledgement(self, received: int, durable: int) -> bytes:
        return _OFFSET.pack(received if self._has_log else 0)
