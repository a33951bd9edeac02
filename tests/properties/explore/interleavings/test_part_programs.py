"""Test the programs of single parts: they hold, and a missing lock breaks one of them."""

import ast
from collections.abc import Generator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from math import factorial, prod
from operator import attrgetter
from random import Random

import pytest

from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.transient_store_pool import TransientStorePool
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.properties.contract import GuaranteeBroken, Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.interleavings import locks
from tornpage.properties.explore.interleavings.draws import draw_priorities
from tornpage.properties.explore.interleavings.operations import PartCall
from tornpage.properties.explore.interleavings.part_searches import PartTally, part_searches
from tornpage.properties.explore.interleavings.parts import watched_modules
from tornpage.properties.explore.interleavings.programs.bench import Bench, call, program, sequential_results
from tornpage.properties.explore.interleavings.programs.drawing import drawn_programs, entry
from tornpage.properties.explore.interleavings.programs.running import (
    BENCHES,
    PROGRAMS,
    draw_programs,
    modules_of,
    programs_by_part,
)
from tornpage.properties.explore.interleavings.programs.stores import LockedDisk, StoreBench
from tornpage.properties.explore.interleavings.run import Ran, run_interleaving
from tornpage.properties.explore.interleavings.scenario import Interleaving, Scenario
from tornpage.properties.explore.interleavings.token import from_token, token_of
from tornpage.properties.program.log_places import ROOT
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
    scenarios: list[Scenario],
    tracker: DirtyTracker,
    granularity: Granularity,
    *,
    most: int = 400,
    preemptions: int = 1,
) -> Ran | None:
    for scenario in scenarios:
        search = PreemptionSearch(preemptions)
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
            self.runner._state.notify_all = lambda: None

    monkeypatch.setitem(BENCHES, "runner", NotNotified)
    found = first_broken([scenario for scenario in PROGRAMS if scenario.part == "runner"], tracker, "line")
    assert found is not None
    assert found.broken is not None
    assert found.broken.contract == 16


def run_search(search: Generator[Interleaving, Ran, None], tracker: DirtyTracker) -> list[Interleaving]:
    """Return the interleavings of a search, all of which hold."""
    found = [next(search)]
    while True:
        ran = run_interleaving(found[-1], tracker=tracker)
        assert ran.verdict is Verdict.HOLDS, ran.broken
        try:
            found.append(search.send(ran))
        except StopIteration:
            return found


def test_searches_of_a_turn_take_few_schedules_of_different_programs(tracker: DirtyTracker) -> None:
    tally = PartTally()
    found = [run_search(search, tracker) for search in islice(part_searches(Random(1), tally), 8)]
    assert len({each[0].scenario for each in found}) == tally.sampled == 8
    assert max(map(len, found)) == 12
    assert all(len({each.schedule for each in searched}) == len(searched) for searched in found)


@pytest.mark.slow
def test_a_named_program_is_searched_to_its_bound_after_a_turn(tracker: DirtyTracker) -> None:
    tally = PartTally()
    turn = sum(number for _, number in programs_by_part(Random(1)))
    (last,) = islice(part_searches(Random(1), tally), turn, turn + 1)
    assert len(run_search(last, tracker)) > 12
    assert tally.sampled == turn


def test_a_drawn_search_takes_all_schedules_in_another_order(tracker: DirtyTracker) -> None:
    scenario = program("flags", [call("set", 0)], [call("set", 1)])
    taken = []
    for rng in (None, Random(1), Random(2)):
        search, schedules = PreemptionSearch(1, rng), []
        for schedule in search.schedules():
            search.ran(run_interleaving(replace(plain(scenario), schedule=schedule), tracker=tracker).trace)
            schedules.append(schedule)
        assert search.completed == 1
        taken.append(schedules)
    assert len({frozenset(each) for each in taken}) == 1
    assert len({tuple(each) for each in taken}) == 3


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


