"""Test conditions of stepped runs."""

from tornpage.properties.scheduler import (
    CooperativeCondition,
    CooperativeLock,
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
