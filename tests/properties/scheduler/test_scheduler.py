"""Test the stepped scheduler: every interleaving is reachable, and equal schedules repeat.

No thread outlives its run.
"""

import gc
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from hypothesis import find
from hypothesis import strategies as st

from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.scheduler import (
    OUTSIDE,
    CooperativeLock,
    Granularity,
    StepTrace,
    Turn,
    current_task,
    every_schedule,
    run_stepped,
    yield_point,
)

HERE = [__name__]


@pytest.fixture(autouse=True)
def no_leaked_threads() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before


class Counter:
    """Counts with a read, a yield point and a write, with or without a lock."""

    def __init__(self, lock: CooperativeLock | None = None) -> None:
        self.n = 0
        self._lock = lock

    def add(self) -> None:
        if self._lock is None:
            self._add()
        else:
            with self._lock:
                self._add()

    def _add(self) -> None:
        value = self.n
        yield_point("between read and write")
        self.n = value + 1


class PlainCounter:
    """The same in plain code."""

    def __init__(self) -> None:
        self.n = 0

    def add(self) -> None:
        value = self.n
        self.n = value + 1

    def add_in_one_line(self) -> None:
        self.n = self.n + 1


def count_to_two(schedule: tuple[int, ...], totals: list[int], *, locked: bool) -> bytearray:
    """Run two additions; return the options, and append the total."""
    counter, trace = Counter(CooperativeLock("lock") if locked else None), StepTrace()
    for outcome in run_stepped([counter.add, counter.add], schedule, trace=trace):
        outcome.unwrap()
    totals.append(counter.n)
    return trace.options


def test_lost_update_is_found_by_some_schedules() -> None:
    totals: list[int] = []
    schedules = list(every_schedule(lambda schedule: count_to_two(schedule, totals, locked=False)))
    # read and write of each task: six orders, of which two are sequential
    assert len(set(schedules)) == len(schedules) == 6
    assert sorted(totals) == [1, 1, 1, 1, 2, 2]
    assert totals[0] == 2, "the empty schedule is sequential"


def test_lost_update_is_prevented_by_a_lock_under_every_schedule() -> None:
    totals: list[int] = []
    schedules = list(every_schedule(lambda schedule: count_to_two(schedule, totals, locked=True)))
    assert set(totals) == {2}
    assert len(schedules) > 6


@pytest.mark.parametrize("modules", [HERE, [sys.modules[__name__]], [Path(__file__)], ["tests"]], ids=str)
def test_lines_of_watched_code_are_yield_points(modules: list[Any]) -> None:
    def loses(schedule: list[int]) -> bool:
        counter = PlainCounter()
        run_stepped([counter.add, counter.add], schedule, modules=modules)
        return counter.n == 1

    # past its first line, let the other task begin and run to the end, return
    assert find(st.lists(st.integers(0, 1), max_size=12), loses) == [0, 0, 1]


def test_code_that_is_not_watched_has_no_yield_points() -> None:
    trace, counter = StepTrace(), PlainCounter()
    run_stepped(
        [counter.add, counter.add], [1] * 9, modules=["impl", "tests.properties.scheduler.test_sched"], trace=trace
    )
    assert trace.steps == 0
    assert [str(turn) for turn in trace.turns] == ["task 1 x0 to end", "task 0 x0 to end"]


@pytest.mark.parametrize(("granularity", "found"), [("line", False), ("opcode", True), ("shared opcode", True)])
def test_an_update_in_one_line_is_lost_between_bytecodes_only(granularity: Granularity, found: bool) -> None:
    totals: list[int] = []

    def run(schedule: tuple[int, ...]) -> bytearray:
        counter, trace = PlainCounter(), StepTrace()
        tasks = [counter.add_in_one_line] * 2
        run_stepped(tasks, schedule, modules=HERE, granularity=granularity, trace=trace)
        totals.append(counter.n)
        return trace.options

    for _ in every_schedule(run):
        if totals[-1] == 1:
            break
    assert (totals[-1] == 1) is found


