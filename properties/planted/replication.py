"""Define bugs of replication: what a master counts, what a slave appends, and cuts.

Their ids are those of the list that each replication is tested with; R numbers are defects of RocketMQ 4.9.3
(docs/replication/design.md).
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.files import Files
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.durable_floor import DurableFloor
from tornpage.impl.parts import Parts
from tornpage.impl.put.receiving import Received, ReceivedRecords
from tornpage.impl.put.time_outs import Request, TimeOuts
from tornpage.impl.recovery.opening import AbortMarker
from tornpage.impl.replication.client import ReplicaClient
from tornpage.impl.replication.cutting import cut_log
from tornpage.impl.replication.frames import Action, BadFrame, Frame, FrameReader, Greeting, Kind, ack_frame
from tornpage.impl.replication.generations import Generation, GenerationsFile, common_point
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.impl.replication.requests import ReplicaRequests
from tornpage.impl.replication.server import ReplicaConnection, ReplicaServer
from tornpage.model.replication.operations import (
    AdvanceTime,
    ChangeRoles,
    CleanNode,
    CloseNode,
    CrashNode,
    FailCopy,
    FailFile,
    FailSyncOn,
    FlipBit,
    FlushNode,
    ForgeFrame,
    LimitLink,
    PutOn,
    ResetLink,
    RestartNode,
    RunAll,
    StepNode,
)
from tornpage.properties.planted.record import Origin, PlantedBug
from tornpage.properties.program.cluster_case import ClusterSettings

__all__ = ["BUGS"]


# ---- what the master counts ------------------------------------------------------------------------------------------


class _FirstReportBelieved(ReplicaConnection):
    """Go on from the end that a slave states first, whatever it is (R3)."""

    def _greet(self, theirs: Greeting) -> None:
        super()._greet(theirs)
        if theirs.has_log and self._is_last:
            self._unsent, self._is_last = b"", False
            self._start(theirs.end, _greeting(self))


def _greeting(connection: ReplicaConnection) -> Greeting:
    """Return the greeting of a master."""
    store = connection._store
    end, node, file_bytes = store.max_offset, connection._node, connection._file_bytes
    entries = connection._generations
    return Greeting(node, file_bytes, end > 0, store.min_offset, end, store.flushed_offset, entries)


class _NeverForgets(ReplicaRequests):
    """Keep what a replica has confirmed after it has gone (R18)."""

    def forget(self, replica: bytes) -> None:
        """Keep it."""


class _LastFileOnly(ReplicaConnection):
    """Begin with the last file for a slave without a log (R1, R8)."""

    def _greet(self, theirs: Greeting) -> None:
        super()._greet(theirs)
        if not theirs.has_log:
            self._unsent, ours = b"", _greeting(self)
            self._start(ours.end - ours.end % ours.file_bytes, ours)


class _WaitsForRemoved(ReplicaConnection):
    """Accept a slave that needs removed bytes, and send it heartbeats without end (R6)."""

    def _greet(self, theirs: Greeting) -> None:
        super()._greet(theirs)
        if self._is_last and self._unsent[0] == Kind.WELCOME and theirs.end < self._store.min_offset:
            self._unsent, self._is_last = b"", False
            self._start(theirs.end, _greeting(self))

    def _next_frame(self, now_ms: int) -> bytes:
        if self.sent >= self._store.min_offset:
            return super()._next_frame(now_ms)
        is_due = now_ms - self._sent_ms > self._settings.ha_send_heartbeat_interval
        return self._heartbeat() if is_due else b""


class _SocketsCount(ReplicaServer):
    """Count each connection as a replica, before its greeting (R17)."""

    def step(self, now_ms: int) -> None:
        super().step(now_ms)
        for number, connection in enumerate(self._connections):
            if not connection.counts:
                self._requests.note(number.to_bytes(4, "big"), 0)


class _LinksCount(ReplicaServer):
    """Count each link of a replica as a replica of its own."""

    def _end_others(self, newest: ReplicaConnection) -> None:
        """Let the older ones be."""

    def _note(self, connection: ReplicaConnection) -> None:
        super()._note(connection)
        if connection.counts:
            self._requests.forget(connection.replica)
            self._requests.note(id(connection).to_bytes(16, "big"), connection.confirmed)


class _TailNotSent(ReplicaConnection):
    """Leave out the unused end of a file, so that a frame goes on with the next file."""

    def _next_frame(self, now_ms: int) -> bytes:
        file = self._store._log.find(self.sent)
        if file is not None and file.blank_position is not None and self.sent - file.base_offset >= file.blank_position:
            self.sent = file.end_offset
        return super()._next_frame(now_ms)

    def _frame_at(self, offset: int, end: int) -> bytes:
        file = self._store._log.find(offset)
        if file is not None and file.blank_position is not None:
            end = file.base_offset + file.blank_position
        return super()._frame_at(offset, end)


# ---- puts that wait --------------------------------------------------------------------------------------------------


class _DroppedAtClose(ReplicaRequests):
    """Leave requests open at shutdown (R19)."""

    def close(self) -> None:
        """Answer nothing."""


class _NotFinished(TimeOuts):
    """Leave requests open at shutdown."""

    def finish(self) -> None:
        """Answer nothing."""


class _FromDequeue(ReplicaRequests):
    """Measure the deadline of a request from the end of the one before it (R22)."""

    def step(self, now_ms: int) -> int | None:
        """End one request, and give the others a new deadline."""
        if self._waiting and self._waiting[0][1] <= now_ms:
            _, _, first = self._waiting.popleft()
            due_ms = now_ms + self._timeout_ms
            self._waiting = deque((offset, due_ms, request) for offset, _, request in self._waiting)
            first.answer(first.timeout_status)
        return None


class _Unwatched(TimeOuts):
    """Leave time-outs of replicas to the requests."""

    def watch(self, request: Request, timeout_ms: int) -> bool:
        """Watch nothing."""
        return False


# ---- what a slave does -----------------------------------------------------------------------------------------------


class _RefusalIgnored(ReplicaClient):
    """Go on after a refused append (R12)."""

    def _receive(self, offset: int, data: memoryview) -> None:
        self._pending += data
        with memoryview(self._pending) as arrived:
            answer = self._store.append_to_commit_log(self._end, arrived)
        count = answer.appended_bytes if answer.refusal is None else len(self._pending)
        del self._pending[:count]
        self._end += count
        self._has_log = True


class _HoleKept(CommitLog):
    """Advance the end of the log after a failed copy (R12)."""

    def append_received(self, data: bytearray, *, offset: int, store_timestamp: int, ends_file: bool) -> None:
        try:
            super().append_received(data, offset=offset, store_timestamp=store_timestamp, ends_file=ends_file)
        except OSError:
            self.log.mapped[-1].written_position += len(data)


class _AcknowledgedEarly(ReplicaClient):
    """Acknowledge what has arrived before it is appended."""

    def _acknowledge(self, now_ms: int) -> None:
        end, has_log = self._end, self._has_log
        self._end, self._has_log = end + len(self._pending), has_log or len(self._pending) > 0
        super()._acknowledge(now_ms)
        self._end, self._has_log = end, has_log


class _TailKept(ReplicaClient):
    """Keep a tail that the master does not have (R4)."""

    def _join(self, action: Action, position: int, theirs: Greeting) -> None:
        if action is Action.CUT:
            raise BadFrame("the master has less")
        super()._join(action, position, theirs)


class _DurableEarly(ReplicaClient):
    """Acknowledge as durable what is not synced."""

    def _acknowledge(self, now_ms: int) -> None:
        if self._is_joined and not self._unsent and self._acknowledged != (self._end, self._end):
            self._unsent, self._acknowledged = ack_frame(self._end, self._end), (self._end, self._end)


class _BufferKept(ReplicaClient):
    """Keep the half frame of an old link for the new one."""

    def _begin(self, now_ms: int) -> None:
        reader = self._reader
        super()._begin(now_ms)
        self._reader = reader if reader._held else self._reader


class _HeartbeatIsData(ReplicaClient):
    """Advance by the size of a heartbeat (12 bytes)."""

    def _take(self, frame: Frame) -> None:
        super()._take(frame)
        if frame.kind is Kind.PING:
            self._end += 12


class _Unchecked(FrameReader):
    """Believe frames whose checksum does not match."""

    def check(self, data: bytes, checksum: int) -> None:
        """Check nothing."""


class _HalfRecords(ReceivedRecords):
    """Append the begin of a record that has not arrived completely (R26)."""

    def append(self, offset: int, data: memoryview) -> Received:
        answer = super().append(offset, data)
        rest = data[answer.appended_bytes :]
        at = offset + answer.appended_bytes
        if answer.refusal is None and len(rest) and len(rest) < self._log.file_bytes - at % self._log.file_bytes:
            self._commit_log.append_received(bytearray(rest), offset=at, store_timestamp=0, ends_file=False)
            return Received(len(data), None)
        return answer


def _without_checks(*arguments: Any, check: Callable[..., Any], **options: Any) -> ReceivedRecords:
    """Return a part that appends records without a look at their checksums (R11)."""

    def believed(view: memoryview, position: int, *, limit: int, offset: int) -> tuple[int, str | None]:
        return int.from_bytes(view[position : position + 4], "big"), None

    return ReceivedRecords(*arguments, check=believed, **options)


class _WaitsForRest(FrameReader):
    """Wait without end for the rest of a frame."""

    def check_time(self, now_ms: int, limit_ms: int) -> None:
        """Wait."""


class _AnySize(_WaitsForRest):
    """Accept every size that a frame states (R15, R16)."""

    def __init__(self, data_bytes_max: int) -> None:
        super().__init__(1 << 32)


class _FailedSyncCounts(ReplicaClient):
    """Acknowledge as durable what a failed sync was to make durable."""

    def _acknowledgement(self, received: int, durable: int) -> bytes:
        return super()._acknowledgement(received, received if self._syncs else durable)


class _SizeBelieved(_WaitsForRest):
    """Believe the size of a frame, and check only its body."""

    def check(self, data: bytes, checksum: int) -> None:
        if len(data) != 8:
            super().check(data, checksum)


# ---- generations, cuts and roles -------------------------------------------------------------------------------------


class _OneGeneration(GenerationsFile):
    """Begin no generation when a master is opened again (R9)."""

    def begin(self, *, log_begin: int, log_end: int) -> None:
        if not self.entries:
            super().begin(log_begin=log_begin, log_end=log_end)


class _BegunLate(ReplicatedStore):
    """Begin a generation only after its first append."""

    def _lead(self) -> None:
        self._opened_end: int | None = self.store.max_offset
        if not self._generations.entries:
            self._opened_end = None
            super()._lead()
            return
        begin = self._generations.begin
        self._generations.begin = lambda **_: None  # type: ignore[method-assign]
        super()._lead()
        self._generations.begin = begin  # type: ignore[method-assign]

    def step(self, now_ms: int) -> int:
        opened = getattr(self, "_opened_end", None)
        if opened is not None and self._server is not None and self.store.max_offset > opened:
            self._opened_end = None
            self._generations.begin(log_begin=0, log_end=self.store.max_offset)
            self._server._generations = self._generations.entries
        return super().step(now_ms)


def _by_number_only(
    ours: Sequence[Generation], our_end: int, theirs: Sequence[Generation], their_end: int
) -> int | None:
    """Compare generations by their numbers alone."""
    plain = [[Generation(each.number, 0, b"") for each in entries] for entries in (ours, theirs)]
    newest = max((each.number for each in plain[0] if each in plain[1]), default=None)
    if newest is None:
        return None
    ends = []
    for entries, end in ((ours, our_end), (theirs, their_end)):
        later = [each.start for each in entries if each.number > newest]
        ends.append(min(end, *later) if later else end)
    return min(ends)


def _nothing_erased(files: Files, directory: str, config: MessageStoreConfig, *, offset: int) -> None:
    """Lower the floor for a cut, and erase nothing."""
    floor = DurableFloor(files, f"{directory}/config/durableFloor", file_bytes=config.mapped_file_size_commit_log)
    floor.start(offset)
    floor.close()
    AbortMarker(files, directory).create()


class _OldMasterKept(ReplicatedStore):
    """Keep the link to the old master when its address changes (R20)."""

    def follow(self, master: str) -> None:
        """Change nothing."""


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

_TWO = ClusterSettings()
_THREE = ClusterSettings(nodes=3, quorum=2)
_THREE1 = ClusterSettings(nodes=3)
_AHEAD = (PutOn(body_bytes=100), RunAll(), CrashNode(), RestartNode())
"""A replica has a record that its master has lost."""


def _origin(number: str, title: str) -> Origin:
    return Origin(number, title, "open in 4.9.8", "yes")


BUGS = (
    PlantedBug("RB01", "the first report of a replica counts, whatever the master has", 15,
        Parts({ReplicaConnection: _FirstReportBelieved}),
        origin=_origin("RMQ-B66", "A replica ahead of its master acknowledges everything"),
        cluster=(_TWO, (*_AHEAD, AdvanceTime(), RunAll(), PutOn()))),
    PlantedBug("RB02", "a replica still counts after it has gone", 15,
        Parts({ReplicaRequests: _NeverForgets}), origin=_origin("R18", "The acknowledged maximum outlives its replica"),
        cluster=(_TWO, (RunAll(), ResetLink(1), RunAll(2)))),
    PlantedBug("RB03", "a replica without a log gets the last file only", 15,
        Parts({ReplicaConnection: _LastFileOnly}), origin=_origin("R1", "A request of 0 means the last file"),
        cluster=(_TWO, (PutOn(body_bytes=2500), PutOn(body_bytes=2500)))),
    PlantedBug("RB04", "a replica that is ahead keeps its tail", 15,
        Parts({ReplicaClient: _TailKept}), origin=_origin("R4", "No epoch, identity or truncation"),
        cluster=(_TWO, (PutOn(), RunAll(), CrashNode()))),
    PlantedBug("RB05", "a replica goes on after a refused append", 15,
        Parts({ReplicaClient: _RefusalIgnored}), origin=_origin("R12", "A failed append is ignored"),
        cluster=(_TWO, (FailFile(), PutOn(), RunAll()))),
    PlantedBug("RB06", "the log advances over a failed copy", 15,
        Parts({CommitLog: _HoleKept}), origin=_origin("R12", "A failed copy advances the position"),
        cluster=(_TWO, (RunAll(), FailCopy(), PutOn(), RunAll(1)))),
    PlantedBug("RB07", "a replica acknowledges before it appends", 15,
        Parts({ReplicaClient: _AcknowledgedEarly}),
        cluster=(_TWO, (RunAll(), LimitLink(1, size_bytes=100), PutOn(), RunAll(1)))),
    PlantedBug("RB08", "a replica acknowledges as durable what is not synced", 15,
        Parts({ReplicaClient: _DurableEarly}), origin=_origin("R10", "An acknowledgement means the page cache"),
        cluster=(_TWO, (PutOn(),))),
    PlantedBug("RB09", "a master that is opened again begins no generation", 15,
        Parts({GenerationsFile: _OneGeneration}), origin=_origin("R9", "Bytes that are not flushed are sent"),
        cluster=(_TWO, (*_AHEAD, PutOn(body_bytes=300)))),
    PlantedBug("RB10", "a new link begins with the half frame of the old one", 15,
        Parts({ReplicaClient: _BufferKept}),
        cluster=(_TWO, (RunAll(), LimitLink(1, size_bytes=30), PutOn(), RunAll(), ResetLink(1)))),
    PlantedBug("RB11", "a heartbeat advances the position of a replica", 15,
        Parts({ReplicaClient: _HeartbeatIsData}),
        cluster=(_TWO, (PutOn(), RunAll(), AdvanceTime(6000)))),
    PlantedBug("RB12", "the unused end of a file is not sent", 15,
        Parts({ReplicaConnection: _TailNotSent}),
        cluster=(_TWO, (PutOn(body_bytes=2500), PutOn(body_bytes=2500)))),
    PlantedBug("RB13", "a generation is written after its first append", 15,
        Parts({ReplicatedStore: _BegunLate}),
        cluster=(_TWO, (*_AHEAD, PutOn(body_bytes=300)))),
    PlantedBug("RB14", "generations are compared by their numbers only", 15,
        Parts({common_point: _by_number_only}),
        cluster=(_TWO, (RunAll(), CrashNode(), RestartNode(), PutOn(body_bytes=50), ChangeRoles(), PutOn(1)))),
    PlantedBug("RB15", "a cut erases nothing", 15,
        Parts({cut_log: _nothing_erased}),
        cluster=(_TWO, (PutOn(), RunAll(), CrashNode()))),
    PlantedBug("RB16", "puts that wait for a replica are dropped at shutdown", 16,
        Parts({ReplicaRequests: _DroppedAtClose, TimeOuts: _NotFinished}),
        origin=_origin("R19", "Queued replica requests never complete at shutdown"),
        cluster=(_TWO, (RunAll(), PutOn(), CloseNode(0)))),
    PlantedBug("RB17", "the deadline of a put begins when the one before it has ended", 16,
        Parts({ReplicaRequests: _FromDequeue, TimeOuts: _Unwatched}),
        origin=_origin("R22", "A request waits for those before it"),
        cluster=(_TWO, (RunAll(), PutOn(), PutOn(), AdvanceTime(3050)))),
    PlantedBug("RB18", "a replica that needs removed bytes waits without end", 15,
        Parts({ReplicaConnection: _WaitsForRemoved}),
        origin=_origin("R6", "A slave below the minimum of its master is stuck"),
        cluster=(_TWO, (PutOn(), RunAll(), CloseNode(1), PutOn(body_bytes=2500), PutOn(body_bytes=2500), FlushNode(),
                        StepNode(), CleanNode()))),
    PlantedBug("RB19", "a frame of any size is waited for", 15,
        Parts({FrameReader: _AnySize}), origin=_origin("R15, R16", "Sizes of frames are not checked"),
        cluster=(_TWO, (RunAll(), ForgeFrame(1, size_bytes=(1 << 32) - 20), PutOn()))),
    PlantedBug("half-frame-waited-for", "a replica waits without end for the rest of a frame", 15,
        Parts({FrameReader: _WaitsForRest}),
        cluster=(_TWO, (RunAll(), ForgeFrame(1, size_bytes=5_000), PutOn()))),
    PlantedBug("sync-failure-counted", "a replica acknowledges as durable what a failed sync did not keep", 15,
        Parts({ReplicaClient: _FailedSyncCounts}),
        cluster=(ClusterSettings(slave_syncs=True), (RunAll(), FailSyncOn(), PutOn(), RunAll(1)))),
    PlantedBug("RB20", "a replica believes garbage", 15,
        Parts({FrameReader: _Unchecked, ReceivedRecords: _without_checks}),
        origin=_origin("R11", "A replica never verifies what it appends"),
        cluster=(_TWO, (RunAll(), PutOn(), StepNode(), FlipBit(1, bit=500)))),
    PlantedBug("frame-size-believed", "a replica waits for as many bytes as a changed size states", 15,
        Parts({FrameReader: _SizeBelieved}),
        cluster=(_TWO, (RunAll(), PutOn(body_bytes=300), StepNode(), FlipBit(1, bit=40)))),
    PlantedBug("RB21", "a connection counts as a replica before its greeting", 15,
        Parts({ReplicaServer: _SocketsCount}), origin=_origin("R17", "Sockets are counted as slaves"),
        cluster=(_TWO, (RunAll(),))),
    PlantedBug("RB22", "two links of one replica count as two replicas", 15,
        Parts({ReplicaServer: _LinksCount}),
        cluster=(_THREE, (CrashNode(2), RunAll(), CrashNode(1, silent=True), RestartNode(1), RunAll()))),
    PlantedBug("RB23", "a replica stays with the old master when the address changes", 15,
        Parts({ReplicatedStore: _OldMasterKept}),
        origin=_origin("R20", "A new master address does not close the old connection"),
        cluster=(_THREE1, (ChangeRoles(), PutOn(1)))),
    PlantedBug("RB24", "a replica appends half records", 15,
        Parts({ReceivedRecords: _HalfRecords}),
        origin=_origin("R26", "A half record keeps the store from a clean exit"),
        cluster=(_TWO, (RunAll(), LimitLink(1, size_bytes=100), PutOn(), RunAll(1)))),
)  # fmt: skip
