"""Test campaigns: equal seeds, verdicts, counted faults and partial results."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from tornpage.model.operations import Put
from tornpage.properties.campaign import engine
from tornpage.properties.campaign.coverage import Tally, enabled_judges, merged
from tornpage.properties.campaign.replay import Failure, Shrunk
from tornpage.properties.campaign.shrink import Watch
from tornpage.properties.contract import GuaranteeBroken, Verdict
from tornpage.properties.disk.dirty import CompareTracker, DirtyTracker, WriteProtectTracker, write_protect_available
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.images import Choices, compose
from tornpage.properties.explore.crashes import explore, scheduling, shards
from tornpage.properties.explore.crashes.campaign import CrashResult, Plan, run_campaign
from tornpage.properties.explore.crashes.explore import explore_seed
from tornpage.properties.explore.crashes.rows import result_hash, rows_of, that_count
from tornpage.properties.explore.crashes.scheduling import STRATEGIES, Strategy
from tornpage.properties.explore.crashes.shards import Shard, ShardRun, run_shard
from tornpage.properties.judge.violations import VIOLATIONS
from tornpage.properties.program.case import Case, Disk, Settings


def ignored(states: int, seconds: float) -> None:
    """Ignore the progress."""


def run(tracker: DirtyTracker, settings: Settings, *, states: int, seed: int = 1, **more: Any) -> CrashResult:
    return run_campaign(Plan(settings, seed, states, **more), tracker=tracker, progress=ignored)


def tally_of(seed: str, tracker: DirtyTracker, settings: Settings | None = None) -> Tally:
    """The result of a run with a hundred counted states.

    It includes the rule epilogue and corruptions.
    """
    tally = Tally()
    for failure in explore_seed(
        seed, settings or Settings(), tracker=tracker, tally=tally, is_over=lambda: tally.states >= 100
    ):
        assert failure is None, failure
    tally.seconds.clear()
    return tally


@pytest.mark.slow
@pytest.mark.parametrize("disk", ["posix-strict", "kill"])
def test_a_right_store_holds_on_every_disk(disk: Disk, tracker: DirtyTracker) -> None:
    """A run on the disk `journal` is in tests/tornpage/test_cli.py, on the command line."""
    result = run(tracker, Settings(disk=disk), states=250, seed=8)
    assert result.verdict is Verdict.HOLDS, (result.failure, result.faults, result.silent, result.canary)
    assert 250 <= result.tally.states <= 251, "the last state may count one inside its recovery"
    assert result.canary
    assert result.repeated >= 1
    enabled = result.tally.enabled
    of_every_store = enabled_judges(Settings())
    judged = {name for name in enabled if name.startswith("judge_")}
    assert judged >= set(of_every_store)
    assert judged <= set(enabled_judges(Settings(queue_ext=True)))
    assert min(enabled[name] for name in of_every_store) >= result.tally.all_states
    assert result.tally.states < result.tally.all_states, "counted states have two files and ten records"


@pytest.mark.deep
def test_equal_seeds_give_equal_tallies_and_others_do_not(tracker: DirtyTracker) -> None:
    assert tally_of("8:0", tracker) == tally_of("8:0", tracker)
    assert tally_of("8:0", tracker) != tally_of("3:0", tracker)


@pytest.mark.deep
def test_the_way_pages_are_watched_changes_nothing() -> None:
    reason = write_protect_available()
    if reason is not None:
        pytest.skip(reason)
    with CompareTracker() as compared, WriteProtectTracker() as protected:
        assert tally_of("8:0", compared) == tally_of("8:0", protected)


@pytest.mark.slow
def test_a_short_campaign_hits_every_kind(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has one fault of each kind at its end. Make-up sessions add the others."""
    result = run(tracker, Settings(), states=30, seed=4)
    assert result.silent == []
    assert result.tally.states <= 31, "states of make-up sessions do not count"
    monkeypatch.setattr(explore, "_MAKE_UP_SESSIONS", 0)
    assert {"missing", "flip", "aimed_no_space"} & set(run(tracker, Settings(), states=30, seed=4).silent)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_history_is_bounded(strategy: Strategy, tracker: DirtyTracker) -> None:
    """A history had up to 2,500 crash states, and a short search never drew another one."""
    tally = Tally()
    for failure in explore_seed("5:0", Settings(), tracker=tracker, tally=tally, strategy=strategy):
        assert failure is None
    assert 0 < tally.states < 2 * explore.STATES_PER_RUN


