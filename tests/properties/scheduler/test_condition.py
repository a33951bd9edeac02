"""Test conditions and queues of stepped runs."""

from queue import Empty

import pytest

from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.scheduler import (
    CooperativeCondition,
    CooperativeLock,
    CooperativeQueue,
    PreemptionSearch,
    StepTrace,
    run_stepped,
)


def test_wait_for_returns_once_its_predicate_holds_in_every_schedule() -> None:
    search, runs = PreemptionSearch(2), 0
    for schedule in search.schedules():
        lock = CooperativeLock("lock")
        condition, seen, value = CooperativeCondition(lock), list[int](), [0]

        def wait(
            lock: CooperativeLock = lock,
            condition: CooperativeCondition = condition,
            value: list[int] = value,
            seen: list[int] = seen,
        ) -> None:
            with lock:
                assert condition.wait_for(lambda: value[0] == 2, 1.0)
                seen.append(value[0])

        def raise_twice(
            lock: CooperativeLock = lock, condition: CooperativeCondition = condition, value: list[int] = value
        ) -> None:
            for _ in range(2):
                with lock:
                    value[0] += 1
                    condition.notify()

        trace = StepTrace()
        outcomes = run_stepped([wait, raise_twice], schedule, trace=trace)
        assert [outcome.error for outcome in outcomes] == [None, None]
        assert seen == [2]
        search.ran(trace)
        runs += 1
    assert runs > 10


def test_items_of_a_queue_come_in_order_in_every_schedule() -> None:
    search, runs = PreemptionSearch(2), 0
    for schedule in search.schedules():
        queue, seen = CooperativeQueue("queue"), list[object]()

        def take(queue: CooperativeQueue = queue, seen: list[object] = seen) -> None:
            seen.extend((queue.get(timeout=1.0), queue.get()))

        def give(queue: CooperativeQueue = queue) -> None:
            queue.put(1)
            queue.put(2)

        trace = StepTrace()
        outcomes = run_stepped([take, give], schedule, trace=trace)
        assert [outcome.error for outcome in outcomes] == [None, None]
        assert seen == [1, 2]
        search.ran(trace)
        runs += 1
    assert runs > 5


def test_an_empty_queue_waits_in_a_run_only() -> None:
    queue = CooperativeQueue("answers")
    for options in ({"block": False}, {"timeout": 0}):
        with pytest.raises(Empty):
            queue.get(**options)
    with pytest.raises(HarnessError, match="an item of answers is waited for outside a stepped run"):
        queue.get()
    with pytest.raises(GuaranteeBroken, match="task 0 waits for an item of answers"):
        run_stepped([queue.get], (), trace=StepTrace())
