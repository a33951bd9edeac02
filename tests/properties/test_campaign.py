"""Campaigns: equal seeds, honest verdicts, counted faults, partial results."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest

from properties import campaign
from properties.campaign import CampaignResult, run_campaign
from properties.case import Settings
from properties.explore import Tally, explore_seed
from properties.images import Choices, compose
from properties.recorder.dirty import CompareTracker, DirtyTracker, WriteProtectTracker, write_protect_available
from properties.recorder.disk import Disk, DiskState, Image
from properties.verdict import HarnessError, Verdict


def ignored(states: int, seconds: float) -> None:
    """Progress nobody watches."""


def run(tracker: DirtyTracker, settings: Settings, *, states: int, seed: int = 1) -> CampaignResult:
    return run_campaign(settings, seed=seed, states=states, seconds=None, tracker=tracker, progress=ignored)


def tally_of(seed: str, tracker: DirtyTracker, settings: Settings | None = None) -> Tally:
    tally = Tally()
    for failure in explore_seed(seed, settings or Settings(), tracker=tracker, tally=tally):
        assert failure is None, failure
    tally.seconds.clear()
    return tally


@pytest.mark.parametrize("disk", ["posix-strict", "journal", "kill"])
def test_a_right_store_holds_on_every_disk(disk: Disk, tracker: DirtyTracker) -> None:
    result = run(tracker, Settings(disk=disk), states=250, seed=8)
    assert result.verdict is Verdict.HOLDS, (result.failure, result.silent, result.canary)
    assert 250 <= result.tally.states <= 251, "the last state may count one inside its recovery"
    assert result.canary
    assert result.repeated >= 1
    assert min(result.tally.judged.values()) == result.tally.all_states


def test_counted_states_have_two_files_and_ten_records(tracker: DirtyTracker) -> None:
    tally = tally_of("3:0", tracker)
    assert 0 < tally.states < tally.all_states


def test_equal_seeds_give_equal_tallies_and_others_do_not(tracker: DirtyTracker) -> None:
    assert tally_of("8:0", tracker) == tally_of("8:0", tracker)
    assert tally_of("8:0", tracker) != tally_of("3:0", tracker)


def test_the_way_pages_are_watched_changes_nothing() -> None:
    reason = write_protect_available()
    if reason is not None:
        pytest.skip(reason)
    with CompareTracker() as compared, WriteProtectTracker() as protected:
        assert tally_of("8:0", compared) == tally_of("8:0", protected)


def test_a_fault_class_that_never_fired_makes_it_vacuous(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "required_faults", lambda disk: ("flip", "flood"))
    result = run(tracker, Settings(), states=5)
    assert result.verdict is Verdict.VACUOUS
    assert result.silent == ["flood"]


def test_a_campaign_that_misses_its_canary_is_vacuous(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "caught_canary", lambda base, seeds, tracker: "")
    result = run(tracker, Settings(), states=150)
    assert not result.silent
    assert result.verdict is Verdict.VACUOUS


def test_a_run_that_does_not_repeat_is_the_harness_fault(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = count(1)

    def unsteady(*_: object, tally: Tally, **__: object) -> Iterator[None]:
        tally.states += next(runs)
        yield None

    monkeypatch.setattr(campaign, "explore_seed", unsteady)
    with pytest.raises(HarnessError, match="other results"):
        run(tracker, Settings(), states=2_000)


def test_an_illegal_image_is_the_harness_fault(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    def forging(state: DiskState, choices: Choices) -> Image:
        image = compose(state, choices)
        files = {path: b"\1" + content[1:] if content else content for path, content in image.files.items()}
        return replace(image, files=files)

    monkeypatch.setattr("properties.explore.compose", forging)
    monkeypatch.setattr("properties.explore.LEGALITY_EVERY", 1)
    with pytest.raises(HarnessError, match="illegal"):
        run(tracker, Settings(), states=100)


def test_an_interrupt_keeps_what_there_is(tracker: DirtyTracker) -> None:
    def interrupt_at(limit: int) -> Callable[[int, float], None]:
        def progress(states: int, seconds: float) -> None:
            if states >= limit:
                raise KeyboardInterrupt

        return progress

    result = run_campaign(Settings(), seed=0, states=10_000, seconds=None, tracker=tracker, progress=interrupt_at(120))
    assert result.interrupted
    assert 120 <= result.tally.states < 200
