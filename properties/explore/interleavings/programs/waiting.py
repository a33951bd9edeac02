"""Benches of parts with waiting callers: pulls, flushes, replicas, files and threads."""

import struct
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, cast

from tornpage.impl.config.policy import AllocationPolicy
from tornpage.impl.errors import StoreClosed
from tornpage.impl.io.files import Files
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.memory import LockedMemory
from tornpage.impl.log.allocation import AllocateMappedFiles
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.log.transient_store_pool import TransientStorePool
from tornpage.impl.message.message import GetStatus, PutStatus
from tornpage.impl.put.group_commit import GroupCommit
from tornpage.impl.put.put_answers import LightFuture
from tornpage.impl.put.time_outs import Awaited, TimeOuts
from tornpage.impl.read.held_pulls import PullRequest, QueueName
from tornpage.impl.read.pull_hold import PullHold
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.read.read_buffer import BufferLease, ReadBuffers, RecordBuffer
from tornpage.impl.replication.requests import ReplicaRequests
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.properties.explore.interleavings.programs.bench import Bench, Until, call, program, require_rule, slow
from tornpage.properties.explore.interleavings.programs.drawing import Entry, entry, numbered
from tornpage.properties.explore.interleavings.runner import SteppedRunner
from tornpage.properties.explore.interleavings.scenario import Scenario
from tornpage.properties.scheduler import CooperativeLock

__all__ = ["BENCHES"]


def _guard() -> CooperativeLock:
    return CooperativeLock("guard")


class _Memory:
    """Stand in for locked memory. It may be released once, and not while it is used."""

    def __init__(self, size_bytes: int) -> None:
        self.view = memoryview(bytearray(size_bytes))
        self.released = 0

    def release(self) -> None:
        self.released += 1
        require_rule(self.released == 1, "a buffer is released twice", contract=11)


class PoolBench(Bench):
    """Preallocated buffers."""

    modules = ("tornpage.impl.log.transient_store_pool",)
    count = 2

    def __init__(self) -> None:
        self.memories: list[_Memory] = []
        self.pool = TransientStorePool(self.count, 4, reserve=cast(Callable[[int], LockedMemory], self._reserve))
        self.lent: dict[int, list[memoryview]] = {}

    def _reserve(self, size_bytes: int) -> _Memory:
        self.memories.append(_Memory(size_bytes))
        return self.memories[-1]

    def borrow(self, name: int) -> bool:
        view = self.pool.borrow()
        if view is None:
            return False
        before = view[0]
        require_rule(before == 0, "a buffer is lent twice", contract=11, found=before)
        view[0] = 1
        self.lent.setdefault(name, []).append(view)
        return True

    def give_back(self, name: int) -> None:
        if self.lent.get(name):
            view = self.lent[name].pop()
            view[0] = 0
            self.pool.give_back(view)

    def close(self) -> int:
        return self.pool.close()

    def state(self) -> object:
        released = sum(memory.released for memory in self.memories)
        free = self.pool.free
        total = free + sum(map(len, self.lent.values())) + released
        require_rule(total == self.count, "buffers are lost", contract=11, found=f"{total} of {self.count}")
        return free, released, self.pool.close(), sum(memory.released for memory in self.memories)

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("borrow", (1,), role="first"),
        entry("give_back", (1,), role="first"),
        entry("borrow", (2,), role="second"),
        entry("give_back", (2,), role="second"),
        entry("close"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("pool", [call("borrow", 1)], [call("borrow", 2)]),
        program("pool", [call("borrow", 1), call("give_back", 1)], [call("borrow", 2), call("give_back", 2)]),
        program("pool", [call("give_back", 1)], [call("close")], before=[call("borrow", 1)]),
        program("pool", [call("borrow", 1)], [call("close")]),
        program("pool", [call("give_back", 1)], [call("borrow", 3)], before=[call("borrow", 1), call("borrow", 2)]),
        program("pool", [call("close")], [call("close")], before=[call("borrow", 1)]),
    )