@pytest.mark.parametrize("points", [[0, 0], [1, 2], [3, 3], [1, 1, 1], [0, 0, 0, 0]], ids=str)
def test_every_interleaving_is_reached_once(points: list[int]) -> None:
    seen: list[tuple[int, ...]] = []

    def run(schedule: tuple[int, ...]) -> bytearray:
        order: list[int] = []
        trace = StepTrace()

        def task(number: int) -> Callable[[], None]:
            def steps() -> None:
                for _ in range(points[number]):
                    order.append(number)
                    yield_point("step")
                order.append(number)

            return steps

        run_stepped([task(number) for number in range(len(points))], schedule, trace=trace)
        seen.append(tuple(order))
        return trace.options

    schedules = list(every_schedule(run))
    pieces = [count + 1 for count in points]
    assert len(set(seen)) == len(seen) == math.factorial(sum(pieces)) // math.prod(map(math.factorial, pieces))
    assert schedules == sorted(set(schedules))
    assert seen[0] == tuple(sorted(seen[0])), "the first one is sequential"


def test_zero_goes_on_and_other_numbers_take_another_task() -> None:
    order: list[int] = []

    def task(number: int) -> Callable[[], None]:
        def steps() -> None:
            order.append(number)
            yield_point("middle")
            order.append(number)

        return steps

    trace = StepTrace()
    # begin with 1; from 1 to the second other task (2); 2 runs to its end; of 0 and 1 the second
    run_stepped([task(0), task(1), task(2)], [1, 2, 0, 1], trace=trace)
    assert order == [1, 2, 2, 1, 0, 0]
    assert list(trace.turns) == [Turn(1, 1, "middle"), Turn(2, 1, "end"), Turn(1, 0, "end"), Turn(0, 1, "end")]
    assert trace.schedule == (1, 2, 0, 1)
    assert list(trace.options) == [3, 3, 3, 2]


def cross(first: CooperativeLock, second: CooperativeLock) -> Callable[[], str]:
    def task() -> str:
        with first, second:
            return first.name

    return task


def test_two_locks_in_opposite_order_wait_for_each_other() -> None:
    one, two, trace = CooperativeLock("one"), CooperativeLock("two"), StepTrace()
    tasks = [cross(one, two), cross(two, one)]
    assert [outcome.value for outcome in run_stepped(tasks, [])] == ["one", "two"]
    with pytest.raises(GuaranteeBroken) as caught:
        # 0 takes one, at two the turn goes to 1, which takes two and waits for one
        run_stepped(tasks, [0, 0, 1], trace=trace)
    assert caught.value.contract == 16
    assert caught.value.found == "task 0 waits for two (held by task 1); task 1 waits for one (held by task 0)"
    assert caught.value.__notes__ == [str(trace)]
    assert (one.holder, two.holder) == (None, None), "an ended task released its locks"


def test_a_lock_that_an_ended_task_kept_is_waited_for_in_vain() -> None:
    lock = CooperativeLock("lock")
    with pytest.raises(GuaranteeBroken, match=r"task 1 waits for lock \(held by task 0, which has ended\)"):
        run_stepped([lock.acquire, lock.acquire], [])
    assert lock.locked()


def test_waiting_for_oneself_is_a_deadlock_unless_reentrant() -> None:
    def twice(lock: CooperativeLock) -> int:
        with lock, lock:
            return 2

    plain, reentrant = CooperativeLock("plain"), CooperativeLock("reentrant", reentrant=True)
    with pytest.raises(GuaranteeBroken, match="task 0 waits for plain"):
        run_stepped([lambda: twice(plain)], [])
    assert run_stepped([lambda: twice(reentrant)] * 2, [0, 1, 1, 1, 1])[1].value == 2
    assert reentrant.is_free


def test_who_waits_is_not_runnable_until_the_release() -> None:
    lock, order = CooperativeLock("lock"), list[str]()

    def hold() -> None:
        with lock:
            yield_point("held")
            order.append("still held")
            yield_point("held")
        order.append("released")

    def wait() -> None:
        with lock:
            order.append("waited")

    # 0 takes the lock and is left in the middle; 1 runs and waits: nothing can be chosen before the release
    run_stepped([hold, wait], [0, 0, 1, 0, 1])
    assert order == ["still held", "waited", "released"]


class Answer:
    """Something that a task waits for, in watched code."""

    def __init__(self) -> None:
        self.is_there = False

    @property
    def is_free(self) -> bool:
        is_there = self.is_there
        return is_there

    def wait(self) -> None:
        task = current_task()
        assert task is not None
        if not self.is_there:
            task.wait_for(self)
        assert self.is_there

    def set(self) -> None:
        self.is_there = True


