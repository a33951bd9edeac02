"""One store on a recorded disk, on which the tasks of a scenario act; what they ask and are answered is recorded.

A task that comes to no end, or that ends in an error nobody promised, is told as such. The clock stands still: nothing
here depends on time.
"""

from dataclasses import dataclass
from typing import Any

from tornpage.impl.io.files import DiskUsage
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import Service
from tornpage.impl.store import MessageStore
from tornpage.model.operations import (
    AskMaximum,
    AskMinimum,
    Close,
    Commit,
    DeleteTopics,
    Flush,
    GetRecord,
    Pull,
    Put,
    PutBatch,
    Query,
    QueryProgress,
    Step,
)
from tornpage.model.operations import InterleavedOperation as Operation
from tornpage.model.payloads import BORN_TIMESTAMP, given_of
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.failing_disk import UnmarkedDisk
from tornpage.properties.disk.recording_files import EMPTY_DISK
from tornpage.properties.explore.interleavings.parts import stepped_parts
from tornpage.properties.explore.interleavings.runner import SteppedRunner
from tornpage.properties.judge.answers import Answer
from tornpage.properties.judge.linearizability.asking import asked
from tornpage.properties.judge.linearizability.calls import Call, Recorder
from tornpage.properties.judge.linearizability.requests import (
    CLOSED,
    CleanStep,
    Closing,
    CommitOffset,
    CommitStep,
    DispatchStep,
    FlushRequest,
    GetRequest,
    KeyRequest,
    PullRequest,
    PutRequest,
    QueryOffset,
    QueueMaximum,
    QueueMinimum,
    TopicDeletion,
)
from tornpage.properties.program.case import Settings
from tornpage.properties.program.log_places import ROOT
from tornpage.properties.program.translation import layout_of, store_config

__all__ = ["Promise", "Stage"]

_GROUP = "g"
_TOTAL_BYTES = 10**12
_BUDGET_BYTES = 1 << 30
_KNOWN_STEPS = {"reput": DispatchStep(), "commit": CommitStep(), "clean": CleanStep()}
"""The steps that callers can tell; others change nothing that they are answered."""


@dataclass(frozen=True, slots=True)
class Promise:
    """Somebody was told that the log is on the disk up to an offset, when the journal had so many entries."""

    journal: int
    end_offset: int
    who: str


class Stage:
    """The store, its disk, its services by name, the history, and what was promised to be durable."""

    def __init__(self, settings: Settings, *, tracker: DirtyTracker, parts: Parts) -> None:
        self.layout = layout_of(settings)
        self.history = Recorder()
        self.promises: list[Promise] = []
        self.services: dict[str, SteppedRunner] = {}
        self.files = UnmarkedDisk(EMPTY_DISK, tracker=tracker, budget_bytes=_BUDGET_BYTES)
        self._next: dict[tuple[int, str, int], int] = {}
        self.use_disk(0)
        self.store = MessageStore.open(
            ROOT,
            store_config(settings),
            files=self.files,
            clock=self._clock,
            parts=stepped_parts(parts, runner=self._runner),
            memory_bytes=1 << 33,
        )

    @staticmethod
    def _clock() -> int:
        return BORN_TIMESTAMP

    def _runner(self, service: Service) -> SteppedRunner:
        runner = self.services[service.name] = SteppedRunner(service, self._clock)
        return runner

    def use_disk(self, percent: int) -> None:
        """Say how full the disk is; what can still be allocated is not changed by it."""
        self.files.scripted_usage = DiskUsage(_TOTAL_BYTES, _TOTAL_BYTES * (100 - percent) // 100)

    # ---- what tasks do -------------------------------------------------------------------------------------------

    def do(self, task: int, operation: Operation) -> None:
        """Carry out one operation of a task, and record it."""
        match operation:
            case Put() | PutBatch():
                self._put(task, operation)
            case GetRecord():
                self._ask(task, GetRequest(self._place_of(operation)))
            case Pull():
                self._pull(task, operation)
            case AskMaximum(topic, queue_id):
                self._ask(task, QueueMaximum(topic, queue_id))
            case AskMinimum(topic, queue_id):
                self._ask(task, QueueMinimum(topic, queue_id))
            case Commit(topic, queue_id, offset):
                wanted = self._next.get((task, topic, queue_id), 0) if offset < 0 else offset
                self._ask(task, CommitOffset(_GROUP, topic, queue_id, wanted))
            case QueryProgress(topic, queue_id):
                self._ask(task, QueryOffset(_GROUP, topic, queue_id))
            case Query(topic, key, max_num):
                self._ask(task, KeyRequest(topic, key, max_num))
            case Flush():
                self._flush(task)
            case Close():
                self._ask(task, Closing())
            case DeleteTopics(in_use):
                self._ask(task, TopicDeletion(in_use))
            case Step(service):
                self.step(task, service)
            case _:
                raise HarnessError(f"no task does {operation!r}")

    def step(self, task: int, name: str) -> None:
        """Let a service take a step, and record what callers may know of it."""
        runner = self.services.get(name)
        if runner is None:
            raise HarnessError(f"the store has no service {name!r}")
        request = _KNOWN_STEPS.get(name)
        call = None if request is None else self.history.begin(task, request)
        runner.step()
        if call is not None:
            self.history.end(call, self.store.min_offset if isinstance(request, CleanStep) else None)

    def _ask(self, task: int, request: Any) -> Call:
        return asked(self.store, self.history, task, request)

    def _put(self, task: int, put: Put | PutBatch) -> None:
        call = self._ask(task, PutRequest(given_of(put)))
        answer = call.answer
        if self.layout.sync_flush and answer.status == "PUT_OK":
            self._promised(answer.offset + answer.size_bytes, f"{call.request}")

    def _flush(self, task: int) -> None:
        call = self._ask(task, FlushRequest())
        if call.answer is not CLOSED and call.answer.durable:
            self._promised(call.answer.flushed_offset, "flush()")

    def _promised(self, end_offset: int, who: str) -> None:
        self.promises.append(Promise(len(self.files.journal), end_offset, who))

    def _place_of(self, operation: GetRecord) -> int:
        answered = [each for each in self.answers() if each.offset >= 0]
        if operation.record < 0 or not answered:
            return self.store.max_offset
        return answered[operation.record % len(answered)].offset + operation.behind

    def _pull(self, task: int, operation: Pull) -> None:
        place = (task, operation.topic, operation.queue_id)
        offset = self._next.get(place, 0) if operation.offset < 0 else operation.offset
        call = self._ask(task, PullRequest(operation.topic, operation.queue_id, offset, operation.max_msg_nums))
        if call.answer is not CLOSED:
            self._next[place] = call.answer.next_begin_offset

    def answers(self) -> list[Answer]:
        """Return the answers to puts so far, in the order in which the puts began."""
        return [
            call.answer
            for call in self.history.calls
            if isinstance(call.request, PutRequest) and call.answer is not None
        ]