class SmallPoolBench(PoolBench):
    """One preallocated buffer."""

    count = 1
    menu: ClassVar[tuple[Entry, ...]] = (
        entry("borrow", (1,), role="first"),
        entry("give_back", (1,), role="first"),
        entry("borrow", (2,), role="second"),
        entry("give_back", (2,), role="second"),
        entry("close"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("small pool", [call("borrow", 1)], [call("borrow", 2)]),
        program("small pool", [call("give_back", 1)], [call("borrow", 2)], before=[call("borrow", 1)]),
    )


_NO_ROOM = 28
"""ENOSPC, the planned failure of a creation."""


class _LogFile:
    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset


class _Maker:
    """Stand in for the maker of log files: one file for each offset at a time."""

    file_bytes = 10

    def __init__(self) -> None:
        self.there: set[int] = set()
        self.fails = 0

    def path_of(self, base_offset: int) -> str:
        return str(base_offset)

    def make(self, base_offset: int) -> _LogFile:
        slow("a file is created")
        if self.fails:
            self.fails -= 1
            raise OSError(_NO_ROOM, "planned failure")
        require_rule(base_offset not in self.there, "a log file is created twice", found=base_offset)
        self.there.add(base_offset)
        slow("a file is synced")
        return _LogFile(base_offset)

    def remove(self, file: _LogFile) -> None:
        self.there.discard(file.base_offset)


class AllocationBench(Bench):
    """Log files that a service creates ahead.

    One task takes them, as a put does under the put lock.
    """

    modules = ("tornpage.impl.log.allocation",)

    def __init__(self) -> None:
        self.maker = _Maker()
        self.runners: list[SteppedRunner] = []
        self.allocation = AllocateMappedFiles(
            cast(LogFileMaker, self.maker), policy=AllocationPolicy(files_ahead=1), runner=self._runner
        )
        self.taken: dict[int, MappedFile] = {}
        self.takes = 0
        self.has_failed = False

    def _runner(self, service: Service) -> SteppedRunner:
        self.runners.append(SteppedRunner(service, lambda: 0))
        return self.runners[-1]

    def take(self, index: int) -> int:
        try:
            file = self.allocation.take(10 * index)
        finally:
            self.takes += 1
        self.taken[index] = file
        return file.base_offset

    def give_back(self, index: int) -> None:
        self.allocation.give_back(self.taken.pop(index))

    def take_next(self) -> None:
        """Take the next file.

        The number of tries of the service depends on the schedule, so no answer is compared.
        """
        try:
            offset = self.take(len(self.taken))
        except OSError as error:
            found = str(error) if error.errno != _NO_ROOM or not self.has_failed else ""
            require_rule(not found, "a put meets another failure than that of the creation", found=found)
        else:
            wanted = 10 * (len(self.taken) - 1)
            require_rule(offset == wanted, "a put gets another file than the next one", found=offset)

    def give_back_last(self) -> None:
        if self.taken:
            self.give_back(len(self.taken) - 1)

    @classmethod
    def completed(cls, scenario: Scenario) -> Scenario:
        """Return the program with the service in a task of its own."""
        takes = sum(each.call == "take_next" for task in (scenario.before, *scenario.tasks) for each in task)  # type: ignore[union-attr]
        return replace(scenario, tasks=(*scenario.tasks, (call("serve", takes),)))

    def serve(self, takes: int) -> None:
        runner = self.runners[0]
        while True:
            Until("work", lambda: runner.is_woken or self.takes >= takes).wait()
            if not runner.is_woken:
                return
            runner.step()

    def fail(self, count: int) -> None:
        self.maker.fails = count
        self.has_failed |= count > 0

    def state(self) -> object:
        self.maker.fails = 0
        for _ in range(4):
            self.runners[0].step()
        there = sorted(self.maker.there)
        self.allocation.close()
        left = sorted(self.maker.there - {file.base_offset for file in self.taken.values()})
        require_rule(not left, "a close leaves files that no put has used", found=left)
        return "" if self.has_failed else there

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("take_next", role="put lock"),
        entry("give_back_last", role="put lock"),
        entry("fail", (0, 1, 2)),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("allocation", [call("take", 0), call("take", 1)], [call("serve", 2)]),
        program(
            "allocation",
            [call("take", 1), call("give_back", 1), call("take", 1)],
            [call("serve", 3)],
            before=[call("take", 0)],
        ),
        program("allocation", [call("fail", 1), call("take", 0), call("take", 0)], [call("serve", 2)]),
    )


