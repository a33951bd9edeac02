"""Hold pulls of drawn queues on a drawn clock, beside a list (contracts 8, 16).

The reads of the store are stand-ins over lists of messages. What other threads do happens during these reads: messages
arrive, queues are deleted, pulls are cancelled.

1. A pull that finds nothing, and may find something later, waits. Any other one is answered at once.
2. A waiting pull is answered in the step after its deadline, and in the step after a message that it accepts arrived,
   its queue was replaced, or the minimum rose above its offset. Other pulls go on waiting. The late ones come first,
   in the order of their deadlines, then the others in the order of their numbers.
3. Its answer is that of a new pull at that time, or the exception of that pull. No other pull is made for it.
4. A search begins where the last one found no message, and at the offset of the pull after a queue was deleted. What a
   search finds is released.
5. The service is woken if a deadline became the first one, and if something happened to a queue that a pull waits for.
   A step returns the first deadline.
6. A cancelled pull does not count any more. A pull above the limit is refused, and after the end each one that would
   wait. The end answers all with StoreClosed.
"""

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from tornpage.impl.errors import NotReadable, StoreClosed, TooManyHeldPulls
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.message.message import GetStatus
from tornpage.impl.read.held_pulls import PullRequest, QueueName
from tornpage.impl.read.pull_hold import PullHold
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.lockstep.functions.comparing import is_value
from tornpage.properties.lockstep.parts.part_disk import tried

__all__ = ["check"]

_PROGRAMS, _EVENTS = 8, 40
_QUEUES = (("T", 0), ("T", 1), ("é\udcff", 0))
_HOLD_MAX = (1 << 31) - 1
_CHUNK = 3
"""How many messages one search of the stand-in examines."""


def check(rng: random.Random) -> None:
    """Run some programs. Raises GuaranteeBroken."""
    for _ in range(_PROGRAMS):
        _Program(rng).run()


# ---- stand-ins -------------------------------------------------------------------------------------------------------


@dataclass
class _Queue:
    """The tags of the messages of a queue from `first` on, and how many of them are readable."""

    first: int
    tags: list[str]
    hidden: int = 0

    @property
    def maximum(self) -> int:
        """The number after the last message."""
        return self.first + len(self.tags)


class _Buffer:
    """Stands for a buffer of an answer."""

    size_bytes = 1

    def __init__(self) -> None:
        self.is_released = False

    def release(self) -> None:
        """Note the end."""
        self.is_released = True


class _Runner:
    """Counts requests of steps, on a clock that the program moves."""

    def __init__(self) -> None:
        self.now, self.wakes, self.stops = 1_000, 0, 0

    def now_ms(self) -> int:
        """Return the time of the program."""
        return self.now

    def start(self, *, after_ms: int) -> None:
        """Do nothing: the program runs the service."""

    def wake(self) -> None:
        """Count it."""
        self.wakes += 1

    def wait(self, answer: "Future[Any]", *, timeout_ms: int) -> bool:
        """Return whether an answer is there."""
        return answer.done()

    def stop(self) -> None:
        """Count it."""
        self.stops += 1


@dataclass(eq=False)
class _Pull:
    """A waiting pull of the reference. Nothing that it accepts lies before `checked_to`."""

    request: PullRequest
    deadline: int
    answer: "Future[GetMessageResult]"
    checked_to: int