def test_what_a_task_waits_for_may_be_watched_code() -> None:
    """A yield point inside the question let a waiting task continue too early."""

    def options(schedule: tuple[int, ...]) -> bytearray:
        answer, trace = Answer(), StepTrace()
        tasks = [answer.wait, PlainCounter().add, answer.set]
        for outcome in run_stepped(tasks, schedule, modules=HERE, trace=trace):
            outcome.unwrap()
        return trace.options

    assert sum(1 for _ in islice(every_schedule(options), 200)) == 200


def test_a_lock_knows_its_holder_and_its_acquisitions() -> None:
    lock = CooperativeLock("lock")
    seen: list[tuple[int | None, int | None]] = []

    def look() -> bool:
        seen.append((lock.holder, lock.acquisition))
        return lock.acquire(blocking=False)

    def hold_twice() -> None:
        for _ in range(2):
            with lock:
                yield_point("held")

    outcomes = run_stepped([hold_twice, look], [0, 0, 1])
    assert (outcomes[1].value, seen) == (False, [(0, 1)])
    assert (lock.holder, lock.acquisition, lock.is_free) == (None, None, True)
    with lock:
        assert lock.acquisition == 3


def test_taking_a_lock_is_one_step() -> None:
    trace = StepTrace()
    run_stepped([CooperativeLock("lock").acquire], [], modules=HERE, trace=trace)
    assert trace.steps == 1


def test_a_lock_outside_a_run_is_an_ordinary_one() -> None:
    lock = CooperativeLock("lock")
    with lock:
        assert (lock.holder, lock.acquisition, lock.locked()) == (OUTSIDE, 1, True)
        assert not lock.acquire(blocking=False)
        with pytest.raises(HarnessError, match="lock, held by code outside the run"):
            lock.acquire()
        with pytest.raises(GuaranteeBroken, match="held by code outside the run"):
            run_stepped([lock.acquire], [])
        outcome = run_stepped([lock.release], [])[0]
        assert str(outcome.error) == "task 0 releases lock, held by code outside the run"
    with pytest.raises(RuntimeError, match="releases lock, held by no task"):
        lock.release()
    yield_point("outside a run")


def test_a_lock_of_another_task_is_not_released() -> None:
    lock = CooperativeLock("lock")
    tasks: list[Callable[[], object]] = [lock.acquire, lock.release]
    outcomes = run_stepped(tasks, [])
    assert isinstance(outcomes[1].error, RuntimeError)
    assert str(outcomes[1].error) == "task 1 releases lock, held by task 0, which has ended"
    again = run_stepped([lambda: None, lambda: None, lock.release], [])  # a task of an earlier run is another one
    assert str(again[2].error) == "task 2 releases lock, held by task 0, which has ended"


def test_exceptions_are_outcomes() -> None:
    def fail() -> int:
        yield_point("before")
        raise ValueError("no")

    def leave() -> int:
        raise SystemExit(3)

    first, second, third = run_stepped([fail, lambda: 5, leave], [1, 1])
    assert isinstance(first.error, ValueError)
    assert (second.unwrap(), second.error) == (5, None)
    assert isinstance(third.error, SystemExit)
    with pytest.raises(ValueError, match="no"):
        first.unwrap()


def test_actions_are_called_before_their_step() -> None:
    log: list[str] = []
    trace = StepTrace()

    def task(name: str) -> Callable[[], None]:
        def steps() -> None:
            for number in range(2):
                yield_point("step")
                log.append(f"{name}{number}")

        return steps

    def action(name: str) -> Callable[[], None]:
        def act() -> None:
            yield_point("not in an action")
            log.append(name)

        return act

    actions = {2: action("second"), 3: action("third"), 9: action("never")}
    run_stepped([task("a"), task("b")], [0, 1, 0, 0], at_step=actions, modules=[], trace=trace)
    assert log == ["second", "b0", "third", "b1", "a0", "a1"]
    assert trace.steps == 4


def test_an_action_may_hold_a_lock_against_the_tasks() -> None:
    lock = CooperativeLock("lock")

    def task() -> bool:
        return lock.acquire(blocking=False)

    def hold() -> None:
        lock.acquire()

    actions = {1: hold, 2: lock.release}
    assert [outcome.value for outcome in run_stepped([task, task], [], at_step=actions)] == [False, True]