class TimeOutsBench(Bench):
    """Requests with a deadline."""

    modules = ("tornpage.impl.put.time_outs",)

    def __init__(self) -> None:
        self.time_outs = TimeOuts()
        self.answers: dict[int, list[PutStatus]] = {}
        self.due_ms: int | None = None
        self.woken = False
        self.finished = False
        self.requests: dict[int, Awaited] = {}
        self.told: set[int] = set()

    def watch(self, number: int, deadline_ms: int) -> None:
        if number in self.answers:
            return
        answers = self.answers[number] = []
        request = Awaited(
            answers.append, end_offset=number, deadline_ms=deadline_ms, timeout_status=PutStatus.FLUSH_DISK_TIMEOUT
        )
        if self.time_outs.watch(request, deadline_ms):
            self.woken = True
        self.requests[number] = request

    def step(self, now_ms: int) -> None:
        self.woken = False
        self.due_ms = self.time_outs.step(now_ms)

    def answer(self, number: int) -> None:
        if number in self.requests:
            self.told.add(number)
            self.requests[number].answer(PutStatus.PUT_OK)

    def finish(self) -> None:
        self.time_outs.finish()
        self.finished = True

    def state(self) -> object:
        answers = {number: list(map(str, said)) for number, said in sorted(self.answers.items())}
        waiting = any(not said for said in answers.values())
        is_due = self.woken or self.due_ms is not None
        require_rule(is_due or not waiting, "no step is due for a request without an answer", contract=16)
        require_rule(not (self.finished and waiting), "a request gets no answer after the end", contract=16)
        if waiting:
            self.step(1_000)
        left = [number for number, said in self.answers.items() if len(said) != 1]
        require_rule(not left, "a request does not get one answer", contract=16, found=left)
        # the service answers several requests one after the other, and a caller may answer one of them meanwhile
        return {number: "answered" if number in self.told else said for number, said in answers.items()}

    menu: ClassVar[tuple[Entry, ...]] = (
        *numbered("watch", (1, 2, 3), (10, 20)),
        entry("step", (5, 10, 20), role="service"),
        *numbered("answer", (1, 2, 3), of="watch"),
        entry("finish", role="service"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("time-outs", [call("watch", 1, 10)], [call("step", 10)], before=[call("watch", 2, 10)]),
        program("time-outs", [call("watch", 1, 10)], [call("finish")]),
        program("time-outs", [call("watch", 1, 10)], [call("watch", 2, 20)]),
        program("time-outs", [call("watch", 1, 10)], [call("step", 5)], before=[call("watch", 2, 20)]),
        program("time-outs", [call("step", 10)], [call("finish")], before=[call("watch", 1, 10), call("watch", 2, 20)]),
        program(
            "time-outs", [call("watch", 3, 30)], [call("step", 15)], before=[call("watch", 1, 10), call("watch", 2, 20)]
        ),
        program(
            "time-outs", [call("watch", 3, 10)], [call("step", 10)], before=[call("watch", 1, 10), call("answer", 1)]
        ),
    )


_LATE = 1_000
"""An offset past those of all programs."""


class ReplicasBench(Bench):
    """Puts that wait for replicas."""

    modules = ("tornpage.impl.replication.requests",)

    def __init__(self) -> None:
        self.replicas = ReplicaRequests(lambda: 0, timeout_ms=10, in_sync_replicas=1)
        self.answers: dict[int, list[PutStatus]] = {}

    def request(self, offset: int) -> None:
        if offset in self.answers:
            return
        said = self.answers[offset] = []
        timeout = PutStatus.FLUSH_SLAVE_TIMEOUT
        self.replicas.request(Awaited(said.append, end_offset=offset, deadline_ms=10, timeout_status=timeout))

    def note(self, replica: int, offset: int) -> None:
        self.replicas.note(b"%d" % replica, offset)

    def forget(self, replica: int) -> None:
        self.replicas.forget(b"%d" % replica)

    def step(self, now_ms: int) -> None:
        self.replicas.step(now_ms)

    def forgo(self, offset: int) -> None:
        self.replicas.forgo(offset)

    def close(self) -> None:
        self.replicas.close()

    def waiting(self) -> int:
        return self.replicas.waiting

    def end_from(self, offset: int) -> int | None:
        return self.replicas.end_from(offset)

    def state(self) -> object:
        answers = {offset: list(map(str, said)) for offset, said in sorted(self.answers.items())}
        acknowledged = self.replicas.acknowledged_offset
        self.replicas.step(1_000)
        left = [offset for offset, said in self.answers.items() if not said]
        require_rule(not left, "a request for replicas gets no answer", contract=16, found=left)
        self._require_counts()
        return answers, acknowledged

    def _require_counts(self) -> None:
        """Check that a confirmation counts at once, and only while its replica is there.

        Raises GuaranteeBroken.
        """
        self.request(_LATE)
        self.replicas.note(b"9", _LATE)
        found = self.replicas.acknowledged_offset
        require_rule(found == _LATE, "a confirmation does not count", found=found)
        require_rule(bool(self.answers[_LATE]), "a confirmed request has no answer", contract=16)
        self.replicas.forget(b"9")
        found = self.replicas.acknowledged_offset
        require_rule(found != _LATE, "a replica that left counts", found=found)
        self.request(2 * _LATE)
        due_ms = self.replicas.step(1_000)
        require_rule(due_ms is None, "a deadline is left after the last request", found=due_ms)

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("request", (3,), role="first").then("request", (5,)),
        *numbered("request", (6,)),
        entry("note", (1, 2), (4, 9)),
        entry("forget", (1, 2)),
        entry("step", (5, 10), role="service"),
        entry("forgo", (4, 6), role="service"),
        entry("close", role="service"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("replicas", [call("request", 5)], [call("note", 1, 5)]),
        program("replicas", [call("request", 5)], [call("close")]),
        program("replicas", [call("request", 5)], [call("request", 3)]),
        program("replicas", [call("note", 1, 5)], [call("note", 2, 9)], before=[call("request", 5)]),
        program("replicas", [call("note", 1, 5)], [call("forget", 2)], before=[call("note", 2, 9)]),
        program(
            "replicas", [call("forget", 1)], [call("note", 2, 7)], before=[call("note", 1, 9), call("request", 20)]
        ),
        program("replicas", [call("step", 10)], [call("request", 6)], before=[call("request", 5)]),
        program("replicas", [call("step", 10)], [call("note", 1, 5)], before=[call("request", 5)]),
        program("replicas", [call("step", 10)], [call("close")], before=[call("request", 5)]),
        program("replicas", [call("forgo", 6)], [call("note", 1, 5)], before=[call("request", 5), call("request", 7)]),
        program(
            "replicas", [call("note", 1, 5)], [call("note", 2, 5)], before=[call("request", 4), call("request", 5)]
        ),
        program("replicas", [call("note", 1, 5)], [call("close")], before=[call("request", 4)]),
    )


class ReplicaLooksBench(ReplicasBench):
    """Looks at the puts that wait for replicas."""

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("request", (3,), role="first").then("request", (5,)),
        entry("note", (1,), (4,)),
        entry("waiting"),
        entry("end_from", (4,)),
    )
    programs = ()


