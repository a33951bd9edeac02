"""Hold a store on a recorded disk for the tasks of a scenario; record calls and answers.

A task that does not end, or that ends in an unexpected error, is reported as such. The clock moves by a millisecond at
the begin of each operation, so that each record has a time of its own.
"""

from dataclasses import dataclass, replace

from tornpage.impl.io.files import DiskUsage
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import Service
from tornpage.impl.store import MessageStore
from tornpage.model.answers import Answer, PutAnswer, QueueRead
from tornpage.model.operations import (
    AskMaximum,
    AskMinimum,
    Close,
    Commit,
    DeleteTopics,
    Flush,
    GetAt,
    GetRecord,
    Pull,
    Put,
    PutBatch,
    Query,
    QueryProgress,
    Step,
)
from tornpage.model.operations import InterleavedOperation as Operation
from tornpage.model.payloads import BORN_TIMESTAMP
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.failing_disk import UnmarkedDisk
from tornpage.properties.disk.recording_files import EMPTY_DISK
from tornpage.properties.explore.interleavings.parts import stepped_parts
from tornpage.properties.explore.interleavings.runner import SteppedRunner
from tornpage.properties.judge.linearizability.asking import ask
from tornpage.properties.judge.linearizability.calls import Recorder, request_text
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import ROOT
from tornpage.properties.program.translation import layout_of, store_config

__all__ = ["MEMORY_BYTES", "Promise", "Stage"]

MEMORY_BYTES = 1 << 33
"""The memory of the machine, as the store sees it."""

_TOTAL_BYTES = 10**12
_BUDGET_BYTES = 1 << 30
_KNOWN_STEPS = {"reput": Step("reput"), "commit": Step("commit"), "clean": Step("clean")}
"""The steps that callers can observe. Other steps change no answer."""


@dataclass(frozen=True, slots=True)
class Promise:
    """Record an acknowledgement that the log is on disk up to an offset.

    `journal` is the length of the journal at that time.
    """

    journal: int
    end_offset: int
    who: str


class Stage:
    """Hold the store, its disk, its services by name, the history and the promises.

    Each operation begins `tick_ms` milliseconds after the one before it.
    """

    def __init__(self, settings: Settings, *, tracker: DirtyTracker, parts: Parts, tick_ms: int = 1) -> None:
        self.settings = settings
        self.layout = layout_of(settings)
        self.wall_ms = BORN_TIMESTAMP
        self._tick_ms = tick_ms
        self.history = Recorder()
        self.promises: list[Promise] = []
        self.services: dict[str, SteppedRunner] = {}
        self._tracker = tracker
        self.files = self.disk_of(EMPTY_DISK)
        self._next: dict[tuple[int, str, int], int] = {}
        self.use_disk(0)
        self.store = MessageStore.open(
            ROOT,
            store_config(settings),
            files=self.files,
            clock=self._clock,
            parts=stepped_parts(parts, runner=self._runner),
            memory_bytes=MEMORY_BYTES,
        )

    @property
    def is_closed(self) -> bool:
        """Whether a task has closed the store."""
        return any(isinstance(call.request, Close) for call in self.history.calls)

    def _clock(self) -> int:
        return self.wall_ms

    def _runner(self, service: Service) -> SteppedRunner:
        runner = self.services[service.name] = SteppedRunner(service, self._clock)
        return runner

    def disk_of(self, image: Image) -> UnmarkedDisk:
        """Return a recorded disk with an image."""
        return UnmarkedDisk(image, tracker=self._tracker, budget_bytes=_BUDGET_BYTES)

    def use_disk(self, percent: int) -> None:
        """Set the reported disk usage. It does not change what can be allocated."""
        self.files.scripted_usage = DiskUsage(_TOTAL_BYTES, _TOTAL_BYTES * (100 - percent) // 100)

    # ---- what tasks do -------------------------------------------------------------------------------------------

    def do(self, task: int, operation: Operation) -> None:
        """Carry out one operation of a task, and record it."""
        self.wall_ms += self._tick_ms
        match operation:
            case Put() | PutBatch():
                self._put(task, operation)
            case GetRecord():
                self._ask(task, GetAt(self._place_of(operation)))
            case Pull():
                self._pull(task, operation)
            case Commit(topic, queue_id, offset):
                wanted = self._next.get((task, topic, queue_id), 0) if offset < 0 else offset
                self._ask(task, Commit(topic, queue_id, wanted))
            case Flush():
                self._flush(task)
            case GetAt() | AskMaximum() | AskMinimum() | Query() | QueryProgress() | Close() | DeleteTopics():
                self._ask(task, operation)
            case Step(service):
                self.step(task, service)
            case _:
                raise HarnessError(f"no task does {operation!r}")

    def step(self, task: int, name: str) -> None:
        """Let a service take a step, and record what callers can observe of it."""
        runner = self.services.get(name)
        if runner is None:
            raise HarnessError(f"the store has no service {name!r}")
        known = _KNOWN_STEPS.get(name)
        call = None if known is None else self.history.begin(task, known)
        runner.step()
        if call is not None:
            self.history.end(call, Answer(client=self.store.min_offset) if name == "clean" else Answer())

    def _ask(self, task: int, operation: Operation) -> Answer:
        call = ask(self.store, self.history, task, operation)
        assert call.answer is not None
        return call.answer

    def _put(self, task: int, put: Put | PutBatch) -> None:
        put, began_ms = replace(put, advance_ms=0), self.wall_ms
        answer = self._ask(task, put).put
        if isinstance(answer, PutAnswer) and answer.offset >= 0:
            _require_time(answer.store_timestamp, began_ms, self.wall_ms)
        if self.layout.sync_flush and isinstance(answer, PutAnswer) and answer.status == "PUT_OK":
            self._promised(answer.offset + answer.size_bytes, request_text(put))

    def _flush(self, task: int) -> None:
        answer = self._ask(task, Flush())
        if answer.durable and isinstance(answer.client, int):
            self._promised(answer.client, "flush()")

    def _promised(self, end_offset: int, who: str) -> None:
        self.promises.append(Promise(len(self.files.journal), end_offset, who))

    def _place_of(self, operation: GetRecord) -> int:
        answered = [offset for offset in self._put_offsets() if offset >= 0]
        if operation.record < 0 or not answered:
            return self.store.max_offset
        return answered[operation.record % len(answered)] + operation.behind

    def _pull(self, task: int, operation: Pull) -> None:
        place = (task, operation.topic, operation.queue_id)
        offset = self._next.get(place, 0) if operation.offset < 0 else operation.offset
        answer = self._ask(task, replace(operation, offset=offset)).client
        if isinstance(answer, QueueRead):
            self._next[place] = answer.next_begin_offset

    def _put_offsets(self) -> list[int]:
        """Return the record offsets of the puts so far, in the order in which the puts began."""
        answers = (call.answer.put for call in self.history.calls if call.answer is not None)
        return [answer.offset for answer in answers if isinstance(answer, PutAnswer)]


def _require_time(store_timestamp: int, began_ms: int, ended_ms: int) -> None:
    """Check contract 8: a put answers with a store time from the time of its call."""
    if not began_ms <= store_timestamp <= ended_ms:
        expected = f"{began_ms} to {ended_ms}"
        raise GuaranteeBroken(8, "a put answers with a time outside of its call", expected, str(store_timestamp))