class _Reads:
    """Stands for the reads of a store; a read may raise, and something may happen after it."""

    def __init__(self, queues: dict[QueueName, _Queue]) -> None:
        self.queues = queues
        self.pulled = list[tuple[PullRequest, GetMessageResult | BaseException]]()
        self.looked = list[tuple[PullRequest, int]]()
        self.found = list[_Buffer]()
        self.error: BaseException | None = None
        self.look_error: BaseException | None = None
        self.then: Callable[[], None] | None = None

    def pull(self, request: PullRequest) -> GetMessageResult:
        """Answer a request."""
        if self.error is not None:
            self.pulled.append((request, self.error))
            raise self.error
        found = self._read(request, request.offset)
        self.pulled.append((request, found))
        if self.then is not None:
            then, self.then = self.then, None
            then()
        return found

    def look(self, request: PullRequest, offset: int) -> GetMessageResult:
        """Search from an offset on."""
        self.looked.append((request, offset))
        if self.look_error is not None:
            raise self.look_error
        found = self._read(request, offset)
        self.found += found.messages  # type: ignore[arg-type]
        return found

    def range_of(self, queue: QueueName) -> tuple[int, int]:
        """Return minimum and maximum of a queue."""
        found = self.queues.get(queue)
        return (0, 0) if found is None else (found.first, found.maximum)

    def _read(self, request: PullRequest, offset: int) -> GetMessageResult:
        """Answer as docs/statuses.md says about pulls."""
        queue = self.queues.get(request.queue)
        if queue is None:
            return GetMessageResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, 0)
        low, high = queue.first, queue.maximum
        for status, holds in (
            (GetStatus.NO_MESSAGE_IN_QUEUE, not high),
            (GetStatus.OFFSET_TOO_SMALL, offset < low),
            (GetStatus.OFFSET_OVERFLOW_ONE, offset == high),
            (GetStatus.OFFSET_OVERFLOW_BADLY, offset > high),
        ):
            if holds:
                return GetMessageResult(status, offset, low, high)
        for number in range(offset, min(high, offset + _CHUNK)):
            if number >= high - queue.hidden:
                return GetMessageResult(GetStatus.OFFSET_FOUND_NULL, number, low, high)
            if _accepts(request, queue.tags[number - low]):
                buffers: Any = (_Buffer(),)
                return GetMessageResult(GetStatus.FOUND, number + 1, low, high, buffers)
        return GetMessageResult(GetStatus.NO_MATCHED_MESSAGE, min(high, offset + _CHUNK), low, high)


def _accepts(request: PullRequest, tag: str) -> bool:
    return request.group in ("", tag)


# ---- the program -----------------------------------------------------------------------------------------------------


