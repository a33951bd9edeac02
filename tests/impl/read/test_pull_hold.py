"""Test the service that holds pulls, on queues that are lists: no pull is lost."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

import pytest

from tests.support.impl.stores import HandRunner
from tornpage.impl.errors import NotReadable, StoreClosed, TooManyHeldPulls
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.message.message import GetStatus
from tornpage.impl.read.held_pulls import PullRequest, QueueName
from tornpage.impl.read.message_filter import TagFilter
from tornpage.impl.read.pull_hold import HOLD_MS_MAX, PullHold
from tornpage.impl.read.queue_pull import GetMessageResult

END, FOUND = GetStatus.OFFSET_OVERFLOW_ONE, GetStatus.FOUND
LATER_MS = 15_000


@dataclass
class Queues:
    """Queues of tags with the pull of a store; one look covers `units_max` units."""

    tags: dict[QueueName, list[str]] = field(default_factory=dict)
    first: int = 0
    units_max: int = 800
    refusal: Exception | None = None
    pulls: int = 0
    before_look: Callable[[], None] = lambda: None

    def pull(self, request: PullRequest) -> GetMessageResult:
        self.pulls += 1
        if self.refusal is not None:
            raise self.refusal
        return self._get(request, request.offset)

    def look(self, request: PullRequest, offset: int) -> GetMessageResult:
        self.before_look()
        if self.refusal is not None:
            raise self.refusal
        return self._get(request, offset)

    def range_of(self, queue: QueueName) -> tuple[int, int]:
        tags = self.tags.get(queue)
        return (0, 0) if tags is None else (self.first, len(tags))

    def _get(self, request: PullRequest, offset: int) -> GetMessageResult:
        least, most = self.range_of(request.queue)
        if request.queue not in self.tags:
            return GetMessageResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, 0)
        if offset < least:
            return GetMessageResult(GetStatus.OFFSET_TOO_SMALL, least, least, most)
        if offset > most:
            return GetMessageResult(GetStatus.OFFSET_OVERFLOW_BADLY, most, least, most)
        if offset == most:
            return GetMessageResult(END, offset, least, most)
        wanted = request.message_filter
        end = min(most, offset + self.units_max)
        for number in range(offset, end):
            tag = self.tags[request.queue][number]
            if wanted is None or wanted.matches_unit(hash_of(tag), None):
                return GetMessageResult(FOUND, number + 1, least, most)
        return GetMessageResult(GetStatus.NO_MATCHED_MESSAGE, end, least, most)


def hash_of(tag: str) -> int:
    code = 0
    for character in tag:
        code = code * 31 + ord(character)
    return code


@dataclass
class Polled:
    """A hold on such queues, and the pulls waiting there."""

    queues: Queues
    runner: HandRunner
    hold: PullHold

    def pull(
        self, offset: int = 0, *, queue: QueueName = ("T", 0), tags: str = "*", hold_ms: int = LATER_MS
    ) -> "Future[GetMessageResult]":
        return self.hold.pull(PullRequest(queue, offset, 32, TagFilter(tags)), hold_ms)

    def arrive(self, *tags: str, queue: QueueName = ("T", 0)) -> None:
        """Make messages readable in their queue and let the dispatcher report it."""
        self.queues.tags.setdefault(queue, []).extend(tags)
        self.hold.dispatched([QueueRun((queue[0].encode(), queue[1]), 0, b"", 0)])

    @property
    def wakes(self) -> int:
        return self.runner["pull-hold"].wakes

    def step(self, *, after_ms: int = 0) -> int | None:
        return self.runner.step("pull-hold", after_ms=after_ms)


def polled(*, held_max: int = 100, short_polling_ms: int | None = None, **queues: list[str]) -> Polled:
    runner = HandRunner()
    known = Queues({(topic, 0): tags for topic, tags in queues.items()})
    hold = PullHold(known, runner=runner, held_max=held_max, short_polling_ms=short_polling_ms, path="store")
    return Polled(known, runner, hold)


def status(answer: "Future[GetMessageResult]") -> GetStatus:
    return answer.result(0).status


# ---- held pulls ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "offset", "tags", "expected"),
    [
        ("T", 0, "*", FOUND),
        ("T", 0, "C", GetStatus.NO_MATCHED_MESSAGE),
        ("T", 2, "*", None),
        ("T", 3, "*", GetStatus.OFFSET_OVERFLOW_BADLY),
        ("T", -1, "*", GetStatus.OFFSET_TOO_SMALL),
        ("unknown", 0, "*", None),
        ("unknown", 1, "*", GetStatus.NO_MATCHED_LOGIC_QUEUE),
    ],
)
def test_who_could_find_something_later_is_held(topic: str, offset: int, tags: str, expected: GetStatus | None) -> None:
    store = polled(T=["A", "B"])
    answer = store.pull(offset, queue=(topic, 0), tags=tags)
    assert answer.done() == (expected is not None)
    assert store.hold.held_count == (expected is None)
    if expected is not None:
        assert status(answer) is expected


@pytest.mark.parametrize("hold_ms", [0, -1])
def test_who_does_not_wait_is_answered_at_once(hold_ms: int) -> None:
    store = polled(T=[])
    assert status(store.pull(hold_ms=hold_ms)) is END
    assert store.wakes == 0


def test_no_more_than_so_many_are_held_and_a_place_becomes_free_again() -> None:
    store = polled(held_max=2, T=[])
    first, _ = store.pull(), store.pull(queue=("U", 0))
    with pytest.raises(TooManyHeldPulls, match="2 pulls already wait"):
        store.pull()
    assert first.cancel()
    assert not store.pull().done()


def test_a_pull_that_raises_raises_at_once() -> None:
    store = polled(T=[])
    store.queues.refusal = NotReadable("store")
    with pytest.raises(NotReadable):
        store.pull()
    assert store.hold.held_count == 0


# ---- end of a hold ---------------------------------------------------------------------------------------------


def test_a_message_of_its_queue_ends_it_with_a_whole_pull() -> None:
    store = polled(T=[])
    answer, elsewhere = store.pull(), store.pull(queue=("T", 1))
    store.arrive("A")
    assert not answer.done()  # the dispatcher leaves a note and answers no pull
    store.step()
    assert (status(answer), answer.result(0).next_begin_offset) == (FOUND, 1)
    assert not elsewhere.done()
    assert store.hold.held_count == 1


def test_a_message_that_the_filter_does_not_want_ends_nothing() -> None:
    store = polled(T=[])
    answer = store.pull(tags="A")
    for _ in range(3):
        store.arrive("B")
        store.step(after_ms=4_999)
    assert not answer.done()
    store.arrive("B", "A")
    store.step()
    assert status(answer) is FOUND


def test_what_was_looked_at_is_not_looked_at_again_until_the_answer() -> None:
    store = polled(T=[])
    looked: list[int] = []
    answer = store.pull(tags="A")
    look = store.queues.look

    def counted(request: PullRequest, offset: int) -> GetMessageResult:
        looked.append(offset)
        return look(request, offset)

    store.queues.look = counted  # type: ignore[method-assign]
    for _ in range(3):
        store.arrive("B")
        store.step()
    assert looked == [0, 1, 2]
    store.step(after_ms=LATER_MS)
    assert (status(answer), answer.result(0).next_begin_offset) == (GetStatus.NO_MATCHED_MESSAGE, 3)


def test_a_message_behind_more_than_one_look_goes_over_is_found() -> None:
    store = polled(T=[])
    store.queues.units_max = 2
    answer = store.pull(tags="A")
    store.arrive("B", "B", "B", "B", "B", "A")
    store.step()
    assert (status(answer), answer.result(0).next_begin_offset) == (GetStatus.NO_MATCHED_MESSAGE, 2)


def test_time_ends_it_exactly_at_its_deadline() -> None:
    store = polled(T=[])
    early, late = store.pull(hold_ms=1_000), store.pull(hold_ms=1_001)
    assert store.step() == 1_000
    assert store.step(after_ms=999) == 1_000
    assert not early.done()
    assert store.step(after_ms=1) == 1_001
    assert (status(early), late.done()) == (END, False)
    assert store.step(after_ms=1) is None
    assert status(late) is END


def test_who_has_the_first_deadline_wakes_the_service_and_nobody_else() -> None:
    store = polled(T=[])
    store.pull(hold_ms=100)
    assert store.wakes == 1
    store.pull(hold_ms=100)
    store.pull(hold_ms=5_000)
    assert store.wakes == 1
    store.pull(hold_ms=99)
    assert store.wakes == 2


def test_nobody_waits_for_longer_than_a_thread_can() -> None:
    store = polled(T=[])
    store.pull(hold_ms=1 << 62)
    assert store.step() == HOLD_MS_MAX


def test_short_polling_has_one_time_for_all() -> None:
    store = polled(short_polling_ms=1_000, T=[])
    assert store.pull(hold_ms=0).done()
    answer = store.pull(hold_ms=15_000)
    store.step(after_ms=999)
    assert not answer.done()
    store.step(after_ms=1)
    assert answer.done()


def test_a_queue_that_is_deleted_ends_who_was_further_on_in_it() -> None:
    store = polled(T=["A", "A"], U=[])
    answer, at_zero = store.pull(2), store.pull(queue=("U", 0))
    store.queues.tags.clear()
    store.hold.queues_deleted()
    store.step()
    assert status(answer) is GetStatus.NO_MATCHED_LOGIC_QUEUE
    assert not at_zero.done()  # the pull waits for number 0 of a queue without a message


def test_who_waits_for_a_queue_that_begins_anew_is_looked_at_from_its_offset_on() -> None:
    store = polled(T=[])
    answer = store.pull(tags="A")
    store.arrive("B", "B", "B")
    store.step()
    store.queues.tags.clear()
    store.arrive("B", "A", "B")
    store.hold.queues_deleted()
    store.step()
    assert (status(answer), answer.result(0).next_begin_offset) == (FOUND, 2)


def test_expired_messages_in_front_end_it_when_it_is_looked_at() -> None:
    store = polled(T=[])
    answer = store.pull(tags="A")
    store.arrive("B", "B")
    store.step()
    store.queues.first = 2
    store.arrive("B")
    store.step()
    assert status(answer) is GetStatus.OFFSET_TOO_SMALL


def test_what_a_pull_raises_is_what_the_future_raises_and_others_are_answered() -> None:
    store = polled(T=[])
    answer = store.pull()
    store.queues.refusal = NotReadable("store")
    store.arrive("A")
    store.step()
    assert isinstance(answer.exception(0), NotReadable)
    store.queues.refusal = None
    other = store.pull(1)
    store.arrive("A")
    store.step()
    assert status(other) is FOUND


def test_a_filter_that_fails_ends_its_own_pull_only() -> None:
    class Failing(TagFilter):
        def matches_unit(self, *_: object) -> bool:
            raise ZeroDivisionError

    store = polled(T=[])
    failing = store.hold.pull(PullRequest(("T", 0), 0, 32, Failing()), LATER_MS)
    other = store.pull()
    store.arrive("A")
    store.step()
    assert isinstance(failing.exception(0), ZeroDivisionError)
    assert status(other) is FOUND


# ---- giving up, and the end --------------------------------------------------------------------------------------


def test_who_gives_up_takes_no_place_and_no_look() -> None:
    store = polled(T=[])
    answer = store.pull()
    assert answer.cancel()
    assert store.hold.held_count == 0
    store.arrive("A")
    store.step(after_ms=LATER_MS)
    assert (answer.cancelled(), store.queues.pulls) == (True, 1)


def test_who_gives_up_while_he_is_looked_at_is_not_answered() -> None:
    store = polled(T=[])
    answer = store.pull()
    given_up: list[bool] = []
    store.queues.before_look = lambda: given_up.append(answer.cancel())
    store.arrive("A")
    store.step()
    assert (given_up, answer.cancelled(), store.queues.pulls) == ([True], True, 1)


def test_a_closed_store_ends_who_waits_and_who_comes() -> None:
    store = polled(T=[])
    answers = [store.pull(), store.pull(queue=("U", 0))]
    store.hold.stop()
    store.hold.stop()
    assert all(isinstance(answer.exception(0), StoreClosed) for answer in answers)
    with pytest.raises(StoreClosed):
        store.pull()
    assert store.hold.held_count == 0
    assert store.runner["pull-hold"].stopped


def test_who_is_answered_may_pull_again_from_his_callback() -> None:
    store = polled(T=[])
    again: list[Future[GetMessageResult]] = []
    store.pull().add_done_callback(lambda answer: again.append(store.pull(answer.result().next_begin_offset)))
    store.arrive("A")
    store.step()
    assert (len(again), again[0].done(), store.hold.held_count) == (1, False, 1)
    store.arrive("A")
    store.step()
    assert status(again[0]) is FOUND


# ---- waking ------------------------------------------------------------------------------------------------------


def test_a_message_that_comes_between_the_pull_and_the_hold_is_seen() -> None:
    store = polled(T=[])
    pull = store.queues.pull

    def overtaken(request: PullRequest) -> GetMessageResult:
        found = pull(request)
        store.queues.pull = pull  # type: ignore[method-assign]
        store.arrive("A")  # no pull is noted yet
        return found

    store.queues.pull = overtaken  # type: ignore[method-assign]
    answer = store.pull()
    assert not answer.done()
    store.step()
    assert status(answer) is FOUND


def test_a_queue_that_nobody_waits_for_wakes_nobody() -> None:
    store = polled(T=[])
    store.arrive("A", queue=("U", 0))
    assert store.wakes == 0
    store.pull()
    woken = store.wakes
    store.arrive("A", queue=("U", 0))
    store.hold.queues_deleted()
    assert store.wakes == woken + 1
    store.step()
    assert store.hold.held_count == 1


def test_a_topic_with_the_sign_at_which_rocketmq_splits_is_woken() -> None:
    store = polled()
    answer = store.pull(queue=("a@b@0", 0))
    store.arrive("A", queue=("a@b@0", 0))
    store.step()
    assert status(answer) is FOUND
