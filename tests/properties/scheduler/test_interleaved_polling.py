"""Run a consumer, dispatch and the service of held pulls in every order.

No held pull misses a message. The queue is a list here. Each of its uses is a yield point, and so are the ends of each
hold of the lock. properties/lockstep/consumers.py runs the same pair on a store, line by line.
"""

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.impl.stores import HandRunner
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.message.message import GetStatus
from tornpage.impl.read.held_pulls import PullRequest, QueueName
from tornpage.impl.read.message_filter import TagFilter
from tornpage.impl.read.pull_hold import PullHold
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.model.operations import PullWhileDispatching, Put, Step
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.planted.polling import _NoSecondCheck
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.scheduler import CooperativeLock, StepTrace, every_schedule, run_stepped, yield_point

QUEUE = ("T", 0)
RUN = QueueRun((b"T", 0), 0, b"", 0)


class SteppedQueue:
    """One queue of messages that are 0 (no pull wants it) or 1; each use is a yield point."""

    def __init__(self) -> None:
        self.messages: list[int] = []

    def pull(self, request: PullRequest) -> GetMessageResult:
        return self.look(request, request.offset)

    def look(self, request: PullRequest, offset: int) -> GetMessageResult:
        yield_point("look")
        most = len(self.messages)
        if offset >= most:
            return GetMessageResult(GetStatus.OFFSET_OVERFLOW_ONE, offset, 0, most)
        wanted = [number for number in range(offset, most) if self.messages[number]]
        if wanted:
            return GetMessageResult(GetStatus.FOUND, wanted[0] + 1, 0, most)
        return GetMessageResult(GetStatus.NO_MATCHED_MESSAGE, most, 0, most)

    def range_of(self, queue: QueueName) -> tuple[int, int]:
        yield_point("range")
        return 0, len(self.messages)


@dataclass
class Beside:
    """A consumer beside dispatch, and beside the service if `served`, run with many schedules.

    `slept` are the schedules after which a held pull has no answer or a wrong one, although its message is there.
    """

    kind: type[PullHold]
    messages: Sequence[int]
    served: bool = False
    schedules: int = 0
    slept: list[Sequence[int]] = field(default_factory=list)

    def run(self, schedule: Sequence[int]) -> bytearray:
        """Run on an empty queue and record the schedule; return the choices that there were."""
        queue, runner, trace = SteppedQueue(), HandRunner(), StepTrace()
        hold = self.kind(
            queue, runner=runner, held_max=9, short_polling_ms=None, path="", guard=lambda: CooperativeLock("hold")
        )
        tasks = tasks_of(queue, hold, runner, self.messages, served=self.served)
        outcomes = run_stepped(tasks, schedule, trace=trace)
        answer: Future[GetMessageResult] = outcomes[0].unwrap()
        if runner["pull-hold"].wakes:
            runner.step("pull-hold")
        if not answer.done() or answer.result().status not in self._answers(was_held=hold._held._next_number > 0):
            self.slept.append(schedule)
        self.schedules += 1
        return trace.options

    @staticmethod
    def _answers(*, was_held: bool) -> tuple[GetStatus, ...]:
        """Return the right answers: a held pull waits for its message.

        Other pulls may have to continue after another message.
        """
        return (GetStatus.FOUND,) if was_held else (GetStatus.FOUND, GetStatus.NO_MATCHED_MESSAGE)

    def all(self) -> "Beside":
        """Run with every schedule."""
        for _ in every_schedule(self.run):
            pass
        return self


def tasks_of(
    queue: SteppedQueue, hold: PullHold, runner: HandRunner, messages: Sequence[int], *, served: bool
) -> list[Callable[[], Any]]:
    def dispatch() -> None:
        for message in messages:
            yield_point("append")
            queue.messages.append(message)
            yield_point("tell")
            hold.dispatched([RUN])

    def serve() -> None:
        yield_point("serve")
        driven = runner["pull-hold"]
        if driven.wakes:
            driven.wakes = 0
            driven.step()

    request = PullRequest(QUEUE, 0, 1, TagFilter("A"))
    pull = [lambda: hold.pull(request, 1_000), dispatch]
    return [*pull, serve] if served else pull


def test_no_order_of_consumer_and_dispatch_loses_a_message() -> None:
    beside = Beside(PullHold, [1]).all()
    assert beside.schedules > 100
    assert not beside.slept


@pytest.mark.deep
def test_no_order_loses_a_message_behind_one_that_nobody_wants() -> None:
    beside = Beside(PullHold, [0, 1]).all()
    assert beside.schedules > 1_000
    assert not beside.slept


def test_no_drawn_order_of_consumer_dispatch_and_service_loses_a_message() -> None:
    rng, beside = random.Random(1), Beside(PullHold, [0, 1], served=True)
    for _ in range(400):
        beside.run([rng.randrange(6) for _ in range(40)])
    assert not beside.slept


def test_without_the_second_look_some_orders_do() -> None:
    beside = Beside(_NoSecondCheck, [1]).all()
    assert 0 < len(beside.slept) < beside.schedules


# ---- on a store --------------------------------------------------------------------------------------------------


def switched(*before: int) -> PullWhileDispatching:
    return PullWhileDispatching(schedule=tuple(choice for each in before for choice in (*(0,) * each, 1)))


def failures(bug: str, schedules: Sequence[PullWhileDispatching], tracker: DirtyTracker) -> int:
    """Return the number of schedules on a store that miss a message which is there."""
    count = 0
    for beside in schedules:
        operations = (Put(), beside, Step(service="pull-hold"))
        count += replay(Case(Settings(bug=bug), operations), tracker=tracker) is not None
    return count


def test_a_store_loses_none_wherever_consumer_and_dispatch_change_over(tracker: DirtyTracker) -> None:
    everywhere = [switched(before) for before in range(70)]
    assert failures("", everywhere, tracker) == 0
    assert failures("lost-wake-up", everywhere, tracker) > 0


@pytest.mark.deep
def test_a_store_loses_none_wherever_they_change_over_twice(tracker: DirtyTracker) -> None:
    twice = [switched(first, second) for first in range(0, 60, 3) for second in range(0, 60, 3)]
    assert failures("", twice, tracker) == 0
    assert failures("told-beforehand", twice, tracker) > 0
