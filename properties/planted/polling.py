"""Bugs of long polling: who is forgotten, who is answered too early, too late, or with what was true before."""

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
    """Pulls for which a queue stays as the last pull has found it."""

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


class _NoSecondLook(PullHold):
    """Who found nothing is noted, and does not look once more: what came in between wakes nobody (4.9.3)."""

    def __init__(self, pulls: Pulls, **options: Any) -> None:
        super().__init__(_ChangesUnseen(pulls), **options)


class _ToldBeforehand(Derived):
    """Who waits is told of a batch before its units are in the queues."""

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


class _AnyMessageEndsIt(PullHold):
    """A message that the filter does not want ends the wait (4.9.3, at its check of every 5 seconds)."""

    def _is_to_end(self, held: HeldPull) -> bool:
        return True


class _NewestOnly(PullHold):
    """Of what has come only the newest message is asked whether it is wanted."""

    def _is_to_end(self, held: HeldPull) -> bool:
        _, most = self._pulls.range_of(held.request.queue)
        held.checked_to = max(held.checked_to, most - 1)
        return super()._is_to_end(held)


class _OwnQueuesOnly(PullHold):
    """Who waits for a queue that messages name besides their own is not told of them."""

    def dispatched(self, runs: Sequence[QueueRun]) -> None:
        super().dispatched([run for run in runs if not run.named])


class _SplitAtTheSign(PullHold):
    """A queue is a text that is split at "@": one whose topic has that sign is never looked at (4.9.3)."""

    def _note(self, queues: set[QueueName]) -> None:
        super()._note({(topic, queue_id) for topic, queue_id in queues if "@" not in topic})


class _NoDeadline(PullHold):
    """Nobody looks whether a wait is over until a message comes."""

    def step(self, now_ms: int) -> int | None:
        super().step(-1)
        return None


class _EveryFiveSeconds(PullHold):
    """Deadlines are looked at every 5 seconds (4.9.3)."""

    def step(self, now_ms: int) -> int | None:
        due_ms = super().step(now_ms)
        return None if due_ms is None else max(due_ms, now_ms + _CHECK_MS)


class _LatestDeadline(PullHold):
    """Who waits for a shorter time than those before him does not wake the service."""

    def _hold(self, held: HeldPull) -> int:
        wake, self._runner.wake = self._runner.wake, lambda: None  # type: ignore[method-assign]
        try:
            number = super()._hold(held)
        finally:
            self._runner.wake = wake  # type: ignore[method-assign]
        if len(self._held) == 1:
            wake()
        return number


class _ClosedUnheard(PullHold):
    """A store that closes forgets who waits."""

    def stop(self) -> None:
        self._runner.stop()
        self._held = HeldPulls()


class _DeletionUnheard(PullHold):
    """Who waits for a queue that is deleted waits on."""

    def queues_deleted(self) -> None:
        pass


class _PlaceKept(PullHold):
    """Where somebody had looked to in a queue that was deleted is where he looks on in the next one."""

    def _woken(self) -> list[tuple[int, HeldPull]]:
        before = {number: held.checked_to for number, held in self._held.all()}
        woken = super()._woken()
        for number, held in woken:
            held.checked_to = before[number]
        return woken


class _FirstAnswer(PullHold):
    """The answer is what the first pull had found, not what there is now."""

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


class _PlaceOfWhoGaveUp(PullHold):
    """Who gives up keeps his place, until it is taken by nobody any more."""

    def _forget(self, number: int, _answer: Any) -> None:
        pass


