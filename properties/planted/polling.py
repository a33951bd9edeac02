"""Define bugs of long polling: pulls that are forgotten, or answered early, late or stale."""

from collections.abc import Sequence
from typing import Any

from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.parts import Parts
from tornpage.impl.read.held_pulls import HeldPull, HeldPulls, PullRequest, QueueName
from tornpage.impl.read.pull_hold import PullHold, Pulls
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.model.operations import CancelPull, Close, DeleteTopics, PullHeld, PullWhileDispatching, Put, Step
from tornpage.properties.planted.programs import NAMES_U, PUT, REPUT, TAGGED
from tornpage.properties.planted.record import PlantedBug
from tornpage.properties.program.case import Settings
from tornpage.properties.program.translation import HELD_PULLS_MAX

__all__ = ["BUGS"]

_CHECK_MS = 5_000


class _ChangesUnseen:
    """Answer `range_of` with the queue range that the last pull found."""

    def __init__(self, pulls: Pulls) -> None:
        self._pulls = pulls
        self._found: dict[QueueName, tuple[int, int]] = {}

    def pull(self, request: PullRequest) -> GetMessageResult:
        found = self._pulls.pull(request)
        self._found[request.queue] = (found.min_offset, found.max_offset)
        return found

    def look(self, request: PullRequest, offset: int) -> GetMessageResult:
        return self._pulls.look(request, offset)

    def range_of(self, queue: QueueName) -> tuple[int, int]:
        return self._found[queue] if queue in self._found else self._pulls.range_of(queue)


class _NoSecondCheck(PullHold):
    """Skip the second check after a pull is held (4.9.3).

    A message that arrives between the pull and the wait wakes no pull.
    """

    def __init__(self, pulls: Pulls, **options: Any) -> None:
        super().__init__(_ChangesUnseen(pulls), **options)


class _NotifiedEarly(Derived):
    """Notify held pulls of a batch before its units are in the queues."""

    def dispatch(self, log: MappedFileQueue, readable_end: int) -> bool:
        followers, self._followers = self._followers, []
        if self.reput_from_offset < readable_end and self.error is None:
            runs = self._read(log, self.reput_from_offset, readable_end).given.runs
            for follower in followers:
                follower(runs)
        try:
            return super().dispatch(log, readable_end)
        finally:
            self._followers = followers


class _AnyMessageEndsWait(PullHold):
    """End a wait for a message that the filter rejects (4.9.3, at its check every 5 seconds)."""

    def _is_to_end(self, held: HeldPull) -> bool:
        return True


class _NewestOnly(PullHold):
    """Check only the newest of several new messages against the filter."""

    def _is_to_end(self, held: HeldPull) -> bool:
        _, most = self._pulls.range_of(held.request.queue)
        held.checked_to = max(held.checked_to, most - 1)
        return super()._is_to_end(held)


class _OwnQueuesOnly(PullHold):
    """Notify no pulls on queues that messages name besides their own."""

    def dispatched(self, runs: Sequence[QueueRun]) -> None:
        super().dispatched([run for run in runs if not run.named])


class _SplitAtSign(PullHold):
    """Split the text of a queue at "@" (4.9.3).

    A queue whose topic contains that character is never checked.
    """

    def _note(self, queues: set[QueueName]) -> None:
        super()._note({(topic, queue_id) for topic, queue_id in queues if "@" not in topic})


class _NoDeadline(PullHold):
    """Check deadlines only when a message arrives."""

    def step(self, now_ms: int) -> int | None:
        super().step(-1)
        return None


class _EveryFiveSeconds(PullHold):
    """Check deadlines every 5 seconds (4.9.3)."""

    def step(self, now_ms: int) -> int | None:
        due_ms = super().step(now_ms)
        return None if due_ms is None else max(due_ms, now_ms + _CHECK_MS)


class _LatestDeadline(PullHold):
    """Do not wake the service for a wait that is shorter than the earlier ones."""

    def _hold(self, held: HeldPull) -> int:
        wake, self._runner.wake = self._runner.wake, lambda: None  # type: ignore[method-assign]
        try:
            number = super()._hold(held)
        finally:
            self._runner.wake = wake  # type: ignore[method-assign]
        if len(self._held) == 1:
            wake()
        return number


class _CloseForgetsPulls(PullHold):
    """Forget held pulls when the store closes."""

    def stop(self) -> None:
        self._runner.stop()
        self._held = HeldPulls()


class _DeletionIgnored(PullHold):
    """Leave pulls on a deleted queue waiting."""

    def queues_deleted(self) -> None:
        pass


class _PositionKept(PullHold):
    """Keep the position of a pull in a deleted queue and use it in the queue's successor."""

    def _woken(self) -> list[tuple[int, HeldPull]]:
        before = {number: held.checked_to for number, held in self._held.all()}
        woken = super()._woken()
        for number, held in woken:
            held.checked_to = before[number]
        return woken