class _Pulls:
    """Stand in for the reads of a store: two queues with filtered messages."""

    def __init__(self) -> None:
        self.queues: dict[QueueName, list[bool]] = {("T", 0): [], ("T", 1): []}

    def _result(self, queue: QueueName, offset: int) -> GetMessageResult:
        matches = self.queues[queue]
        maximum = len(matches)
        if any(matches[offset:]):
            return GetMessageResult(GetStatus.FOUND, offset + 1, 0, maximum)
        status = GetStatus.NO_MATCHED_MESSAGE if offset < maximum else GetStatus.OFFSET_OVERFLOW_ONE
        if not maximum:
            status = GetStatus.NO_MESSAGE_IN_QUEUE
        return GetMessageResult(status, maximum, 0, maximum)

    def pull(self, request: PullRequest) -> GetMessageResult:
        slow("a queue is read")
        return self._result(request.queue, request.offset)

    def look(self, request: PullRequest, offset: int) -> GetMessageResult:
        slow("a queue is looked at")
        return self._result(request.queue, offset)

    def range_of(self, queue: QueueName) -> tuple[int, int]:
        slow("bounds are read")
        return 0, len(self.queues[queue])


class HoldBench(Bench):
    """Pulls that wait for a message."""

    modules = ("tornpage.impl.read.pull_hold", "tornpage.impl.read.held_pulls")
    held_max = 2

    def __init__(self) -> None:
        self.pulls = _Pulls()
        self.runners: list[SteppedRunner] = []
        self.now_ms = 0
        self.hold = PullHold(
            self.pulls,
            runner=self._runner,
            held_max=self.held_max,
            short_polling_ms=None,
            path="/s",
            guard=_guard,
        )
        self.answers: dict[int, Future[GetMessageResult]] = {}
        self.begun: set[int] = set()
        self.has_deleted = False
        self.queues: dict[int, QueueName] = {}

    def _runner(self, service: Service) -> SteppedRunner:
        self.runners.append(SteppedRunner(service, lambda: self.now_ms))
        return self.runners[-1]

    def pull(self, number: int, queue: int = 0) -> None:
        if number not in self.begun:
            self.begun.add(number)
            self.queues[number] = "T", queue
            try:
                self.answers[number] = self.hold.pull(PullRequest(("T", queue), 0, 1), 10)
            except StoreClosed as error:  # as that of a pull that was held at the stop
                self.answers[number] = Future()
                self.answers[number].set_exception(error)

    def put(self, queue: int = 0, matches: int = 1) -> None:
        self.pulls.queues["T", queue].append(bool(matches))
        if self.hold.held_count:
            self.hold._note({("T", queue)})  # as `dispatched` does with the name of each run

    def deleted(self) -> None:
        self.hold.queues_deleted()

    def delete(self, queue: int) -> None:
        """Delete a queue, whose numbers restart."""
        self.has_deleted = True
        self.pulls.queues["T", queue].clear()
        self.hold.queues_deleted()

    def cancel(self, number: int) -> bool:
        answer = self.answers.get(number)
        return answer is not None and answer.cancel()

    def step(self) -> None:
        self.runners[0].step()

    def late(self) -> None:
        self.now_ms = 50
        self.runners[0].step()

    def stop(self) -> None:
        self.hold.stop()

    def state(self) -> object:
        if self.runners[0].is_woken:
            self.runners[0].step()
        answers = {number: _text(answer) for number, answer in sorted(self.answers.items())}
        there = {queue for queue, matches in self.pulls.queues.items() if any(matches)}
        missed = [number for number, said in answers.items() if said == "waits" and self.queues[number] in there]
        require_rule(not missed, "a pull waits although its message is there", contract=16, found=missed)
        held = self.hold.held_count
        waiting = sum(said == "waits" for said in answers.values())
        require_rule(held == waiting, "the number of held pulls is wrong", contract=16, found=f"{held} of {waiting}")
        self._require_woken()
        self.now_ms = 100
        self.runners[0].step()
        left = [number for number, answer in self.answers.items() if not answer.done()]
        require_rule(not left, "a pull gets no answer after its deadline", contract=16, found=left)
        if self.has_deleted:  # a queue that is deleted while a pull is answered may have lost the message
            answers = {number: "answered" if said.startswith("GetStatus") else said for number, said in answers.items()}
        return answers, held

    def _require_woken(self) -> None:
        """Check that a message in its queue ends the wait of each pull. Raises GuaranteeBroken."""
        for queue in range(2):
            self.put(queue)
        if self.runners[0].is_woken:
            self.runners[0].step()
        left = [number for number, answer in self.answers.items() if not answer.done()]
        require_rule(not left, "a pull waits although its message has come", contract=16, found=left)

    menu: ClassVar[tuple[Entry, ...]] = (
        *numbered("pull", (1, 2), (0, 1)),
        entry("put", (0, 1), (0, 1), role="dispatch"),
        entry("put", (0,), (0,), role="dispatch").then("step"),
        entry("delete", (0, 1), role="dispatch"),
        entry("delete", (0,), role="dispatch").then("put", (0,), (1,)),
        *numbered("cancel", (1, 2), of="pull"),
        entry("step"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("hold", [call("pull", 1)], [call("put")]),
        program("hold", [call("pull", 1)], [call("stop")]),
        program("hold", [call("pull", 1)], [call("pull", 2)]),
        program("hold", [call("put")], [call("step")], before=[call("pull", 1)]),
        program("hold", [call("deleted")], [call("step")], before=[call("pull", 1)]),
        program("hold", [call("cancel", 1)], [call("put"), call("step")], before=[call("pull", 1)]),
        program("hold", [call("cancel", 1)], [call("late")], before=[call("pull", 1)]),
        program("hold", [call("pull", 2)], [call("late")], before=[call("pull", 1)]),
        program("hold", [call("late")], [call("stop")], before=[call("pull", 1)]),
        program("hold", [call("cancel", 1)], [call("cancel", 2)], before=[call("pull", 1), call("pull", 2)]),
        program("hold", [call("cancel", 1)], [call("pull", 2)], before=[call("pull", 1)]),
        program("hold", [call("late")], [call("put"), call("step")], before=[call("pull", 1)]),
    )


class EndingHoldBench(HoldBench):
    """A hold whose pulls end by time, by the client and by its stop. No message arrives."""

    def cancel(self, number: int) -> bool:
        """Cancel a pull.

        A stop that has taken the pull may not have answered it yet, so the result is not compared.
        """
        super().cancel(number)
        return False

    def state(self) -> object:
        super().state()
        return ""

    menu: ClassVar[tuple[Entry, ...]] = (
        *numbered("pull", (1, 2), (0,)),
        *numbered("cancel", (1, 2), of="pull"),
        entry("late"),
        entry("stop", role="stop"),
    )
    programs = ()


class FullHoldBench(HoldBench):
    """A hold for one pull.

    No message arrives, since a pull that another one keeps out has read its queue before.
    """

    held_max = 1
    menu: ClassVar[tuple[Entry, ...]] = (
        *numbered("pull", (1, 2), (0, 1)),
        *numbered("cancel", (1, 2), of="pull"),
        entry("step"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("full hold", [call("pull", 1)], [call("pull", 2)]),
        program("full hold", [call("cancel", 1)], [call("pull", 2)], before=[call("pull", 1)]),
    )


def _text(answer: "Future[Any]") -> str:
    if answer.cancelled():
        return "cancelled"
    if not answer.done():
        return "waits"
    error = answer.exception()
    return type(error).__name__ if error is not None else str(answer.result().status)


class GroupCommitBench(Bench):
    """Puts that wait for a flush."""

    modules = ("tornpage.impl.put.group_commit",)

    def __init__(self) -> None:
        self.written = self.flushed = 0
        self.commit = GroupCommit(self._flush, guard=_guard)
        self.answers: dict[int, list[PutStatus]] = {}

    def _flush(self) -> int:
        written = self.written
        slow("the log is synced")
        self.flushed = max(self.flushed, written)
        return self.flushed

    def submit(self, number: int) -> None:
        if number in self.answers:
            return
        self.written = max(self.written, number)
        answers = self.answers[number] = []
        request = Awaited(answers.append, end_offset=number, deadline_ms=0, timeout_status=PutStatus.FLUSH_DISK_TIMEOUT)
        self.commit.submit(request)

    def step(self) -> None:
        self.commit.step(0)

    def finish(self) -> None:
        self.commit.finish()

    def state(self) -> object:
        self.commit.step(0)
        self.commit.finish()
        answers = {number: list(map(str, said)) for number, said in sorted(self.answers.items())}
        wrong = [number for number, said in answers.items() if len(said) != 1]
        require_rule(not wrong, "a put does not get one answer", contract=16, found=wrong)
        return answers

    menu: ClassVar[tuple[Entry, ...]] = (
        *numbered("submit", (1, 2, 3)),
        entry("step", role="service"),
        entry("finish", role="service"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("group commit", [call("submit", 1)], [call("step")]),
        program("group commit", [call("submit", 1)], [call("finish")]),
        program("group commit", [call("submit", 1)], [call("submit", 2)], before=[call("finish")]),
        program("group commit", [call("submit", 1), call("step")], [call("submit", 2)]),
        program("group commit", [call("step")], [call("submit", 2)], before=[call("submit", 1)]),
    )


class AnswerBench(Bench):
    """The answer of one put, with a waiting caller and a callback."""

    modules = ("tornpage.impl.put.put_answers",)

    def __init__(self) -> None:
        self.answer: LightFuture[int] = LightFuture()
        self.called = 0
        self.is_set = False

    def set(self) -> None:
        if not self.is_set:
            self.is_set = True
            self.answer.set_result(1)

    def wait(self) -> int:
        Until("an answer or a caller that waits", lambda: True).wait()
        return self.answer.result(5)

    def add(self) -> None:
        self.answer.add_done_callback(self._called)

    def _called(self, _answer: "Future[int]") -> None:
        self.called += 1

    def state(self) -> object:
        return self.called, self.answer.done()

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("wait", waits=True),
        entry("set", role="service"),
        entry("add"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("answer", [call("wait")], [call("set")]),
        program("answer", [call("add")], [call("set")]),
        program("answer", [call("wait")], [call("set")], [call("wait")]),
    )


class _Counting:
    """A service that counts its steps and asks for none."""

    name = "counting"

    def __init__(self) -> None:
        self.steps = 0
        self.after_stop = 0
        self.is_stopped = False

    def step(self, _now_ms: int) -> int | None:
        slow("a service works")
        self.steps += 1
        self.after_stop += self.is_stopped
        return None


class RunnerBench(Bench):
    """The thread of a service."""

    modules = ("tornpage.impl.service.runner",)
    threads = 1

    def __init__(self) -> None:
        self.service = _Counting()
        self.runner = ThreadRunner(self.service)

    def wake(self) -> None:
        before = self.service.steps
        self.runner.wake()
        Until("a step after a wake", lambda: self.service.steps > before or self.service.is_stopped).wait()

    def start(self) -> None:
        self.runner.start(after_ms=0)
        Until("the first step", lambda: self.service.steps > 0 or self.service.is_stopped).wait()

    def stop(self) -> None:
        self.runner.stop()
        self.service.is_stopped = True

    @classmethod
    def completed(cls, scenario: Scenario) -> Scenario:
        """Return the program without earlier calls, since these have no thread, and with a stop."""
        first, *others = scenario.tasks
        return replace(scenario, before=(), tasks=((*first, call("stop")), *others))

    def state(self) -> object:
        require_rule(not self.service.after_stop, "a step runs after the stop of its service", contract=16)
        return ""

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("wake"),
        entry("start"),
        entry("stop"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("runner", [call("wake"), call("stop")], [call("wake")]),
        program("runner", [call("wake"), call("wake"), call("stop")]),
        program("runner", [call("start"), call("stop")]),
        program("runner", [call("wake")], [call("stop")]),
        program("runner", [call("start")], [call("stop")]),
        program("runner", [call("start"), call("wake"), call("stop")], [call("wake")]),
    )


class _Mapped:
    """Stand in for a disk with one mapped file."""

    def __init__(self) -> None:
        self.unmapped = self.closed = 0

    def map(self, _file: object) -> object:
        class Mapping:
            view = memoryview(bytearray(8))

        return Mapping()

    def unmap(self, mapping: Any) -> None:
        with suppress(ValueError):
            require_rule(not mapping.view.nbytes, "a file is unmapped under a view", contract=11)
        slow("a file is unmapped")
        self.unmapped += 1
        require_rule(self.unmapped == 1, "a file is unmapped twice", contract=11)

    def close(self, _file: object) -> None:
        self.closed += 1
        require_rule(self.closed == 1, "a file is closed twice", contract=11)


class MappedFileBench(Bench):
    """The references on a mapped file."""

    modules = ("tornpage.impl.io.mapped_file",)

    def __init__(self) -> None:
        self.disk = _Mapped()
        self.file = MappedFile(cast(Files, self.disk), cast(Any, None), base_offset=0, written_position=8, guard=_guard)
        self.holds = 0

    def read(self) -> bool:
        if not self.file.hold():
            return False
        slow("a reader reads")
        require_rule(not self.disk.unmapped, "memory is released under a reader", contract=11)
        self.file.release()
        return True

    def hold(self) -> bool:
        is_held = self.file.hold()
        self.holds += is_held
        return is_held

    def release(self) -> None:
        if self.holds:
            require_rule(not self.disk.unmapped, "memory is released under a reader", contract=11)
            self.holds -= 1
            self.file.release()

    def close(self) -> None:
        self.file.close()

    def unmap(self) -> None:
        self.file.unmap_if_unused()

    def state(self) -> object:
        while self.holds:
            self.release()
        self.file.close()
        require_rule(self.disk.unmapped == 1, "a closed file stays mapped", contract=11, found=self.disk.unmapped)
        return self.disk.unmapped, self.disk.closed, self.file.is_unreferenced

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("hold").then("release"),
        entry("close"),
        entry("unmap"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("mapped file", [call("read")], [call("close")]),
        program("mapped file", [call("read")], [call("read")]),
        program("mapped file", [call("close")], [call("close")]),
        program("mapped file", [call("close")], [call("unmap")]),
    )


class _Held:
    """Stand in for a log file that readers hold."""

    base_offset, end_offset = 0, 8

    def __init__(self) -> None:
        self.references = 1
        self.view = memoryview(bytearray(8))

    def hold(self) -> bool:
        self.references += 1
        return True

    def release(self) -> None:
        self.references -= 1
        require_rule(self.references >= 1, "a reference is released twice", contract=11)

    def unmap_if_unused(self) -> bool:
        slow("a file is unmapped")
        return self.references == 1

    @property
    def is_unreferenced(self) -> bool:
        return self.references == 1


class BuffersBench(Bench):
    """The buffers that readers hold."""

    modules = ("tornpage.impl.read.read_buffer",)

    def __init__(self) -> None:
        self.buffers = ReadBuffers(guard=_guard)
        self.files = [_Held(), _Held()]
        self.leases: dict[int, BufferLease] = {}
        self.begun: set[int] = set()
        self.given_back: set[int] = set()

    def lease(self, name: int, file: int) -> bool:
        if name in self.begun:
            return False
        self.begun.add(name)
        lease = self.buffers.lease(cast(MappedFile, self.files[file]))
        if lease is None:
            return False
        self.leases[name] = lease
        return True

    def give_back(self, name: int) -> None:
        if name in self.leases and name not in self.given_back:
            self.given_back.add(name)
            self.leases[name].give_back()

    def end(self, name: int) -> None:
        """End a lease.

        A `shut` or `revoke` ends one lease after the other, so it is not compared which call ended this one.
        """
        if name in self.leases:
            self.leases[name].end()

    def revoke(self, file: int) -> None:
        self.buffers.revoke(cast(MappedFile, self.files[file]))

    def held(self) -> bool:
        return self.buffers.held >= 0

    def shut(self) -> None:
        self.buffers.shut()

    def leaked(self) -> bool:
        return self.buffers.leaked >= 0

    def state(self) -> object:
        is_shut = self.buffers.is_shut
        held = [file.references - 1 for file in self.files]
        require_rule(
            not is_shut or not any(held), "a buffer is held after all were taken back", contract=11, found=held
        )
        ended = sorted(name for name, lease in self.leases.items() if lease.ended)
        self.buffers.log_leaks()  # a call beside `shut` may have found some files closed, and others not
        lent = sorted(self.files.index(cast(_Held, file)) for file in self.buffers._lent)
        return held, ended, is_shut, lent

    menu: ClassVar[tuple[Entry, ...]] = (
        *numbered("lease", (1, 2, 3), (0, 1)),
        *numbered("give_back", (1, 2, 3), of="lease"),
        entry("end", (1, 2, 3)),
        entry("revoke", (0, 1)),
        entry("held"),
        entry("shut"),
    )
    programs: ClassVar[tuple[Scenario, ...]] = (
        program("buffers", [call("lease", 1, 0)], [call("shut")]),
        program("buffers", [call("give_back", 1)], [call("shut")], before=[call("lease", 1, 0)]),
        program("buffers", [call("give_back", 1)], [call("revoke", 0)], before=[call("lease", 1, 0)]),
        program("buffers", [call("end", 1)], [call("end", 1)], before=[call("lease", 1, 0)]),
        program("buffers", [call("lease", 2, 0)], [call("held")], before=[call("lease", 1, 0)]),
        program("buffers", [call("lease", 2, 0)], [call("revoke", 1)], before=[call("lease", 1, 1)]),
        program("buffers", [call("leaked")], [call("lease", 2, 1)], before=[call("lease", 1, 0), call("give_back", 1)]),
        program("buffers", [call("leaked")], [call("leaked")], before=[call("lease", 1, 0), call("give_back", 1)]),
    )


class WindowBench(Bench):
    """The buffers of one answer, used by two threads."""

    modules = ("tornpage.impl.read.read_buffer",)
    _COUNT = 2

    def __init__(self) -> None:
        self.buffers = ReadBuffers(guard=_guard)
        self.file = _Held()
        lease = self.buffers.lease(cast(MappedFile, self.file))
        assert lease is not None
        self.lease = lease
        units = b"".join(struct.pack(">qiq", 4 * number, 4, 0) for number in range(self._COUNT))
        self.window = lease.window(units, self._COUNT, 0, 4 * self._COUNT)
        self.single = lease.buffer(0, 4)
        lease.give_back()
        self.first: dict[int, RecordBuffer] = {}

    def _look(self, number: int, buffer: RecordBuffer) -> None:
        require_rule(self.first.setdefault(number, buffer) is buffer, "one record has two buffers", contract=11)

    def iterate(self) -> None:
        for number, buffer in enumerate(self.window):
            self._look(number, buffer)

    def get(self, number: int) -> None:
        self._look(number, self.window[number])

    def release(self) -> None:
        self.window.release()

    def release_one(self, number: int) -> None:
        self.window[number].release()

    def release_single(self) -> None:
        self.single.release()

    def shut(self) -> None:
        self.buffers.shut()

    def state(self) -> object:
        for number in range(self._COUNT):
            self.window[number].release()
        self.window.release()
        self.single.release()
        count, held = self.lease.buffer_count, self.file.references - 1
        require_rule(
            self.lease.ended and not held, "released buffers hold a file", contract=11, found=f"{count} {held}"
        )
        return count, self.buffers.is_shut

    menu: ClassVar[tuple[Entry, ...]] = (
        entry("iterate"),
        entry("get", (0, 1)),
        entry("release"),
        entry("release_one", (0, 1)),
        entry("release_single"),
        entry("shut"),
    )


BENCHES: Mapping[str, Callable[[], Bench]] = {
    "pool": PoolBench,
    "small pool": SmallPoolBench,
    "allocation": AllocationBench,
    "time-outs": TimeOutsBench,
    "replicas": ReplicasBench,
    "replica looks": ReplicaLooksBench,
    "hold": HoldBench,
    "full hold": FullHoldBench,
    "ending hold": EndingHoldBench,
    "group commit": GroupCommitBench,
    "answer": AnswerBench,
    "runner": RunnerBench,
    "mapped file": MappedFileBench,
    "buffers": BuffersBench,
    "window": WindowBench,
}
