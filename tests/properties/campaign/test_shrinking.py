"""Test that shrinking ends at a minimal failing case, or reports what ended it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

import tornpage.properties.campaign.replay as replaying
from tornpage.model.operations import Close, Crash, Flush, Operation, Put, PutBatch, Step
from tornpage.properties.campaign.passes import SIMPLER
from tornpage.properties.campaign.replay import Failure, replay, shrink, signature
from tornpage.properties.campaign.shrink import Budget, Shrinking, weight_of
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.program.case import Case, Settings


@dataclass(frozen=True)
class Made:
    """A case that fails by a rule, in place of a replay."""

    case: Case
    losses: int = 0


def shrunk(
    case: Case, fails: Callable[[Case], bool], *, tries_max: int = 5_000, seconds: float | None = None
) -> tuple[Shrinking[Made], Budget, list[Case]]:
    tried: list[Case] = []

    def failing(candidate: Case) -> Made | None:
        tried.append(candidate)
        return Made(candidate) if fails(candidate) else None

    ticks = iter(range(1 << 20))
    budget = Budget(tries_max, seconds, clock=lambda: float(next(ticks)))
    shrinking = Shrinking(Made(case), failing, budget)
    shrinking.run()
    return shrinking, budget, tried


MANY = Case(
    Settings(sync_flush=True, queue_units=4),
    (
        *(Put(body_bytes=900, fill=n, topic="TopicA", properties="KEYS\x01k\x02TAGS\x01t") for n in range(20)),
        Flush(),
        Step(service="reput", after_ms=500),
        Crash(back=7, survived={"page /store/a 0": 1, "page /store/a 1": 1}),
        Close(),
    ),
)


def has_two_puts_and_a_crash(case: Case) -> bool:
    puts = sum(isinstance(operation, Put) for operation in case.operations)
    return puts >= 2 and any(isinstance(operation, Crash) for operation in case.operations)


def test_what_does_not_matter_goes_and_the_result_is_1_minimal() -> None:
    shrinking, budget, _ = shrunk(MANY, has_two_puts_and_a_crash)
    assert shrinking.one_minimal
    assert budget.ended == ""
    assert shrinking.best.case == Case(Settings(file_bytes=1024), (Put(), Put(), Crash()))


@pytest.mark.parametrize(
    "fails",
    [
        has_two_puts_and_a_crash,
        lambda case: sum(o.body_bytes for o in case.operations if isinstance(o, Put)) >= 5_000,
        lambda case: any("TAGS" in o.properties for o in case.operations if isinstance(o, Put)),
        lambda case: any(isinstance(o, Crash) and o.back >= 3 for o in case.operations),
        lambda case: case.settings.queue_units == 4 and len(case.operations) > 2,
    ],
    ids=["operations", "bytes", "a property", "a place", "a setting"],
)
def test_no_candidate_of_a_1_minimal_case_fails_and_is_simpler(fails: Callable[[Case], bool]) -> None:
    shrinking, _, _ = shrunk(MANY, fails)
    small = shrinking.best.case
    assert shrinking.one_minimal
    for candidate in candidates(small):
        assert not fails(candidate) or weight_of(candidate, losses=0) >= weight_of(small, losses=0), candidate


def test_the_check_above_sees_a_shrinking_that_stopped_early() -> None:
    shrinking, budget, _ = shrunk(MANY, has_two_puts_and_a_crash, tries_max=15)
    small = shrinking.best.case
    assert (shrinking.one_minimal, budget.ended) == (False, "tries")
    assert any(
        has_two_puts_and_a_crash(candidate) and weight_of(candidate, losses=0) < weight_of(small, losses=0)
        for candidate in candidates(small)
    )


def candidates(case: Case) -> Iterator[Case]:
    return (candidate for each in SIMPLER for candidate in each(case))


def test_no_case_is_tried_twice() -> None:
    _, budget, tried = shrunk(MANY, has_two_puts_and_a_crash)
    assert len(set(map(repr, tried))) == len(tried) == budget.tries


def test_time_ends_it_too() -> None:
    shrinking, budget, tried = shrunk(MANY, has_two_puts_and_a_crash, seconds=30.0)
    assert (shrinking.one_minimal, budget.ended) == (False, "time")
    assert 0 < len(tried) < 40


def test_an_interrupt_keeps_what_was_found() -> None:
    count = 0

    def fails(case: Case) -> bool:
        nonlocal count
        count += 1
        if count == 30:
            raise KeyboardInterrupt
        return has_two_puts_and_a_crash(case)

    shrinking, budget, _ = shrunk(MANY, fails)
    assert (shrinking.one_minimal, budget.ended) == (False, "interrupt")
    assert len(shrinking.best.case.operations) < len(MANY.operations)


def test_puts_are_merged_so_that_what_follows_stays_where_it_is() -> None:
    def sits_deep(case: Case) -> bool:
        puts = [o for o in case.operations if isinstance(o, Put)]
        return bool(puts) and isinstance(case.operations[-1], Flush) and sum(112 + p.body_bytes for p in puts) >= 9_000

    puts: tuple[Operation, ...] = tuple(Put(body_bytes=600, fill=n) for n in range(16))
    shrinking, _, _ = shrunk(Case(Settings(), (*puts, PutBatch(), Flush())), sits_deep)
    (put, _) = shrinking.best.case.operations
    assert isinstance(put, Put)


def test_fewer_lost_facts_are_simpler_than_a_plainer_message_and_fewer_operations_than_both() -> None:
    case = Case(Settings(), (Put(body_bytes=900), Crash()))
    assert weight_of(case, losses=1) < weight_of(Case(Settings(), (Put(), Crash())), losses=2)
    assert weight_of(Case(Settings(), (Crash(),)), losses=5) < weight_of(case, losses=0)


LOST = Case(
    Settings(file_bytes=4096, bug="size-not-synced"),
    (
        *(Put(body_bytes=900, fill=n) for n in range(6)),
        Crash(survived={"page /store/commitlog/00000000000000004096 0": 1}),
    ),
)


@pytest.fixture(scope="module")
def failure() -> Failure:
    from tornpage.properties.disk.dirty import choose_tracker

    with choose_tracker("auto") as tracker:
        found = replay(LOST, tracker=tracker)
    assert found is not None
    return found


def test_a_power_loss_is_told_by_what_was_lost(tracker: DirtyTracker, failure: Failure) -> None:
    small = shrink(failure, tracker=tracker)
    assert small.one_minimal
    assert len(small.case.operations) <= 4
    assert small.losses == 1
    last = small.case.operations[-1]
    assert isinstance(last, Crash)
    assert last.others == "kept"
    assert list(last.survived.values()) == [0]
    again = replay(small.case, tracker=tracker)
    assert again is not None
    assert signature(again.broken) == signature(failure.broken)


def test_shrinking_carries_a_replayed_failure_out_only_to_say_its_last_form(
    tracker: DirtyTracker, failure: Failure, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_out: list[Case] = []

    def counted(case: Case, *, tracker: DirtyTracker, witness: object = None) -> Failure | None:
        carried_out.append(case)
        return replay(case, tracker=tracker)

    monkeypatch.setattr(replaying, "replay", counted)
    small = shrink(failure, tracker=tracker)
    assert len(carried_out) - small.tries <= 1
    carried_out.clear()
    again = shrink(small, tracker=tracker, tries_max=0)
    assert (again.case, carried_out) == (small.case, [])


def test_equal_failures_give_equal_results(tracker: DirtyTracker, failure: Failure) -> None:
    first, second = (shrink(failure, tracker=tracker, tries_max=5) for _ in range(2))
    assert replace(first, seconds=0) == replace(second, seconds=0)
    assert first.ended == "tries"


def test_a_case_that_fails_no_more_comes_back_as_it_was(tracker: DirtyTracker, failure: Failure) -> None:
    holds = Failure(replace(failure.case, settings=replace(failure.case.settings, bug="")), failure.broken)
    small = shrink(holds, tracker=tracker)
    assert (small.case, small.ended, small.one_minimal, small.tries) == (holds.case, "holds", False, 0)


@pytest.mark.slow
def test_a_failure_has_one_sentence_in_every_process() -> None:
    case = Case(
        Settings(file_bytes=1024, multi_dispatch=True, bug="named-queue-forgotten"),
        (Put(properties="INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b,%LMQ%c"), Step(service="reput")),
    )
    program = (
        "import sys; from tornpage.properties.program.case import Case\n"
        "from tornpage.properties.campaign.replay import replay\n"
        "from tornpage.properties.disk.dirty import choose_tracker\n"
        "with choose_tracker('auto') as tracker: print(replay(Case.from_token(sys.argv[1]), tracker=tracker).broken)"
    )
    path = os.pathsep.join(filter(None, sys.path))
    said = {
        subprocess.run(
            [sys.executable, "-c", program, case.token()],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1, said


@pytest.mark.parametrize("last", [False, True], ids=["first replay", "last replay"])
def test_an_interrupt_around_the_search_keeps_what_was_found(
    last: bool, tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error left `shrink`, and its smallest result was lost."""
    failure = Failure(Case(Settings(), (Flush(),)), GuaranteeBroken(1, "a hole"))
    calls: list[Case] = []

    def interrupted(case: Case, *, tracker: DirtyTracker, witness: object = None) -> Failure:
        calls.append(case)
        if len(calls) == (3 if last else 1):  # one for the failure, one without the flush, one for the last form
            raise KeyboardInterrupt
        if not case.operations:
            return Failure(case, GuaranteeBroken(2, "another"))
        return failure

    monkeypatch.setattr(replaying, "replay", interrupted)
    monkeypatch.setattr(
        replaying, "_restated", lambda failure, *_: replace(failure.case, operations=(Flush(), Flush()))
    )
    monkeypatch.setattr(Shrinking, "run", lambda own: own._try(Case(Settings(), ())))
    small = replaying.shrink(failure, tracker=tracker)
    assert (small.case, small.ended, small.one_minimal) == (failure.case, "interrupt", False)
