"""Test the programs of single parts: they hold, and a missing lock breaks one of them."""

import ast
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from random import Random

import pytest

from tornpage.impl.log.transient_store_pool import TransientStorePool
from tornpage.properties.contract import GuaranteeBroken, Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.interleavings import locks
from tornpage.properties.explore.interleavings.draws import draw_priorities
from tornpage.properties.explore.interleavings.operations import PartCall
from tornpage.properties.explore.interleavings.part_searches import PartTally, part_searches
from tornpage.properties.explore.interleavings.parts import watched_modules
from tornpage.properties.explore.interleavings.programs.bench import Bench, call, program, sequential_results
from tornpage.properties.explore.interleavings.programs.drawing import drawn_programs, entry
from tornpage.properties.explore.interleavings.programs.running import BENCHES, PROGRAMS, draw_programs, modules_of
from tornpage.properties.explore.interleavings.run import Ran, run_interleaving
from tornpage.properties.explore.interleavings.scenario import Interleaving, Scenario
from tornpage.properties.explore.interleavings.token import from_token, token_of
from tornpage.properties.scheduler import CooperativeLock, Granularity, PreemptionSearch, SleepSets, bound_of

GUARDS = {
    "pool": "pool._guard",
    "time-outs": "time_outs._guard",
    "replicas": "replicas._guard",
    "hold": "hold._guard",
    "filters": "filters._guard",
    "reads": "statistics._guard",
    "offsets": "offsets._guard",
    "flags": "flags._lock",
    "buffers": "buffers.guard",
    "group commit": "commit._guard",
    "mapped file": "file._guard",
    "delay": "offsets._save_guard",
    "allocation": "allocation._guard",
}
"""A lock of most benches. The names are those of the parts under test.

Without its lock the tree still holds, since each change of its sets is one call of C (docs/tester/mutants.md).
"""


def plain(scenario: Scenario, granularity: Granularity = "line") -> Interleaving:
    return Interleaving(scenario, tuple(range(len(scenario.tasks))), (), modules_of(scenario), granularity)


def first_broken(
    scenarios: list[Scenario], tracker: DirtyTracker, granularity: Granularity, most: int = 400
) -> Ran | None:
    for scenario in scenarios:
        search = PreemptionSearch(1)
        for schedule in islice(search.schedules(), most):
            ran = run_interleaving(replace(plain(scenario, granularity), schedule=schedule), tracker=tracker)
            if ran.broken is not None:
                return ran
            search.ran(ran.trace)
    return None


def test_every_program_holds_without_preemptions(tracker: DirtyTracker) -> None:
    for scenario in PROGRAMS:
        search = PreemptionSearch(0)
        for schedule in search.schedules():
            ran = run_interleaving(replace(plain(scenario), schedule=schedule), tracker=tracker)
            assert ran.broken is None, f"{scenario.part} {scenario.tasks}: {ran.broken}"
            search.ran(ran.trace)