@pytest.mark.slow
def test_a_fault_a_rule_or_a_judge_that_never_fired_makes_it_vacuous(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fired, never = ("flip", "rule_put", "judge_is_a_prefix"), ("flood", "rule_dance", "judge_asleep")
    monkeypatch.setattr(scheduling, "required", lambda disk: (*fired, *never))
    result = run(tracker, Settings(), states=5)
    assert (result.verdict, result.silent) == (Verdict.VACUOUS, [*never])
    for name in never:
        monkeypatch.setattr(scheduling, "required", lambda disk, name=name: (*fired, name))
        assert scheduling.silent(result.tally, "posix-strict") == [name]


def firing(*names: str) -> Callable[..., Iterator[Failure | None]]:
    """Short runs that hold, in which these rules have fired and no others."""

    def history(seed: str, base: Settings, *, tally: Tally, **_: object) -> Iterator[Failure | None]:
        tally.states += 2
        tally.hit.update(names)
        yield None

    return history


def test_a_judge_that_agrees_with_its_violation_makes_it_vacuous(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(VIOLATIONS, "is_a_prefix", lambda found: found)
    both = ("judge_is_a_prefix", "judge_covers_the_floor")
    monkeypatch.setattr(scheduling, "required", lambda disk: both)
    monkeypatch.setattr(shards, "explore_seed", firing(*both))
    result = run(tracker, Settings(), states=5)
    assert (result.verdict, result.silent) == (Verdict.VACUOUS, ["judge_is_a_prefix"])


def test_a_campaign_that_misses_its_canary_is_vacuous(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "caught_canary", lambda *_, **__: "")
    monkeypatch.setattr(scheduling, "required", lambda disk: ())
    monkeypatch.setattr(shards, "explore_seed", firing())
    result = run(tracker, Settings(), states=5)
    assert (result.verdict, result.without_canary) == (Verdict.VACUOUS, [0])


def test_a_canary_that_ends_in_an_error_is_the_harness_fault(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> str:
        raise ValueError("no canary today")

    monkeypatch.setattr(shards, "caught_canary", fails)
    result = run(tracker, Settings(), states=5)
    assert (result.verdict, result.tally.states) == (Verdict.HARNESS, 0)
    assert result.faults == ["run canary: ValueError: no canary today"]


def test_a_run_that_does_not_repeat_is_the_harness_fault(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = count(1)

    def unsteady(*_: object, tally: Tally, **__: object) -> Iterator[None]:
        tally.states += next(runs)
        yield None

    monkeypatch.setattr(shards, "explore_seed", unsteady)
    result = run(tracker, Settings(), states=50)
    assert result.verdict is Verdict.HARNESS
    assert "other results" in result.faults[0]


def test_an_illegal_image_is_the_harness_fault(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    def forging(state: DiskState, choices: Choices) -> Image:
        image = compose(state, choices)
        files = {path: b"\1" + content[1:] if content else content for path, content in image.files.items()}
        return replace(image, files=files)

    monkeypatch.setattr("tornpage.properties.explore.crashes.crash_states.compose", forging)
    monkeypatch.setattr("tornpage.properties.explore.crashes.crash_states.LEGALITY_EVERY", 1)
    result = run(tracker, Settings(), states=100)
    assert result.verdict is Verdict.HARNESS
    assert "illegal" in result.faults[0]


@pytest.mark.slow
def test_an_interrupt_keeps_what_there_is(tracker: DirtyTracker) -> None:
    def interrupt_at(limit: int) -> Callable[[int, float], None]:
        def progress(states: int, seconds: float) -> None:
            if states >= limit:
                raise KeyboardInterrupt

        return progress

    plan = Plan(Settings(), seed=0, states=10_000)
    result = run_campaign(plan, tracker=tracker, progress=interrupt_at(120))
    assert result.interrupted
    assert result.is_cut
    assert 120 <= result.tally.states < 200
    assert not result.without_canary  # undetected, but possible


# ---- failures --------------------------------------------------------------------------------------------------------


def breaking(sentences: Sequence[str]) -> Callable[..., Iterator[Failure | None]]:
    """Runs of a few states; run number n breaks the n-th of some promises, repeatedly."""

    def history(seed: str, base: Settings, *, tally: Tally, **_: object) -> Iterator[Failure | None]:
        tally.states += 2
        yield None
        shard, place = divmod(int(seed.partition(":")[2]), 1_000_000)
        number = (2 * shard + place) % len(sentences)
        if sentences[number]:
            yield Failure(Case(base, (Put(fill=number),)), GuaranteeBroken(1, sentences[number]))

    return history


def explored(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch, *sentences: str, **more: Any) -> CrashResult:
    monkeypatch.setattr(shards, "explore_seed", breaking(sentences))
    monkeypatch.setattr(engine, "replay", lambda case, tracker: Failure(case, GuaranteeBroken(1, "again")))
    monkeypatch.setattr(engine, "shrink", lambda failure, **budget: Shrunk(failure.case, failure.broken))
    return run(tracker, Settings(), **{"states": 30, **more})


def test_different_failures_are_kept_apart_and_equal_ones_counted(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = explored(tracker, monkeypatch, "byte 7 is wrong", "", "byte 9 is wrong", "a hole")
    assert result.verdict is Verdict.BROKEN
    assert [(found.history, found.times) for found in result.found] == [("1:0", 7), ("1:3", 3)]


def test_an_interrupt_while_a_failure_is_made_small_ends_the_campaign(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next failure was shrunk then, and the exit code was not that of an interrupt."""
    calls: list[Failure] = []

    def shrink(failure: Failure, **_: object) -> Shrunk:
        calls.append(failure)
        return Shrunk(failure.case, failure.broken, ended="interrupt")

    monkeypatch.setattr(shards, "explore_seed", breaking(["a", "b"]))
    monkeypatch.setattr(engine, "replay", lambda case, tracker: Failure(case, GuaranteeBroken(1, "again")))
    monkeypatch.setattr(engine, "shrink", shrink)
    result = run(tracker, Settings(), states=30)
    assert result.interrupted
    assert result.verdict is Verdict.BROKEN
    assert (len(calls), len(result.found)) == (1, 2)


def test_the_time_to_make_failures_small_is_bounded_and_somebody_is_told_how_far_it_is(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "explore_seed", breaking(["a", "b"]))
    monkeypatch.setattr(engine, "replay", lambda case, tracker: Failure(case, GuaranteeBroken(1, "again")))
    bounds: list[tuple[int, float]] = []

    def shrink(failure: Failure, *, tries_max: int, seconds: float, watch: Watch, **_: object) -> Shrunk:
        bounds.append((tries_max, seconds))
        watch(7, 3, 1)
        return Shrunk(failure.case, failure.broken)

    monkeypatch.setattr(engine, "shrink", shrink)
    told: list[tuple[int, int, int, int]] = []
    run_campaign(
        Plan(Settings(), 1, 30),
        tracker=tracker,
        progress=ignored,
        making_small=lambda *said: told.append(said),
    )
    assert bounds == [
        (engine.SHRINK_TRIES, engine.SHRINK_SECONDS),
        (engine.LATER_SHRINK_TRIES, engine.LATER_SHRINK_SECONDS),
    ]
    assert told == [(1, 7, 3, 1), (2, 7, 3, 1)]


def test_it_goes_on_until_there_are_enough_different_failures(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = ("a", "b", "c", "d")
    assert len(explored(tracker, monkeypatch, *sentences).found) == 3
    assert len(explored(tracker, monkeypatch, *sentences, failures_max=1).found) == 1


@pytest.mark.slow
def test_what_is_behind_enough_failures_counts_for_nobody(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shards that run at the same time, or in Spark tasks, change nothing."""
    few = explored(tracker, monkeypatch, "a", "b", "c", states=40, shard_states=4)
    assert few.shards == 2
    rows = [row for shard in range(4) for row in rows_of(run_of(shard, tracker))]
    assert len(rows) > len(that_count(rows, 3))
    assert result_hash(that_count(rows, 3)) == few.result_hash


def run_of(number: int, tracker: DirtyTracker) -> ShardRun:
    ended = ShardRun(Shard(number, 1, 4, Settings()))
    run_shard(ended, tracker=tracker)
    return ended


def test_a_failure_that_does_not_replay_is_the_harness_fault(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "explore_seed", breaking(["a"]))
    result = run(tracker, Settings(), states=4)
    assert result.verdict is Verdict.HARNESS
    assert "does not replay" in result.faults[0]


# ---- shards ----------------------------------------------------------------------------------------------------------


def test_a_discovery_curve_goes_on_from_shard_to_shard() -> None:
    first, second = Tally(states=1, all_states=3), Tally(states=2, all_states=2)
    for tally, names, point in ((first, b"abc", (2, 2, 1)), (second, b"bd", (1, 1, 1))):
        for name in names:
            tally.images.add(bytes([name]))
        tally.recovered.add(b"log")
        tally.discovery.append(point)
    total = merged([first, second])
    assert total.discovery == [(2, 2, 1), (3, 3, 1), (4, 3, 1), (5, 4, 1)]
    assert (total.states, total.all_states, len(total.images)) == (3, 5, 4)


def test_shards_are_made_of_the_states_asked_for() -> None:
    plan = Plan(Settings(), seed=4, states=250, shard_states=100, strategy="covering")
    assert [(shard.number, shard.states, shard.strategy) for shard in plan.shards()] == [
        (0, 100, "covering"),
        (1, 100, "covering"),
        (2, 50, "covering"),
    ]
    seeds = [next(shard.run_seeds()) for shard in plan.shards()]
    assert seeds == ["4:0", "4:1000000", "4:2000000"]