class _Program:
    """One program of pulls, arrivals and steps, and the reference."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._queues = {name: self._drawn_queue() for name in _QUEUES if rng.random() < 0.7}
        self._reads = _Reads(self._queues)
        self._runner = _Runner()
        self._held_max = rng.choice((1, 3, 99))
        self._short = rng.choice((None, None, 70))
        self._waiting = list[_Pull]()
        self._arrived = set[QueueName]()
        self._is_all = False
        self._hold = PullHold(
            self._reads, runner=lambda _: self._runner, held_max=self._held_max, short_polling_ms=self._short, path="/p"
        )

    def _drawn_queue(self) -> _Queue:
        return _Queue(self._rng.choice((0, 0, 2)), self._tags(self._rng.choice((0, 1, 5))))

    def _tags(self, count: int) -> list[str]:
        return [self._rng.choice("aab") for _ in range(count)]

    def run(self) -> None:
        """Draw events, and end."""
        rng = self._rng
        events: Sequence[Callable[[], None]] = (
            self._pull, self._pull, self._pull, self._arrive, self._arrive, self._show, self._step, self._step,
            self._pass, self._cancel, self._delete, self._expire,
        )  # fmt: skip
        for _ in range(_EVENTS):
            rng.choice(events)()
            self._compare()
        self._burst()
        self._end()

    def _compare(self) -> None:
        self._waiting = [each for each in self._waiting if not each.answer.done()]
        is_value("the number of waiting pulls", len(self._waiting), self._hold.held_count)
        is_value(
            "the buffers of searches that are held", [], [each for each in self._reads.found if not each.is_released]
        )
        self._reads.found.clear()

    def _woken(self, what: str, before: int, *, is_needed: bool) -> None:
        is_value(f"the requests of a step by {what}", int(is_needed), self._runner.wakes - before)

    # ---- pulls ---------------------------------------------------------------------------------------------------

    def _request(self) -> PullRequest:
        name = self._rng.choice(_QUEUES)
        queue = self._queues.get(name, _Queue(0, []))
        offset = self._rng.choice((0, queue.maximum, queue.maximum, queue.maximum - 1, queue.maximum + 1, queue.first))
        return PullRequest(name, max(0, offset), self._rng.choice((1, 32)), None, self._rng.choice(("", "a", "b", "z")))

    def _pull(self) -> None:
        rng, reads, runner = self._rng, self._reads, self._runner
        request, hold_ms = self._request(), rng.choice((-1, 0, 1, 50, 50, 500, 500, _HOLD_MAX, _HOLD_MAX + 1))
        reads.error = NotReadable("/p") if rng.random() < 0.05 else None
        changes = rng.random() < 0.2
        if changes:
            reads.then = lambda: self._grow(request.queue)
        wakes, first = runner.wakes, min((each.deadline for each in self._waiting), default=None)
        answer = self._called("a pull", lambda: self._hold.pull(request, hold_ms))
        (_, found), reads.then = reads.pulled.pop(), None
        was_raised, reads.error = reads.error is not None, None
        is_value("the pulls of the store for one pull", [], reads.pulled)
        if was_raised:
            is_value("the exception of a pull", found, answer)
            return
        assert isinstance(found, GetMessageResult)
        nothing = found.status.name in ("OFFSET_OVERFLOW_ONE", "OFFSET_FOUND_NULL") or (
            found.status.name in ("NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE") and request.offset == 0
        )
        if hold_ms <= 0 or not nothing:
            is_value("whether a pull that does not wait is answered", True, answer.done() and answer.result() is found)
            self._woken("a pull that does not wait", wakes, is_needed=False)
            return
        if len(self._waiting) >= self._held_max:
            is_value("a pull above the limit", TooManyHeldPulls, type(answer))
            is_value("the limit in its error", self._held_max, answer.held_max)
            self._woken("a pull above the limit", wakes, is_needed=False)
            return
        wait = self._short if self._short is not None else min(hold_ms, _HOLD_MAX)
        is_value("whether a pull that waits is answered", False, answer.done())
        pull = _Pull(request, runner.now + wait, answer, request.offset)
        self._waiting.append(pull)
        has_changed = reads.range_of(request.queue) != (found.min_offset, found.max_offset)
        if has_changed:
            self._arrived.add(request.queue)
        needed = int(first is None or pull.deadline < first) + has_changed
        is_value("the requests of a step by a pull", needed, runner.wakes - wakes)

    def _called(self, what: str, do: Callable[[], Any]) -> Any:
        """Call the hold; return its answer or a documented exception."""
        try:
            return do()
        except (NotReadable, StoreClosed, TooManyHeldPulls) as error:
            return error
        except Exception as error:
            raise GuaranteeBroken(8, f"{what} raises {type(error).__name__}: {error}") from error

    def _cancel(self) -> None:
        if self._waiting:
            pull = self._rng.choice(self._waiting)
            is_value("whether a waiting pull can be cancelled", True, pull.answer.cancel())

    # ---- what happens to queues ----------------------------------------------------------------------------------

    def _grow(self, name: QueueName) -> None:
        """Make messages arrive of which the hold is not notified yet."""
        queue = self._queues.setdefault(name, _Queue(0, []))
        queue.tags += self._tags(self._rng.choice((1, 1, 2, 9)))

    def _notify(self, names: Sequence[QueueName]) -> None:
        """Notify the hold that messages of queues can be read."""
        wakes = self._runner.wakes
        awaited = {each.request.queue for each in self._waiting} & set(names)
        runs = [QueueRun((name.encode(errors="surrogateescape"), number), 0, b"", 0) for name, number in names]
        tried("an arrival", lambda: self._hold.dispatched(runs))
        self._arrived |= awaited
        self._woken("an arrival", wakes, is_needed=bool(awaited))

    def _arrive(self) -> None:
        names = self._rng.sample(_QUEUES, self._rng.choice((1, 1, 2)))
        for name in names:
            self._grow(name)
            self._queues[name].hidden = self._rng.choice((0, 0, 1))
        self._notify(names)

    def _show(self) -> None:
        """Make hidden messages readable, with or without news."""
        for queue in self._queues.values():
            queue.hidden = 0
        self._notify([name for name in _QUEUES if self._rng.random() < 0.7])

    def _delete(self) -> None:
        """Delete or replace queues."""
        for name in list(self._queues):
            if self._rng.random() < 0.6:
                del self._queues[name]
                if self._rng.random() < 0.5:
                    self._queues[name] = self._drawn_queue()
        wakes = self._runner.wakes
        tried("a deletion", self._hold.queues_deleted)
        self._is_all |= bool(self._waiting)
        self._woken("a deletion", wakes, is_needed=bool(self._waiting))

    def _expire(self) -> None:
        """Raise the minimum of a queue."""
        for queue in self._queues.values():
            gone = min(len(queue.tags), self._rng.choice((0, 1, 3)))
            queue.first, queue.tags = queue.first + gone, queue.tags[gone:]
        self._notify(list(_QUEUES))

    # ---- steps ---------------------------------------------------------------------------------------------------

    def _pass(self) -> None:
        deadlines = [each.deadline for each in self._waiting]
        self._runner.now = max(
            self._runner.now + self._rng.choice((0, 1, 49, 50)),
            self._rng.choice((0, *deadlines, *[d - 1 for d in deadlines])),
        )

    def _step(self) -> None:
        rng, reads, now = self._rng, self._reads, self._runner.now
        if rng.random() < 0.1:
            reads.look_error = OSError("chosen to fail")
        if rng.random() < 0.1:
            reads.error = NotReadable("/p")
        late = sorted((each for each in self._waiting if each.deadline <= now), key=lambda each: each.deadline)
        others = [each for each in self._waiting if self._is_all or each.request.queue in self._arrived]
        if self._is_all:
            for each in others:
                each.checked_to = each.request.offset
        self._is_all, self._arrived = False, set()
        looks, ends = list[tuple[PullRequest, int]](), list(late)
        for pull in others:
            if pull not in late and self._ends(pull, looks):
                ends.append(pull)
        cancelled = rng.choice(ends) if ends and rng.random() < 0.2 else None
        if cancelled is not None and cancelled is not ends[0]:
            reads.then = cancelled.answer.cancel  # type: ignore[assignment]  # during the first answer
        else:
            cancelled = None
        reads.pulled.clear()
        reads.looked.clear()
        if cancelled is not None and reads.error is not None:
            reads.then, cancelled = None, None
        after = tried("a step", lambda: self._hold.step(now))
        waited = [each for each in ends if each is not cancelled]
        is_value("the pulls that a step answers", [each.request for each in waited], [each for each, _ in reads.pulled])
        asked = {id(each.request) for each in late}
        is_value("the searches of a step", looks, [each for each in reads.looked if id(each[0]) not in asked])
        for pull, (_, found) in zip(waited, reads.pulled, strict=True):
            is_value("whether a pull is answered", True, pull.answer.done() and not pull.answer.cancelled())
            outcome = pull.answer.exception() or pull.answer.result()
            is_value("whether the answer is that of the new pull", True, outcome is found)
        reads.look_error = reads.error = reads.then = None
        reads.pulled.clear()
        left = [each.deadline for each in self._waiting if not each.answer.done()]
        is_value("the first deadline after a step", min(left, default=None), after)

    def _ends(self, pull: _Pull, looks: list[tuple[PullRequest, int]]) -> bool:
        """Return whether a pull is to be answered, and note the searches that this takes."""
        request = pull.request
        queue = self._queues.get(request.queue)
        first, high = (0, 0) if queue is None else (queue.first, queue.maximum)
        while True:
            looks.append((request, pull.checked_to))
            at = pull.checked_to
            if self._reads.look_error is not None:
                return True
            if queue is None or not high:
                return request.offset != 0
            if not first <= at <= high:
                return True
            if at == high:
                return first > request.offset
            for number in range(at, min(high, at + _CHUNK)):
                if number >= high - queue.hidden:
                    return first > request.offset
                if _accepts(request, queue.tags[number - first]):
                    return True
            pull.checked_to = min(high, at + _CHUNK)
            if pull.checked_to >= high:
                return first > request.offset

    # ---- the end -------------------------------------------------------------------------------------------------

    def _burst(self) -> None:
        """Cancel many pulls, more than a table keeps the deadlines of; the others stay."""
        if self._held_max < 99 or self._short is not None:
            return
        request = PullRequest(("none", 0), 0, 1)
        kept = tried("a pull", lambda: self._hold.pull(request, 10_000_000))
        self._waiting.append(_Pull(request, self._runner.now + 10_000_000, kept, 0))
        for _ in range(140):
            tried("a pull", lambda: self._hold.pull(request, 20_000_000)).cancel()
        self._reads.pulled.clear()
        self._compare()
        self._step()
        self._compare()

    def _end(self) -> None:
        for _ in range(2):
            tried("stop", self._hold.stop)
            for pull in self._waiting:
                error = pull.answer.exception(timeout=0)
                is_value(
                    "the exception of a pull at the end",
                    (StoreClosed, "/p"),
                    (type(error), getattr(error, "path", None)),
                )
            self._waiting = []
            is_value("the number of waiting pulls at the end", 0, self._hold.held_count)
        is_value("whether the service was stopped", True, self._runner.stops > 0)
        refused = self._called("a pull", lambda: self._hold.pull(PullRequest(("none", 0), 0, 1), 50))
        is_value("a pull after the end", (StoreClosed, "/p"), (type(refused), getattr(refused, "path", None)))