def test_an_action_that_fails_ends_the_run() -> None:
    def fail() -> None:
        raise OSError("disk gone")

    with pytest.raises(OSError, match="disk gone"):
        run_stepped([PlainCounter().add] * 3, [0, 0, 1], modules=HERE, at_step={3: fail})
    with pytest.raises(ValueError, match="steps are counted from 1: 0"):
        run_stepped([], [], at_step={0: fail})


def test_equal_arguments_give_an_equal_trace() -> None:
    def run() -> StepTrace:
        trace, counter, lock = StepTrace(turns_max=50), PlainCounter(), CooperativeLock("lock")

        def task() -> None:
            for number in range(20):
                with lock:
                    counter.add()
                sum(number for number in range(3))

        for outcome in run_stepped([task] * 3, [pow(7, n, 101) for n in range(300)], modules=HERE, trace=trace):
            outcome.unwrap()
        assert counter.n == 60
        return trace

    expected = run()
    assert expected.steps > 300
    assert len(expected.turns) == 50
    assert expected.turns_omitted > 100
    assert str(expected).count(" | ") == 19
    assert all(run() == expected for _ in range(5))

    called = []

    def other(frame: FrameType, event: str, _argument: Any) -> None:
        called.append(event)

    before = sys.gettrace()
    sys.settrace(other)
    threading.settrace(other)
    try:
        traced = run()
        kept = sys.gettrace(), threading.gettrace()
    finally:
        sys.settrace(before)
        threading.settrace(before)
    assert traced == expected
    assert kept == (other, other)
    assert called


def test_the_trace_gives_the_shortest_schedule_of_the_same_run() -> None:
    long, short = StepTrace(), StepTrace()
    tasks = [PlainCounter().add] * 3
    run_stepped(tasks, [10**30 + 1, 3, -5, 7, 0, 99, *[3] * 10_000], modules=HERE, trace=long)
    assert long.integers_used < 20
    run_stepped(tasks, long.schedule, modules=HERE, trace=short)
    assert (short.turns, short.chosen) == (long.turns, long.chosen)
    assert short.schedule == long.schedule
    assert len(short.schedule) <= long.integers_used
    run_stepped([], [1, 2], trace=short)
    assert short == StepTrace()


def test_too_many_yield_points_are_a_harness_error() -> None:
    def endless() -> None:
        while True:
            pass

    trace = StepTrace()
    with pytest.raises(HarnessError, match=r"more than 1000 yield points: .*test_scheduler:\d+"):
        run_stepped([endless, endless], [1, 0] * 400, modules=HERE, points_max=1_000, trace=trace)
    assert trace.steps == 1_001
    with pytest.raises(ValueError, match="256 tasks, at most 255"):
        run_stepped([endless] * 256, [])


def test_cleanup_is_carried_out_when_a_run_is_ended() -> None:
    lock, done = CooperativeLock("guard"), list[str]()

    def stubborn() -> None:
        try:
            with lock:
                while True:
                    yield_point("work")
        finally:
            with lock:
                yield_point("cleanup")
            done.append("cleaned")

    def swallows() -> None:
        while True:
            try:
                yield_point("work")
            except BaseException:
                done.append("swallowed")
                break
        while True:
            yield_point("goes on")

    def never_begins() -> None:
        done.append("begun")

    with pytest.raises(HarnessError, match="more than 10 yield points"):
        run_stepped([stubborn, swallows, never_begins], [0, 0, 1, 0], points_max=10)
    assert done == ["swallowed", "cleaned"]
    assert lock.is_free


def test_an_interrupt_ends_the_run() -> None:
    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            yield_point("work")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a worker of pytest-xdist ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            run_stepped([interrupt, PlainCounter().add], [], points_max=10**7)
    finally:
        signal.signal(signal.SIGINT, before)
    assert gc.isenabled()


def test_a_lock_the_scheduler_does_not_know_is_a_harness_error() -> None:
    lock = threading.Lock()

    def task() -> None:
        with lock:
            yield_point("held")

    with pytest.raises(HarnessError, match=r"task 1 is at .*test_scheduler:\d+ for 0\.05 s"):
        run_stepped([task, task], [0, 1], hang_seconds=0.05)
    assert not lock.locked()


def test_stepped_runs_nest() -> None:
    def outer() -> list[int]:
        totals: list[int] = []
        count_to_two((0, 1), totals, locked=False)
        yield_point("outer")
        return totals

    assert [outcome.unwrap() for outcome in run_stepped([outer, outer], [0, 1])] == [[1], [1]]
