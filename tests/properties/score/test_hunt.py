"""Test a search: what counts as a kill, what does not, and when it ends."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis.errors import FlakyStrategyDefinition

from tornpage.impl.retention.clean_commit_log import CleanCommitLog
from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.score import strategies
from tornpage.properties.score.detections import Detection
from tornpage.properties.score.search import search
from tornpage.properties.score.strategies import STRATEGIES, IsOver, UnknownStrategy, strategies_named


@dataclass
class Clock:
    """A clock that the test advances."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Seen:
    """A scripted detection."""

    clock: Clock
    is_true: bool = True
    is_of_the_bug: bool = True
    broken: GuaranteeBroken = field(default_factory=lambda: GuaranteeBroken(2, "lost"))
    operations: int = 3

    def token(self) -> str:
        return "tp1-x"

    def replays(self, tracker: DirtyTracker) -> bool:
        self.clock.now += 100
        return self.is_true

    def needs_its_bug(self, tracker: DirtyTracker) -> bool:
        return self.is_of_the_bug


@dataclass(frozen=True)
class Scripted:
    """A strategy with one count per second and scripted detections."""

    clock: Clock
    meets: dict[int, Seen]
    ends_at: int = 1_000
    counts: str = "states"
    is_seeded: bool = True

    def seek(
        self, settings: Settings, *, seed: int, tracker: DirtyTracker, is_over: IsOver
    ) -> Iterator[tuple[int, Detection | None]]:
        for number in range(1, self.ends_at + 1):
            self.clock.now += 1
            yield number, self.meets.get(number)


def ended(
    meets: dict[int, Seen], clock: Clock, tracker: DirtyTracker, *, ends_at: int = 1_000
) -> tuple[str, int, float, int]:
    strategy = Scripted(clock, meets, ends_at)
    quarry = search(strategy, Settings(), seed=0, seconds=10.0, tracker=tracker, clock=clock)
    return quarry.end, quarry.count, quarry.seconds, quarry.others


def test_a_kill_has_the_count_and_the_time_of_its_sighting(tracker: DirtyTracker) -> None:
    clock = Clock()
    assert ended({4: Seen(clock)}, clock, tracker) == ("killed", 4, 4.0, 0)


def test_what_the_store_does_without_the_bug_is_no_kill_and_costs_no_time(tracker: DirtyTracker) -> None:
    clock = Clock()
    meets = {2: Seen(clock, is_of_the_bug=False), 5: Seen(clock)}
    assert ended(meets, clock, tracker) == ("killed", 5, 5.0, 1)


def test_a_hunt_ends_with_its_time_and_a_sighting_behind_it_counts_no_more(tracker: DirtyTracker) -> None:
    clock = Clock()
    assert ended({10: Seen(clock)}, clock, tracker) == ("survived", 10, 10.0, 0)


def test_a_strategy_that_has_nothing_left_is_exhausted(tracker: DirtyTracker) -> None:
    clock = Clock()
    assert ended({}, clock, tracker, ends_at=3) == ("exhausted", 3, 3.0, 0)


def test_a_failure_that_does_not_replay_is_the_harness(tracker: DirtyTracker) -> None:
    clock = Clock()
    with pytest.raises(HarnessError, match="does not replay"):
        ended({1: Seen(clock, is_true=False)}, clock, tracker)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "bug"),
    [(each, "LB09" if each == "raft" else "lying-flush") for each in STRATEGIES if each != "parts"],
)
def test_each_strategy_kills_a_bug_again_at_the_same_count(strategy: str, bug: str, tracker: DirtyTracker) -> None:
    found = [search(STRATEGIES[strategy], Settings(bug=bug), seed=3, seconds=60.0, tracker=tracker) for _ in range(2)]
    assert [each.end for each in found] == ["killed", "killed"]
    assert found[0].count == found[1].count
    assert found[0].sighting is not None
    assert found[1].sighting is not None
    assert found[0].sighting.token() == found[1].sighting.token()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_strategy_gives_up_when_its_time_is_up(strategy: str, tracker: DirtyTracker) -> None:
    quarry = search(STRATEGIES[strategy], Settings(), seed=0, seconds=0.2, tracker=tracker)
    assert quarry.end == "survived"
    assert quarry.seconds >= 0.2


def test_parts_alone_find_a_wrong_part_by_a_case_of_one_operation(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CleanCommitLog, "delete_first", lambda self, now_ms, **named: False)
    sought = STRATEGIES["parts"].seek(Settings(), seed=1, tracker=tracker, is_over=lambda: False)
    count, found = next((count, detection) for count, detection in sought if detection is not None)
    assert count == 1
    assert found.operations == 1
    assert found.broken.contract == 8
    assert found.replays(tracker)
    assert Case.from_token(found.token()).operations[0].op == "try_functions"


def test_strategies_are_named_with_commas_between() -> None:
    assert strategies_named("machine, random,machine") == ("machine", "random")
    assert strategies_named("") == tuple(STRATEGIES)
    with pytest.raises(UnknownStrategy, match="random"):
        strategies_named("rondam")


def test_a_machine_that_is_ended_inside_of_a_repeated_example_is_over_and_not_flaky(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended_inside(*, progress: Callable[[int], None], **_: object) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            progress(7)
        raise FlakyStrategyDefinition("the second run stopped drawing earlier than the first run")

    monkeypatch.setattr(strategies, "check", ended_inside)
    found = STRATEGIES["machine"].seek(Settings(), seed=0, tracker=tracker, is_over=lambda: True)
    assert list(found) == [(7, None)]
    with pytest.raises(FlakyStrategyDefinition):
        list(STRATEGIES["machine"].seek(Settings(), seed=0, tracker=tracker, is_over=lambda: False))