@pytest.mark.parametrize("part", GUARDS)
def test_a_part_without_its_lock_is_broken(part: str, tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    make = BENCHES[part]
    holder, attribute = GUARDS[part].split(".")

    class Unguarded(make):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__()
            assert isinstance(getattr(getattr(self, holder), attribute), CooperativeLock)
            setattr(getattr(self, holder), attribute, nullcontext())

    monkeypatch.setitem(BENCHES, part, Unguarded)
    scenarios = [scenario for scenario in PROGRAMS if scenario.part == part]
    found = first_broken(scenarios, tracker, "line") or first_broken(scenarios, tracker, "opcode")
    assert found is not None
    assert found.broken is not None
    assert found.broken.contract in (2, 8, 11, 16, 17)


def test_the_results_of_a_program_are_those_of_its_orders() -> None:
    scenario = program("reads", [call("count", 1, 5)], [call("snapshot", 6)])
    answers = {result.answers[1][0] for result in sequential_results(BENCHES["reads"], scenario)}
    assert answers == {"(0, 0, 0, 0, ())", "(1, 0, 1, 1, ())"}


def test_an_order_in_which_a_call_waits_forever_gives_no_result() -> None:
    scenario = program("answer", [call("wait")], [call("set")])
    assert {result.answers for result in sequential_results(BENCHES["answer"], scenario)} == {(("1",), ("None",))}


def test_a_lost_wake_up_of_a_service_is_a_deadlock(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    class NotNotified(BENCHES["runner"]):  # type: ignore[misc,valid-type,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.runner._state.notify = lambda: None

    monkeypatch.setitem(BENCHES, "runner", NotNotified)
    found = first_broken([scenario for scenario in PROGRAMS if scenario.part == "runner"], tracker, "line")
    assert found is not None
    assert found.broken is not None
    assert found.broken.contract == 16


@pytest.mark.slow
def test_searches_take_each_program_and_count_what_is_complete(tracker: DirtyTracker) -> None:
    tally, searched, runs = PartTally(), set(), 0
    for search in islice(part_searches(Random(1), tally), 8):
        interleaving = next(search)
        searched.add(interleaving.scenario)
        while True:
            ran = run_interleaving(interleaving, tracker=tracker)
            assert ran.verdict is Verdict.HOLDS
            runs += 1
            try:
                interleaving = search.send(ran)
            except StopIteration:
                break
    assert len(searched) == 8
    assert runs > 100
    assert 4 <= tally.completed[1] <= 8


def test_sleep_sets_complete_a_program_and_give_the_results_of_its_orders(tracker: DirtyTracker) -> None:
    scenario = program("reads", [call("count", 0, 5)], [call("count", 0, 6)])
    search, found = SleepSets(), set()
    while search.begin():
        ran = run_interleaving(replace(plain(scenario), chooser=search), tracker=tracker)
        search.ended(ran.trace)
        found.add(ran.outcome)
    results = sequential_results(BENCHES["reads"], scenario)
    assert found == {(*(" ".join(each) for each in result.answers), result.state) for result in results}
    assert search.redundant


def test_a_token_keeps_program_granularity_and_changes(tracker: DirtyTracker) -> None:
    scenario = PROGRAMS[0]
    drawn = draw_priorities(scenario, Random(1), modules=modules_of(scenario), steps=40, granularity="opcode")
    read, _ = from_token(token_of(drawn))
    assert read == drawn
    first, again = (run_interleaving(each, tracker=tracker) for each in (drawn, read))
    assert first.key == again.key
    assert run_interleaving(drawn.as_run(first.trace), tracker=tracker).key == first.key


def test_runs_by_priorities_are_counted_with_their_bound() -> None:
    tally = PartTally()
    for _ in range(3):
        tally.drawn(2, 50, 2)
    (found,) = tally.bounds()
    assert found["bound"] == bound_of(2, 50, 2) == 1 / 100
    assert found["bound_of_all"] == pytest.approx(1 - 0.99**3)


def test_a_rule_of_a_bench_is_a_broken_guarantee(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    class Losing(BENCHES["pool"]):  # type: ignore[misc,valid-type,name-defined]
        def borrow(self, name: int) -> bool:
            return self.pool.borrow() is not None

    monkeypatch.setitem(BENCHES, "pool", Losing)
    with pytest.raises(GuaranteeBroken, match="buffers are lost"):
        sequential_results(Losing, program("pool", [call("borrow", 1)]))


# ---- drawn programs --------------------------------------------------------------------------------------------------


def names_of(calls: Sequence[object]) -> list[str]:
    return [each.call for each in calls if isinstance(each, PartCall)]


MENU = (entry("a", (1, 2), role="one"), entry("b", role="one"), entry("c").then("d", (3,)), entry("e", waits=True))


def test_each_pair_of_a_menu_is_drawn_once_in_each_round() -> None:
    pairs = [("a", "c"), ("a", "e"), ("b", "c"), ("b", "e"), ("c", "c"), ("c", "e"), ("e", "e")]
    drawn = list(islice(drawn_programs("part", MENU, Random(3)), 2 * len(pairs)))
    for number in (0, len(pairs)):
        begun = [
            tuple(sorted(names_of(task)[0] for task in each.tasks[:2])) for each in drawn[number : number + len(pairs)]
        ]
        assert sorted(begun) == pairs
    assert drawn != list(islice(drawn_programs("part", MENU, Random(4)), len(drawn)))


def test_calls_of_one_role_are_in_one_task_and_waits_are_not_made_before() -> None:
    for scenario in islice(drawn_programs("part", MENU, Random(5)), 200):
        with_role = [number for number, task in enumerate(scenario.tasks) if {"a", "b"} & {*names_of(task)}]
        assert len(with_role) <= 1
        assert "e" not in names_of(scenario.before)
        for task in scenario.tasks:
            names = names_of(task)
            assert all(names[at + 1] == "d" for at, name in enumerate(names) if name == "c")


def test_equal_seeds_draw_equal_programs_of_all_benches() -> None:
    drawn, again = (list(islice(draw_programs(Random(1)), 60)) for _ in range(2))
    assert drawn == again
    assert len({each.part for each in drawn}) > 10


@pytest.mark.slow
def test_drawn_programs_of_every_bench_hold_without_preemptions(tracker: DirtyTracker) -> None:
    parts = set()
    for scenario in islice(draw_programs(Random(2)), 150):
        ran = run_interleaving(plain(scenario), tracker=tracker)
        assert ran.broken is None, f"{scenario.part} {scenario.before} {scenario.tasks}: {ran.broken}"
        parts.add(scenario.part)
    assert parts == {name for name, make in BENCHES.items() if make.menu}  # type: ignore[attr-defined]


@pytest.mark.parametrize("part", ["window", "members", "leases", "returns", "log files", "queue files"])
def test_a_drawn_program_of_a_part_without_its_lock_is_broken(
    part: str, tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = BENCHES[part]
    places = {
        "window": ("lease", "guard"),
        "members": ("broker", "_guard"),
        "leases": ("broker", "_guard"),
        "returns": ("broker", "_send_back_guard"),
        "log files": ("log", "_flush_lock"),
        "queue files": ("files", "_flush_lock"),
    }
    holder, attribute = places[part]

    class Unguarded(make):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__()
            setattr(getattr(self, holder), attribute, nullcontext())

    monkeypatch.setitem(BENCHES, part, Unguarded)
    drawn = list(islice(drawn_programs(part, make.menu, Random(1)), 30))  # type: ignore[attr-defined]
    assert first_broken(drawn, tracker, "shared opcode", most=300) is not None


# ---- locks -----------------------------------------------------------------------------------------------------------


def test_every_module_with_a_lock_is_watched_or_has_a_reason() -> None:
    found = set(locks.modules_with_locks())
    assert len(found) > 25
    assert found - set(watched_modules()) == set(locks.UNWATCHED)
    assert all(locks.UNWATCHED.values())


@pytest.mark.parametrize(
    "source",
    [
        "with self._guard:\n    pass",
        "a = threading.Lock()",
        "with owner.put_lock as held:\n    pass",
        "g = make_guard()",
    ],
)
def test_a_module_with_a_lock_is_found_by_syntax(source: str) -> None:
    assert locks._holds_a_lock(ast.parse(source))
    assert not locks._holds_a_lock(ast.parse("with open(path) as file:\n    pass"))


def test_watched_modules_create_locks_of_the_scheduler_for_a_run_only() -> None:
    with locks.controlled_locks():
        assert isinstance(TransientStorePool(1, 8)._guard, CooperativeLock)
    assert not isinstance(TransientStorePool(1, 8)._guard, CooperativeLock)


def test_each_bench_watches_modules_that_exist_and_has_programs() -> None:
    for make in BENCHES.values():
        assert issubclass(make, Bench)  # type: ignore[arg-type]
        assert make.programs or make.menu  # type: ignore[attr-defined]
    assert len(PROGRAMS) > 80
