"""The side of a slave: connect to the master, greet, append what arrives, acknowledge.

The greeting is sent at once (RocketMQ waits 5 s, R14). Bytes are appended only at the end of the log, as whole checked
records (impl/put/receiving.py). An acknowledgement is sent after the append that it covers, and its durable offset
after the sync. Whatever goes wrong ends the link; the next link begins with empty buffers and asks from the end of the
log. A master that is silent for `ha_housekeeping_interval` counts as gone (R13).
Source: `HAService.HAClient`.
"""

import logging

from tornpage.impl.replication.frames import (
    Action,
    BadFrame,
    Frame,
    FrameReader,
    Greeting,
    Kind,
    ack_frame,
    hello_frame,
    read_data,
    read_welcome,
)
from tornpage.impl.replication.generations import GenerationsFile
from tornpage.impl.replication.link import Link, Network
from tornpage.impl.replication.settings import TRANSFER_BATCH_BYTES_MAX, ReplicationSettings
from tornpage.impl.store import MessageStore

__all__ = ["ReplicaClient"]

_LOG = logging.getLogger("tornpage.replication")

_READ_BYTES = 256 << 10


class ReplicaClient:
    """The link of a slave to its master.

    `cut_to` is the offset to which the log must be cut before anything can be received, None while there is no need.
    The owner closes the store, cuts the log and makes a new client. `finding` says why the last link ended. With
    `syncs` the log is synced before each acknowledgement.
    """

    def __init__(
        self,
        store: MessageStore,
        network: Network,
        generations: GenerationsFile,
        *,
        file_bytes: int,
        settings: ReplicationSettings,
        syncs: bool,
        reader: type[FrameReader] = FrameReader,
    ) -> None:
        self._new_reader = reader
        self.cut_to: int | None = None
        self.finding = ""
        self._store = store
        self._network = network
        self._generations = generations
        self._file_bytes = file_bytes
        self._settings = settings
        self._syncs = syncs
        self._link: Link | None = None
        self._reader = reader(0)
        self._pending = bytearray()
        self._unsent = b""
        self._has_log = False
        self._end = 0
        self._is_joined = False
        self._acknowledged: tuple[int, int] | None = None
        self._heard_ms = self._sent_ms = 0
        self._connect_ms = 0

    @property
    def is_joined(self) -> bool:
        """Whether the master has accepted the log of this slave."""
        return self._is_joined

    def step(self, now_ms: int) -> None:
        """Connect if needed, then read, append, acknowledge, without blocking."""
        if self.cut_to is not None:
            return
        if self._link is None and not self._connect(now_ms):
            return
        try:
            self._read(now_ms)
            self._acknowledge(now_ms)
            self._write(now_ms)
        except BadFrame as error:
            self.end(str(error))
        except OSError as error:
            self.end(f"{error.strerror or error} ({error.filename})")

    def end(self, reason: str) -> None:
        """End the link and forget what arrived without being appended."""
        if self._link is not None:
            self._link.close()
            self._link = None
            self.finding = reason
            _LOG.info("link_ended reason=%r", reason)

    def _connect(self, now_ms: int) -> bool:
        address = self._settings.ha_master_address
        if not address or now_ms < self._connect_ms:
            return False
        self._connect_ms = now_ms + self._settings.reconnect_interval
        self._link = self._network.connect(address)
        if self._link is None:
            self.finding = f"no master answers at {address}"
            return False
        self._begin(now_ms)
        return True

    def _begin(self, now_ms: int) -> None:
        """Begin a new link with empty buffers."""
        store = self._store
        self._reader = self._new_reader(TRANSFER_BATCH_BYTES_MAX)
        self._pending.clear()
        self._is_joined, self._acknowledged = False, None
        self._end = store.max_offset
        self._has_log = self._end > 0
        self._heard_ms = self._sent_ms = now_ms
        self._unsent = hello_frame(
            Greeting(
                self._generations.node,
                self._file_bytes,
                self._has_log,
                store.min_offset,
                store.max_offset,
                store.flushed_offset,
                self._generations.entries,
            )
        )

    # ---- reading -------------------------------------------------------------------------------------------------

    def _read(self, now_ms: int) -> None:
        for frame in self._reader.feed(self._receive_bytes(now_ms)):
            self._take(frame)
        self._reader.check_time(now_ms, self._settings.ha_housekeeping_interval)

    def _receive_bytes(self, now_ms: int) -> bytes:
        """Return what has arrived.

        Raises BadFrame if the link has ended or was silent for too long.
        """
        assert self._link is not None
        data = self._link.receive(_READ_BYTES)
        if data is None:
            raise BadFrame("the master has ended the link")
        if data:
            self._heard_ms = now_ms
        elif now_ms - self._heard_ms > self._settings.ha_housekeeping_interval:
            raise BadFrame(f"nothing was received for {now_ms - self._heard_ms} ms")
        return data

    def _take(self, frame: Frame) -> None:
        if frame.kind is Kind.REFUSAL:
            raise BadFrame(f"the master refuses: {frame.body.decode(errors='replace')}")
        if frame.kind is Kind.WELCOME and not self._is_joined:
            self._join(*read_welcome(frame.body))
        elif frame.kind is Kind.DATA and self._is_joined:
            self._receive(*read_data(frame.body))
        elif frame.kind is not Kind.PING or not self._is_joined:
            raise BadFrame(f"a frame of kind {frame.kind.name} may not come here")

    def _join(self, action: Action, position: int, theirs: Greeting) -> None:
        if theirs.file_bytes != self._file_bytes:
            raise BadFrame(f"log files have {theirs.file_bytes} bytes there and {self._file_bytes} here")
        if action is Action.CUT:
            self._must_cut(position)
        if action is Action.GONE:
            if not self._settings.discard_when_gone:
                raise BadFrame(f"the log of the master begins at {position}, past the end {self._end} of this one")
            self._must_cut(0)
        if self._has_log and position != self._end:
            raise BadFrame(f"the master begins at {position}, and this log ends at {self._end}")
        self._generations.adopt(theirs.generations)
        self._end, self._is_joined = position, True

    def _must_cut(self, offset: int) -> None:
        self.cut_to = offset
        raise BadFrame(f"the log has to be cut to {offset}")

    def _receive(self, offset: int, data: memoryview) -> None:
        """Append the whole records that have arrived, and keep the rest until the next frame."""
        if offset != self._end + len(self._pending):
            raise BadFrame(f"bytes for offset {offset}, but {self._end + len(self._pending)} is next")
        if self._pending:
            self._pending += data
            with memoryview(self._pending) as arrived:
                answer = self._store.append_to_commit_log(self._end, arrived)
            del self._pending[: answer.appended_bytes]
        else:  # the append copies the records, and only the rest is kept
            answer = self._store.append_to_commit_log(self._end, data)
            self._pending += data[answer.appended_bytes :]
        self._end += answer.appended_bytes
        self._has_log = self._has_log or answer.appended_bytes > 0
        if answer.must_empty:
            self._must_cut(0)  # a failed append or a power loss has left a file without a byte, elsewhere
        if answer.refusal is not None:
            raise BadFrame(answer.refusal)

    # ---- writing -------------------------------------------------------------------------------------------------

    def _acknowledge(self, now_ms: int) -> None:
        """Queue an acknowledgement if an offset has moved, or as a heartbeat."""
        if not self._is_joined or self._unsent:
            return
        if self._syncs and self._has_log and self._store.flushed_offset < self._end:
            self._store.flush()
        end = self._end if self._has_log else 0  # nothing below the begin of the master's log is here
        offsets = end, min(end, self._store.flushed_offset)
        is_due = now_ms - self._sent_ms > self._settings.ha_send_heartbeat_interval
        if offsets != self._acknowledged or is_due:
            self._unsent, self._acknowledged = self._acknowledgement(*offsets), offsets

    # planted: sync-failure-counted
    def _acknowledgement(self, received: int, durable: int) -> bytes:
        return ack_frame(received, durable)

    def _write(self, now_ms: int) -> None:
        assert self._link is not None
        if self._unsent and (count := self._link.send(self._unsent)):
            self._unsent, self._sent_ms = self._unsent[count:], now_ms