def test_a_time_of_the_checkpoint_that_is_read_after_the_sync_is_found(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = CommitLog.flush

    def put_meanwhile(log: CommitLog, least_pages: int = 0) -> None:
        """Flush, and take the time of a record that another thread has put during the sync."""
        flush(log, least_pages)
        log.flushed_store_timestamp += 1

    monkeypatch.setattr(CommitLog, "flush", put_meanwhile)
    with pytest.raises(GuaranteeBroken, match="checkpoint is newer than the durable log"):
        sequential_results(BENCHES["puts"], program("puts", [call("flush")]))


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
    for scenario in islice(draw_programs(Random(2)), sum(number for _, number in programs_by_part(Random(2)))):
        ran = run_interleaving(plain(scenario), tracker=tracker)
        assert ran.broken is None, f"{scenario.part} {scenario.before} {scenario.tasks}: {ran.broken}"
        parts.add(scenario.part)
    assert parts == set(BENCHES)


def test_a_drawn_program_has_few_orders_of_whole_calls() -> None:
    menu = (entry("a").then("b").then("c"), entry("d").then("e").then("f"), entry("g"))
    for most in (6, 60):
        for scenario in islice(drawn_programs("part", menu, Random(6), orders_max=most), 100):
            counts = list(map(len, scenario.tasks))
            orders = factorial(sum(counts)) // prod(map(factorial, counts))
            assert orders <= most or counts in ([3, 3], [3, 1], [1, 3])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "holder", "attribute"),
    [
        ("window", "lease", "guard"),
        ("members", "broker", "_guard"),
        ("leases", "broker", "_guard"),
        ("progress", "broker", "_guard"),
        ("returns", "broker", "_send_back_guard"),
        ("node", "node", "_guard"),
        ("raft store", "store", "_lock"),
        ("raft saves", "store", "_commit_guard"),
        ("open files", "files", "_guard"),
        ("log files", "log", "_flush_lock"),
        ("queue files", "files", "_flush_lock"),
        ("full queue files", "files", "_flush_lock"),
        ("closing", "store._durability", "guard"),
        ("expiring", "store._retention", "_guard"),
    ],
)
def test_a_drawn_program_of_a_part_without_its_lock_is_broken(
    part: str, holder: str, attribute: str, tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = BENCHES[part]

    class Unguarded(make):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__()
            assert isinstance(getattr(attrgetter(holder)(self), attribute), CooperativeLock)
            setattr(attrgetter(holder)(self), attribute, nullcontext())

    monkeypatch.setitem(BENCHES, part, Unguarded)
    drawn = list(islice(drawn_programs(part, make.menu, Random(1)), 30))  # type: ignore[attr-defined]
    assert first_broken(drawn, tracker, "shared opcode", most=300) is not None


@pytest.mark.slow
def test_two_closes_without_their_lock_are_broken(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A close that begins after the end of another one does no harm."""

    class Unguarded(BENCHES["closing"]):  # type: ignore[misc,valid-type,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.store._close_guard = nullcontext()

    monkeypatch.setitem(BENCHES, "closing", Unguarded)
    closes = [program("closing", [call("close")], [call("close")])]
    assert first_broken(closes, tracker, "shared opcode", most=1_000, preemptions=2) is not None


def test_a_role_that_changes_before_the_store_is_closed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def role_first(self: ReplicatedStore, role: BrokerRole, *, master: str = "") -> None:
        before = self._config, self._settings
        self._config = replace(self._config, broker_role=role)
        self._settings = replace(self._settings, ha_master_address=master)
        self._close()
        try:
            self._open()
        except OSError:
            self._config, self._settings = before
            self._open()
            raise

    BENCHES["node"]().state()
    monkeypatch.setattr(ReplicatedStore, "become", role_first)
    with pytest.raises(GuaranteeBroken, match="another role after a change that failed"):
        BENCHES["node"]().state()


def test_a_change_after_the_lock_of_a_directory_is_a_violation() -> None:
    bench = StoreBench()
    bench.store.close()
    found = [bench.files.broken]
    bench.files.create(f"{ROOT}/late")
    found.append(bench.files.broken)
    assert found == ["", "FileCreated after the lock of the directory was released"]


def test_a_file_that_is_mapped_when_the_lock_is_released_is_a_violation() -> None:
    for readers, found in ((0, "1 files are mapped when the lock of the directory is released"), (1, "")):
        disk = LockedDisk()
        disk.make_directory(ROOT)
        lock, file = disk.create(f"{ROOT}/lock"), disk.create(f"{ROOT}/file")
        disk.allocate(file, 8)
        assert disk.lock(lock)
        disk.map(file)
        disk.readers = readers
        disk.close(lock)
        assert disk.broken == found


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