class _FirstAnswer(PullHold):
    """Answer with the result of the first pull instead of the present state."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._first: dict[int, GetMessageResult] = {}

    def _hold(self, held: HeldPull) -> int:
        first = self._pulls.pull(held.request)
        number = super()._hold(held)
        self._first[number] = first
        return number

    def _answer(self, number: int) -> None:
        held = self._held.take(number)
        if held is not None and held.answer.set_running_or_notify_cancel():
            held.answer.set_result(self._first[number])


class _CancelledPullKept(PullHold):
    """Keep the place of a pull whose client gave up; it is never freed."""

    def _forget(self, numbers: list[int], _answer: Any) -> None:
        pass


class _NoLimit(PullHold):
    """Hold any number of pulls."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"held_max": 1 << 31})


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

LOOK = Step(service="pull-hold")
PULL = PullHeld()
WANTED = PullHeld(tags="TagA")
SPLIT = Put(topic="a@b")


def beside(*schedule: int) -> PullWhileDispatching:
    """Return a pull that runs concurrently with dispatch.

    A schedule counts the yield points before each switch.
    """
    return PullWhileDispatching(schedule=tuple(choice for before in schedule for choice in (*(0,) * before, 1)))


BUGS = (
    PlantedBug("lost-wake-up",
        "a message that arrives between a pull and the start of its wait does not wake the pull", 16,
        Parts({PullHold: _NoSecondCheck}), machine="consumer", program=(Settings(), (PUT, beside(4), LOOK))),
    PlantedBug("told-beforehand", "held pulls are notified of messages before these are in their queue", 16,
        Parts({Derived: _NotifiedEarly}), machine="consumer", program=(Settings(), (PUT, beside(0, 30), LOOK))),
    PlantedBug("any-message-ends-it", "a message that the filter rejects ends the wait of a held pull", 16,
        Parts({PullHold: _AnyMessageEndsWait}), machine="consumer", program=(Settings(), (WANTED, PUT, REPUT, LOOK))),
    PlantedBug("newest-only",
        "only the newest of several new messages is checked against the filter of a held pull", 16,
        Parts({PullHold: _NewestOnly}), machine="consumer", program=(Settings(), (WANTED, TAGGED, PUT, REPUT, LOOK))),
    PlantedBug("named-queues-untold", "a message does not wake pulls held on additional queues that it names", 16,
        Parts({PullHold: _OwnQueuesOnly}), machine="consumer",
        program=(Settings(multi_dispatch=True), (PullHeld(topic="U"), NAMES_U, REPUT, LOOK))),
    PlantedBug("split-at-the-sign", "a held pull on a topic with @ in its name is never woken", 16,
        Parts({PullHold: _SplitAtSign}), machine="consumer",
        program=(Settings(), (PullHeld(topic="a@b"), SPLIT, REPUT, LOOK))),
    PlantedBug("no-deadline", "a held pull never times out", 16, Parts({PullHold: _NoDeadline}),
        machine="consumer", program=(Settings(), (PULL, LOOK))),
    PlantedBug("every-five-seconds", "a held pull times out up to five seconds late", 16,
        Parts({PullHold: _EveryFiveSeconds}), machine="consumer",
        program=(Settings(), (PullHeld(hold_ms=1_000), LOOK))),
    PlantedBug("latest-deadline", "a held pull with a short time-out waits as long as the pulls held before it", 16,
        Parts({PullHold: _LatestDeadline}), machine="consumer",
        program=(Settings(), (PULL, LOOK, PullHeld(hold_ms=1_000)))),
    PlantedBug("closed-unheard", "closing the store does not answer held pulls", 16,
        Parts({PullHold: _CloseForgetsPulls}),
        machine="consumer", program=(Settings(), (PULL, Close()))),
    PlantedBug("deletion-unheard",
        "deleting a queue does not end the pulls held on it", 16, Parts({PullHold: _DeletionIgnored}),
        machine="consumer", program=(Settings(), (PUT, REPUT, PULL, DeleteTopics(), LOOK))),
    PlantedBug("place-kept", "a held pull keeps its position in a deleted queue after the queue is recreated", 16,
        Parts({PullHold: _PositionKept}), machine="consumer",
        program=(Settings(), (WANTED, PUT, REPUT, LOOK, DeleteTopics(), TAGGED, REPUT, LOOK))),
    PlantedBug("first-answer",
        "a held pull is answered with the state at the start of its wait", 17, Parts({PullHold: _FirstAnswer}),
        machine="consumer", program=(Settings(), (PULL, PUT, REPUT, LOOK))),
    PlantedBug("place-of-who-gave-up", "a held pull whose client gave up still counts against the limit", 16,
        Parts({PullHold: _CancelledPullKept}), machine="consumer", program=(Settings(), (PULL, CancelPull()))),
    PlantedBug("no-limit-of-pulls",
        "the number of held pulls is not limited", 8, Parts({PullHold: _NoLimit}), machine="consumer",
        program=(Settings(), (PULL,) * (HELD_PULLS_MAX + 1))),
)  # fmt: skip
