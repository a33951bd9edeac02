"""Pulls that wait, compared with the model: who is held, who is answered by which step, and with what (16, 17).

Between two steps of the service nobody's pull ends; the store says how many wait. While a disk has broken dispatch off
half-way nobody pulls and no step is taken: what is in the queues then is not known.
"""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from impl import pull_hold
from impl.errors import NotReadable, StoreClosed, TooManyHeldPulls
from impl.message_filter import TagFilter
from impl.parts import Parts
from impl.queue_pull import GetMessageResult
from impl.running_flags import RunningFlag
from model import holding, reading
from model.holding import Holding
from model.operations import CancelPull, PullHeld, PullWhileDispatching, ServiceName, Step
from model.queues import bounds_of, dispatch, failed_dispatch
from model.state import CommitLog
from properties.contract import GuaranteeBroken, observed
from properties.disk.dirty import DirtyTracker
from properties.judge.reads import pulled_rightly
from properties.lockstep.reading_verbs import ReadingVerbs
from properties.program.case import Settings
from properties.program.translation import HELD_PULLS_MAX
from properties.scheduler import run_stepped

__all__ = ["HoldingVerbs"]

_SERVICE: ServiceName = "pull-hold"
_POINTS_MAX = 20_000
_HANG_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A pull that waits, by the model, and its answer to come."""

    holding: Holding
    answer: Future[GetMessageResult]


class HoldingVerbs(ReadingVerbs):
    """Long polling of a trial."""

    def __init__(self, settings: Settings, *, tracker: DirtyTracker, components: Parts | None = None) -> None:
        self._pulls: list[_Waiting] = []
        super().__init__(settings, tracker=tracker, components=components)

    # ---- what consumers do -----------------------------------------------------------------------------------------

    def pull_held(self, operation: PullHeld) -> None:
        """Pull and wait; compare whether the pull is held, and the answer if it is not."""
        if not self._may_read():
            return
        asked = self._asked(operation)
        legal = self._legal(asked, self.log)
        may_wait = operation.hold_ms > 0 and all(holding.is_held(answer, asked.offset) for answer in legal)
        if may_wait and len(self._pulls) >= HELD_PULLS_MAX:
            self._finds_no_place(asked, operation.hold_ms)
            return
        answer = observed("pull_async", lambda: self._pull(asked, operation.hold_ms))
        if may_wait:
            self._pulls.append(_Waiting(asked, answer))
            self.happened("pull_held")
        else:
            self._is_answered(asked, answer)
            self.happened("pull_not_held")

    def _asked(self, operation: PullHeld | PullWhileDispatching) -> Holding:
        queue = (operation.topic, operation.queue_id)
        _, most = bounds_of(self.log, self.layout, queue) or (0, 0)
        tags = tuple(operation.tags.split("||")) if operation.tags else None
        if isinstance(operation, PullHeld):
            deadline_ms = self.now_ms + operation.hold_ms
            return Holding(queue, most + operation.shift, operation.max_msg_nums, tags, deadline_ms)
        return Holding(queue, most, PullHeld().max_msg_nums, tags, self.now_ms + PullHeld().hold_ms)

    def _pull(self, asked: Holding, hold_ms: int) -> Future[GetMessageResult]:
        message_filter = None if asked.tags is None else TagFilter("||".join(asked.tags))
        return self.store.pull_async(
            "group", *asked.queue, asked.offset, asked.max_msg_nums, message_filter, hold_ms=hold_ms
        )

    def _legal(self, asked: Holding, log: CommitLog) -> tuple[reading.Pulled, ...]:
        return reading.legal_answers(log, self.layout, *asked.queue, asked.offset, asked.max_msg_nums, asked.tags)

    def _finds_no_place(self, asked: Holding, hold_ms: int) -> None:
        try:
            self._pull(asked, hold_ms)
        except TooManyHeldPulls:
            self.happened("pull_refused")
            return
        raise GuaranteeBroken(8, "more pulls wait than may", "TooManyHeldPulls", "another one")

    def cancel_pull(self, operation: CancelPull) -> None:
        """Have a consumer give up."""
        if self._pulls:
            waiting = self._pulls.pop(operation.number % len(self._pulls))
            if not waiting.answer.cancel():
                raise GuaranteeBroken(16, "who waits for a message cannot give up")
            self.happened("pull_cancelled")

    # ---- the service -----------------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Step a service; that of the pulls is the only one that ends some."""
        if step.service != _SERVICE:
            super().step(step)
            return
        first = len(self.files.events)
        self.now_ms += step.after_ms
        if not self.closed and not self.is_partly_dispatched:
            self._look_at_pulls()
        self.end_verb(first, self.log)
        self.compare_watermarks()

    def _look_at_pulls(self) -> None:
        service = self.surroundings.service(_SERVICE)
        if service is None or (found := observed("step", service.step)) is None:
            raise GuaranteeBroken(16, "the store lacks a service", _SERVICE, "none of that name, or stopped")
        if found.due_ms is not None and found.due_ms <= found.now_ms:
            raise GuaranteeBroken(16, f"the service {_SERVICE} spins", f"later than {found.now_ms}", str(found.due_ms))
        self._compare_pulls()

    def _compare_pulls(self) -> None:
        """Compare what a step has done to each of the pulls that wait, and forget those that were answered."""
        left = []
        for waiting in self._pulls:
            fate = holding.fate(self.log, self.layout, waiting.holding, now_ms=self.now_ms)
            if fate == "stays" or (fate == "may end" and not waiting.answer.done()):
                self._still_waits(waiting)
                left.append(waiting)
                continue
            in_time = self.now_ms < waiting.holding.deadline_ms
            self._is_answered(waiting.holding, waiting.answer)
            self.happened("held_pull_woken", in_time)
            self.happened("held_pull_late", not in_time)
        self._pulls = left

    def _is_answered(self, asked: Holding, answer: Future[GetMessageResult]) -> None:
        """Contract 16 and 17: there is an answer, and it is that of a pull now."""
        if not answer.done():
            raise GuaranteeBroken(16, f"a pull from {asked.queue} at {asked.offset} is not answered", found="it waits")
        if self.log.flags & RunningFlag.NOT_READABLE:
            if not isinstance(answer.exception(), NotReadable):
                raise GuaranteeBroken(8, "a held pull reads a store that may not be read", "NotReadable", "an answer")
            return
        with observed("pull_async", answer.result) as found:
            legal = self._legal(asked, self.log)
            answered = pulled_rightly(found, legal, asked.queue, asked.offset, stored=self.ledger.stored)
        self.happened(f"held_pull_{answered.status.value}")

    def _still_waits(self, waiting: _Waiting) -> None:
        if waiting.answer.done():
            error = waiting.answer.exception()
            found = waiting.answer.result().status.value if error is None else repr(error)
            queue, offset = waiting.holding.queue, waiting.holding.offset
            raise GuaranteeBroken(16, f"a pull from {queue} at {offset} does not wait for its end", "no answer", found)

    # ---- two at once -----------------------------------------------------------------------------------------------

    def pull_while_dispatching(self, operation: PullWhileDispatching) -> None:
        """Pull at the end of a queue while dispatch fills it; a message that comes is never slept over (16).

        Each line of the hold is a yield point, and so are those of dispatch between the queues.
        """
        first, after = len(self.files.events), self.log
        if self._may_read() and len(self._pulls) < HELD_PULLS_MAX:
            self.files.refused_files = 0
            asked, after = self._asked(operation), dispatch(self.log)
            answer = self._run(asked, operation.schedule)
            if answer.done():
                self._was_answered_meanwhile(asked, answer, after)
            else:
                self._pulls.append(_Waiting(asked, answer))
                self.happened("held_beside_dispatch")
        self.end_verb(first, after)
        self.compare_watermarks()

    def _run(self, asked: Holding, schedule: tuple[int, ...]) -> Future[GetMessageResult]:
        """Run consumer and dispatcher; services are woken, not stepped, meanwhile."""
        dispatcher = self.surroundings.service("reput")
        if dispatcher is None:
            raise GuaranteeBroken(16, "the store lacks a service", "reput", "none of that name")
        tasks: list[Callable[[], Any]] = [partial(self._pull, asked, PullHeld().hold_ms), dispatcher.step]
        outcomes = run_stepped(
            tasks,
            schedule,
            modules=(pull_hold, "impl.derived"),
            points_max=_POINTS_MAX,
            hang_seconds=_HANG_SECONDS,
        )
        dispatched = outcomes[1].unwrap()
        if dispatched is None or dispatched.failed:
            raise GuaranteeBroken(16, "dispatch fails on a disk that refuses nothing")
        answer: Future[GetMessageResult] = observed("pull_async", outcomes[0].unwrap)
        return answer

    def _was_answered_meanwhile(self, asked: Holding, answer: Future[GetMessageResult], after: CommitLog) -> None:
        """Contract 17: the answer is that of a pull at some moment of the dispatch."""
        logs = [self.log, *failed_dispatch(self.log, self.layout), after]
        legal = {pulled: None for log in logs for pulled in self._legal(asked, log)}
        with observed("pull_async", answer.result) as found:
            pulled_rightly(found, tuple(legal), asked.queue, asked.offset, stored=self.ledger.stored)
        self.happened("answered_beside_dispatch")

    # ---- after every verb ------------------------------------------------------------------------------------------

    def everybody_is_waited_for(self) -> None:
        """Contract 16: whoever waits is known, still waits, and will be looked at in time."""
        super().everybody_is_waited_for()
        if self.closed:
            return
        if self.store.held_pulls != len(self._pulls):
            expected, found = str(len(self._pulls)), str(self.store.held_pulls)
            raise GuaranteeBroken(16, "another number of pulls waits than was held", expected, found)
        for waiting in self._pulls:
            self._still_waits(waiting)
            ends = (
                not self.is_partly_dispatched
                and holding.fate(self.log, self.layout, waiting.holding, now_ms=self.now_ms) == "ends"
            )
            self.require_will_step(_SERVICE, by_ms=self.now_ms if ends else waiting.holding.deadline_ms)

    def answer_all(self, log: CommitLog) -> None:
        """Compare the answers that a close gives."""
        super().answer_all(log)
        for waiting in self._pulls:
            if not waiting.answer.done() or not isinstance(waiting.answer.exception(), StoreClosed):
                raise GuaranteeBroken(16, "a close leaves a pull waiting", "StoreClosed", "no answer, or another")
            self.happened("held_pull_closed")
        self._pulls = []