class _NoLimit(PullHold):
    """As many wait as come."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options | {"held_max": 1 << 31})


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

LOOK = Step(service="pull-hold")
PULL = PullHeld()
WANTED = PullHeld(tags="TagA")
SPLIT = Put(topic="a@b")


def beside(*schedule: int) -> PullWhileDispatching:
    """Return a pull beside dispatch; a schedule counts the yield points before each switch."""
    return PullWhileDispatching(schedule=tuple(choice for before in schedule for choice in (*(0,) * before, 1)))


BUGS = (
    PlantedBug("lost-wake-up", "a message that comes between a pull and its wait wakes nobody", 16,
        Parts({PullHold: _NoSecondLook}), machine="consumer", program=(Settings(), (PUT, beside(4), LOOK))),
    PlantedBug("told-beforehand", "who waits is told of messages before they are in their queue", 16,
        Parts({Derived: _ToldBeforehand}), machine="consumer", program=(Settings(), (PUT, beside(0, 30), LOOK))),
    PlantedBug("any-message-ends-it", "a message that is not wanted ends the wait for another one", 16,
        Parts({PullHold: _AnyMessageEndsIt}), machine="consumer", program=(Settings(), (WANTED, PUT, REPUT, LOOK))),
    PlantedBug("newest-only", "of several messages only the newest is asked whether it is wanted", 16,
        Parts({PullHold: _NewestOnly}), machine="consumer", program=(Settings(), (WANTED, TAGGED, PUT, REPUT, LOOK))),
    PlantedBug("named-queues-untold", "who waits for a queue that messages name is not woken", 16,
        Parts({PullHold: _OwnQueuesOnly}), machine="consumer",
        program=(Settings(multi_dispatch=True), (PullHeld(topic="U"), NAMES_U, REPUT, LOOK))),
    PlantedBug("split-at-the-sign", "who waits for a topic with @ in its name is not woken", 16,
        Parts({PullHold: _SplitAtTheSign}), machine="consumer",
        program=(Settings(), (PullHeld(topic="a@b"), SPLIT, REPUT, LOOK))),
    PlantedBug("no-deadline", "a wait whose time is over goes on", 16, Parts({PullHold: _NoDeadline}),
        machine="consumer", program=(Settings(), (PULL, LOOK))),
    PlantedBug("every-five-seconds", "a wait whose time is over ends up to five seconds later", 16,
        Parts({PullHold: _EveryFiveSeconds}), machine="consumer",
        program=(Settings(), (PullHeld(hold_ms=1_000), LOOK))),
    PlantedBug("latest-deadline", "a shorter wait than the others is as long as they are", 16,
        Parts({PullHold: _LatestDeadline}), machine="consumer",
        program=(Settings(), (PULL, LOOK, PullHeld(hold_ms=1_000)))),
    PlantedBug("closed-unheard", "a store that closes forgets who waits", 16, Parts({PullHold: _ClosedUnheard}),
        machine="consumer", program=(Settings(), (PULL, Close()))),
    PlantedBug("deletion-unheard", "who waits for a deleted queue waits on", 16, Parts({PullHold: _DeletionUnheard}),
        machine="consumer", program=(Settings(), (PUT, REPUT, PULL, DeleteTopics(), LOOK))),
    PlantedBug("place-kept", "a queue that begins anew is looked at from where the old one was left", 16,
        Parts({PullHold: _PlaceKept}), machine="consumer",
        program=(Settings(), (WANTED, PUT, REPUT, LOOK, DeleteTopics(), TAGGED, REPUT, LOOK))),
    PlantedBug("first-answer", "a wait ends with what was true when it began", 17, Parts({PullHold: _FirstAnswer}),
        machine="consumer", program=(Settings(), (PULL, PUT, REPUT, LOOK))),
    PlantedBug("place-of-who-gave-up", "who gives up waiting keeps his place", 16,
        Parts({PullHold: _PlaceOfWhoGaveUp}), machine="consumer", program=(Settings(), (PULL, CancelPull()))),
    PlantedBug("no-limit-of-pulls", "more pulls wait than may", 8, Parts({PullHold: _NoLimit}), machine="consumer",
        program=(Settings(), (PULL,) * (HELD_PULLS_MAX + 1))),
)  # fmt: skip
