"""Test sleep sets, bounded preemptions, priorities and recorded accesses."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

import pytest

from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.scheduler import (
    CooperativeLock,
    PreemptionSearch,
    Priorities,
    SleepSets,
    StepTrace,
    bound_of,
    every_schedule,
    preemptions_of,
    run_stepped,
)
from tornpage.properties.scheduler.accesses import access_of_code, access_of_line

HERE = Path(__file__)
Tasks = list[Callable[[], object]]


class Account:
    """Hold two balances, a list of entries and a lock."""

    def __init__(self) -> None:
        self.left = 0
        self.right = 0
        self.entries: list[int] = []
        self.guard = CooperativeLock("account")

    def add_left(self) -> None:
        before = self.left
        self.left = before + 1

    def add_right(self) -> None:
        before = self.right
        self.right = before * 3 + 1

    def peek(self) -> int:
        return self.left

    def note(self, number: int) -> None:
        count = len(self.entries)
        self.entries.append(10 * count + number)

    def guarded(self, number: int) -> None:
        with self.guard:
            count = len(self.entries)
            self.entries.append(10 * count + number)

    def moved(self) -> None:
        self.right = self.left
        self.left = self.right + 5

    @property
    def state(self) -> tuple[object, ...]:
        return self.left, self.right, tuple(self.entries)


PROGRAMS: dict[str, Callable[[Account], Tasks]] = {
    "independent": lambda a: [a.add_left, a.add_right],
    "lost update": lambda a: [a.add_left, a.add_left],
    "moved": lambda a: [a.add_left, a.moved],
    "containers": lambda a: [partial(a.note, 1), partial(a.note, 2)],
    "locks": lambda a: [partial(a.guarded, 1), partial(a.guarded, 2)],
    "a lock that one task does not take": lambda a: [partial(a.guarded, 1), partial(a.note, 2)],
}


def run(tasks: Callable[[Account], Tasks], schedule: object, trace: StepTrace) -> tuple[object, ...]:
    account = Account()
    for outcome in run_stepped(tasks(account), schedule, modules=[HERE], trace=trace):  # type: ignore[arg-type]
        outcome.unwrap()
    return account.state


THREE: Callable[[Account], Tasks] = lambda a: [partial(a.guarded, 1), a.add_right, a.moved]  # noqa: E731


def states_by_brute_force(tasks: Callable[[Account], Tasks]) -> tuple[set[tuple[object, ...]], int]:
    found = set()

    def options(schedule: tuple[int, ...]) -> Sequence[int]:
        trace = StepTrace()
        found.add(run(tasks, schedule, trace))
        return trace.options

    return found, sum(1 for _ in every_schedule(options))


@pytest.mark.parametrize("name", PROGRAMS)
def test_sleep_sets_reach_every_final_state_in_fewer_runs(name: str) -> None:
    wanted, orders = states_by_brute_force(PROGRAMS[name])
    sleeping, trace, found = SleepSets(), StepTrace(records_accesses=True), set()
    while sleeping.begin():
        state = run(PROGRAMS[name], sleeping, trace)
        sleeping.ended(trace)
        if not sleeping.is_redundant:
            found.add(state)
    assert found == wanted
    assert sleeping.runs < orders


def test_independent_tasks_need_a_small_part_of_their_orders() -> None:
    _, orders = states_by_brute_force(PROGRAMS["independent"])
    sleeping, trace = SleepSets(), StepTrace(records_accesses=True)
    while sleeping.begin():
        run(PROGRAMS["independent"], sleeping, trace)
        sleeping.ended(trace)
    assert sleeping.runs - sleeping.redundant == 1
    assert orders > 5


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_search_without_a_practical_bound_takes_every_schedule_once(name: str) -> None:
    wanted, orders = states_by_brute_force(PROGRAMS[name])
    search, trace, found, schedules = PreemptionSearch(100), StepTrace(), set(), []
    for schedule in search.schedules():
        found.add(run(PROGRAMS[name], schedule, trace))
        schedules.append(bytes(trace.chosen))
        search.ran(trace)
    assert found == wanted
    assert len(schedules) == len(set(schedules)) == orders


def test_preemptions_are_counted_and_come_in_order() -> None:
    search, trace, counted = PreemptionSearch(2), StepTrace(), []
    for schedule in search.schedules():
        run(PROGRAMS["lost update"], schedule, trace)
        counted.append(preemptions_of(trace))
        search.ran(trace)
    assert counted == sorted(counted)
    assert set(counted) == {0, 1, 2}
    assert counted.count(0) == 2
    assert search.completed == 2


def test_one_preemption_shows_a_lost_update_and_none_does_not() -> None:
    for most, updates in ((0, {2}), (1, {1, 2})):
        search, trace, found = PreemptionSearch(most), StepTrace(), set()
        for schedule in search.schedules():
            found.add(run(PROGRAMS["lost update"], schedule, trace)[0])
            search.ran(trace)
        assert found == updates


def test_switches_at_a_wait_are_not_preemptions() -> None:
    search, trace = PreemptionSearch(1), StepTrace()
    most = 0
    for schedule in search.schedules():
        run(PROGRAMS["locks"], schedule, trace)
        most = max(most, preemptions_of(trace))
        search.ran(trace)
    assert most == 1


def test_priorities_run_the_highest_task_and_lower_it_at_a_change() -> None:
    trace = StepTrace()
    assert run(PROGRAMS["lost update"], Priorities(()), trace)[0] == 2
    assert preemptions_of(trace) == 0
    assert run(PROGRAMS["lost update"], Priorities((2,)), trace)[0] == 1
    assert preemptions_of(trace) == 1
    assert run(PROGRAMS["lost update"], tuple(trace.schedule), StepTrace())[0] == 1, "a schedule repeats it"


def test_the_first_of_two_changes_lowers_furthest() -> None:
    """The task lowered at change 0 continues only after the task that was lowered at change 1."""
    orders = []
    for changes in ((2, 5), (5, 2)):
        trace = StepTrace()
        run(THREE, Priorities(changes), trace)
        orders.append([turn.task for turn in trace.turns])
    assert orders[0] != orders[1]


def test_the_bound_of_a_run_is_that_of_the_paper() -> None:
    assert bound_of(4, 100, 1) == 1 / 4
    assert bound_of(4, 100, 3) == 1 / 40_000


def test_priorities_find_a_race_as_often_as_their_bound_says() -> None:
    """The lost update has depth 2."""
    trace = StepTrace()
    run(PROGRAMS["lost update"], (), trace)
    steps = trace.steps
    found = sum(run(PROGRAMS["lost update"], Priorities((at,)), StepTrace())[0] == 1 for at in range(1, steps + 1))
    assert found / steps >= bound_of(2, steps, 2)


# ---- accesses --------------------------------------------------------------------------------------------------------


def line_of(function: Callable[..., object], number: int) -> int:
    return function.__code__.co_firstlineno + number


def test_accesses_are_attributes_containers_and_locks() -> None:
    read, write = (access_of_line(Account.add_left.__code__, line_of(Account.add_left, n)) for n in (1, 2))
    assert read.reads
    assert not read.writes
    assert write.conflicts(read)
    assert not read.conflicts(read)
    right = access_of_code(Account.add_right.__code__)
    assert not right.conflicts(access_of_code(Account.add_left.__code__))
    assert access_of_code(Account.note.__code__).conflicts(access_of_code(Account.note.__code__))


def test_a_lock_orders_the_steps_of_its_tasks() -> None:
    trace = StepTrace(records_accesses=True)
    run(lambda a: [*PROGRAMS["locks"](a), a.peek], (), trace)
    steps = {number: [each.access for each in trace.accesses if each.task == number] for number in range(3)}
    assert any(one.conflicts(other) for one in steps[0] for other in steps[1])
    assert not any(one.conflicts(other) for one in steps[0] for other in steps[2])


def test_a_deadlock_is_met_by_the_search_with_sleep_sets() -> None:
    def tasks(account: Account) -> Tasks:
        other = CooperativeLock("other")

        def both(first: CooperativeLock, second: CooperativeLock) -> None:
            with first, second:
                account.left += 1

        return [lambda: both(account.guard, other), lambda: both(other, account.guard)]

    sleeping, trace, ends = SleepSets(), StepTrace(records_accesses=True), set()
    while sleeping.begin():
        try:
            ends.add(run(tasks, sleeping, trace)[0])
        except GuaranteeBroken as broken:
            ends.add(broken.contract)
        sleeping.ended(trace)
    assert ends == {2, 16}


def test_a_decision_of_a_task_with_a_lock_is_marked() -> None:
    trace = StepTrace()
    account = Account()
    run_stepped([partial(account.guarded, 1), partial(account.note, 2)], (), modules=[HERE], trace=trace)
    assert set(trace.locked) == {0, 1}
    run_stepped([partial(account.note, 1), partial(account.note, 2)], (), modules=[HERE], trace=trace)
    assert set(trace.locked) == {0}


def test_a_drawn_search_preempts_tasks_without_a_lock_first() -> None:
    first, all_of = 0, 0
    for seed in range(20):
        search, trace, differs = PreemptionSearch(1, Random(seed)), StepTrace(), []
        for schedule in search.schedules():
            run(PROGRAMS["a lock that one task does not take"], schedule, trace)
            if preemptions_of(trace):
                differs.append(trace.locked[len(schedule) - 1])
            search.ran(trace)
        first += sum(differs[: len(differs) // 3])
        all_of += sum(differs[: len(differs) // 3 * 3])
    assert 0 < first < all_of / 4, "a third of the schedules has less than a third of those under a lock"
