"""Test the engine of interleavings: draws, runs, counts, repeats, shrinking and tokens."""

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import NoReturn
from unittest.mock import Mock

import pytest

from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.parts import Parts
from tornpage.model.operations import Close, Flush, GetRecord, Pull, Put, Step
from tornpage.properties.contract import Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.interleavings import campaign, families
from tornpage.properties.explore.interleavings import shrink as shrinking
from tornpage.properties.explore.interleavings.campaign import CANARY, explore_interleavings
from tornpage.properties.explore.interleavings.draws import draw_interleaving, draw_modules, sequential
from tornpage.properties.explore.interleavings.families import FAMILIES, SMALLEST, Family
from tornpage.properties.explore.interleavings.parts import watched_modules
from tornpage.properties.explore.interleavings.run import run_interleaving
from tornpage.properties.explore.interleavings.scenario import Interleaving, Scenario
from tornpage.properties.explore.interleavings.shrink import BrokenInterleaving, shrink
from tornpage.properties.explore.interleavings.token import RENAMED, from_text, from_token, source_has_changed, token_of
from tornpage.properties.judge.linearizability.calls import answer_text
from tornpage.properties.planted import PLANTED
from tornpage.properties.program.case import Settings
from tornpage.properties.program.packing import BadToken

SMALL = Settings(file_bytes=1024, queue_units=3, index=False)
BUSY = Scenario(
    "busy", SMALL, (Put(),), ((Put(fill=1), Put(fill=2, body_bytes=800)), (Pull(), GetRecord(-1), Pull()), (Flush(),))
)


def drawn(scenario: Scenario, seed: int, points: int = 120) -> Interleaving:
    rng = Random(seed)
    return draw_interleaving(scenario, rng, modules=draw_modules(rng), points=points)


# ---- one interleaving ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_equal_interleavings_are_equal_runs(tracker: DirtyTracker) -> None:
    for seed in range(6):
        first, second = (run_interleaving(drawn(BUSY, seed), tracker=tracker) for _ in range(2))
        assert (first.key, first.outcome, first.verdict) == (second.key, second.outcome, second.verdict)
        assert bytes(first.trace.chosen) == bytes(second.trace.chosen)


@pytest.mark.slow
def test_schedules_lead_to_other_runs_and_other_answers(tracker: DirtyTracker) -> None:
    runs = [run_interleaving(drawn(BUSY, seed), tracker=tracker) for seed in range(12)]
    assert len({ran.key for ran in runs}) == 12
    assert len({ran.outcome for ran in runs}) > 3
    assert {ran.verdict for ran in runs} == {Verdict.HOLDS}


def test_a_service_is_stepped_by_its_own_task_when_it_is_woken(tracker: DirtyTracker) -> None:
    ran = run_interleaving(sequential(BUSY), tracker=tracker)
    dispatched = [call.task for call in ran.calls if call.request == Step("reput")]
    assert set(dispatched) == {len(BUSY.tasks)}
    assert ran.effects["puts"] == 2
    assert ran.effects["promises"] == 1


def test_a_put_that_waits_for_the_disk_is_answered_by_the_task_of_group_commit(tracker: DirtyTracker) -> None:
    sync = replace(SMALL, sync_flush=True)
    scenario = Scenario("sync", sync, (), ((Put(),), (Put(fill=1),)), ("group-commit",))
    for seed in range(6):
        ran = run_interleaving(drawn(scenario, seed), tracker=tracker)
        assert ran.verdict is Verdict.HOLDS
        puts = [call for call in ran.calls if isinstance(call.request, Put)]
        assert [answer_text(call.answer).split()[0] for call in puts] == ["PUT_OK", "PUT_OK"]
        assert ran.effects["promises"] == 2


def test_a_service_that_never_comes_is_told_as_waiting_for_ever(tracker: DirtyTracker) -> None:
    scenario = Scenario("no flush", replace(SMALL, sync_flush=True), (), ((Put(),),), ())
    ran = run_interleaving(sequential(scenario), tracker=tracker)
    assert ran.broken is not None
    assert ran.broken.contract == 16
    assert "an answer of group-commit" in ran.broken.found


def test_an_error_that_nobody_promised_is_told(tracker: DirtyTracker) -> None:
    class Failing(ReputMessages):
        def drain(self) -> None:
            raise LookupError("of dispatch")

    ran = run_interleaving(sequential(BUSY), tracker=tracker, parts=Parts({ReputMessages: Failing}))
    assert ran.broken is not None
    assert ran.broken.contract == 8
    assert "LookupError: of dispatch" in ran.broken.sentence


def test_dispatch_that_stops_is_told(tracker: DirtyTracker) -> None:
    class Idle(ReputMessages):
        def note_readable(self, _end_offset: int = 0) -> None:
            pass

        def drain(self) -> None:
            pass

    scenario = Scenario("idle", SMALL, (), ((Put(), Step("reput")),), ())
    ran = run_interleaving(sequential(scenario), tracker=tracker, parts=Parts({ReputMessages: Idle}))
    assert ran.broken is not None
    assert (ran.broken.contract, ran.broken.found) == (16, "112 bytes not dispatched")


def test_calls_behind_a_close_are_refused(tracker: DirtyTracker) -> None:
    scenario = Scenario("closed", SMALL, (Put(),), ((Close(), Put(fill=1), Pull(), GetRecord(0), Flush()),))
    ran = run_interleaving(sequential(scenario), tracker=tracker)
    assert ran.verdict is Verdict.HOLDS
    assert [answer_text(call.answer) for call in ran.calls[-3:]] == ["closed"] * 3


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_every_family_runs_alone_and_mixed(family: Family, tracker: DirtyTracker) -> None:
    scenario = family(Random(5))
    assert scenario == family(Random(5))
    for interleaving in (sequential(scenario), drawn(scenario, 1), drawn(scenario, 2)):
        ran = run_interleaving(interleaving, tracker=tracker)
        assert ran.verdict is Verdict.HOLDS, str(ran.broken)


@pytest.mark.slow
def test_every_planted_bug_opens_in_a_stepped_store(tracker: DirtyTracker) -> None:
    """The replaced parts take the locks of the scheduler, whatever else they change."""
    for bug in PLANTED:
        planted = replace(SMALLEST, settings=replace(SMALLEST.settings, bug=bug))
        run_interleaving(sequential(planted, ()), tracker=tracker)


# ---- tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_a_token_says_all_of_an_interleaving(family: Family) -> None:
    for seed in range(5):
        interleaving = drawn(family(Random(seed)), seed)
        read, source = from_token(token_of(interleaving))
        shortest = replace(interleaving, schedule=read.schedule)
        assert read == shortest
        assert interleaving.schedule[: len(read.schedule)] == read.schedule
        assert not any(interleaving.schedule[len(read.schedule) :])
        assert not source_has_changed(read, source)
        assert source_has_changed(read, "00000000")


OF_ANOTHER_NAME = (
    "ti1-212af7da-eNqNU9tuwyAM_Rc_0yrpbVX-Y09VhQhxUjQCjEu3quq_z9DbNmnt3sA2x-ccmyO02FuP0GyO0NruwNtDxADNuqoY9EpraOo"
    "qn62DBlyKcGKPKut_V85-VZZLiOiAQUC_V5JYgccf-V6nsIPTlsFou6Qz6gbU6PRUWhPSiJ7bvg8YA6GUeJe8aDXyPfr2FhyFc9hx4oL8PWH"
    "CayJapySXGoVRZrhGk1EF0Hnr0EeFYeq0MBG7qRcyFxIhI8ZMuLydpKzC-g49EZyxOVuyii1YTXWEINFEsmN1E1pknKVuczBGAqUg-ZcGAh2"
    "swYkKE2Pj7syrUL_4WlezBTE1HX5C0wsdkEFRxc_Em_mJQG3yxdFV1S8WcrnONn-oKHel-6Z-YfMtNY8ivJXAXxMpAh9M7J_5Lbt2GDByj5L"
    "cur_6FmNwOWQZj9KT-gJaFoBsuS0YbRwJy6Ol6-uTLnVJP8Uorb5vd_3jk9zlXVc2e2u9cWJArmh3PPmwz8Okjl8Nbyit"
)
"""A token from the time when properties.planted.races was named properties.planted.racing."""


def test_former_names_of_modules_lead_to_present_modules() -> None:
    assert {*RENAMED.values()} <= {*watched_modules()}
    for former, present in RENAMED.items():
        assert importlib.util.find_spec(present) is not None
        assert former not in watched_modules()


def test_a_token_that_names_a_module_as_it_was_called_is_read(tracker: DirtyTracker) -> None:
    interleaving, source = from_token(OF_ANOTHER_NAME)
    assert interleaving.modules[-1] == "tornpage.properties.planted.races"
    assert interleaving.scenario.settings.bug == "gone-is-nothing"
    assert source_has_changed(interleaving, source)
    assert run_interleaving(interleaving, tracker=tracker).trace.steps
    assert from_token(token_of(interleaving))[0] == interleaving


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[]", "not an interleaving"),
        ('{"tornpage_interleaving": 1}', "cannot be read"),
    ],
)
def test_what_is_no_interleaving_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadToken, match=why):
        from_text(text)


# ---- campaigns -------------------------------------------------------------------------------------------------------


FAMILY_OF: dict[str, Family] = {
    "RMQ-B24": families.clean_up,
    "RMQ-B40": families.topic_deletion,
    "RMQ-B76": families.light_queues,
    "written-before-bytes": families.producers_and_readers,
    "committed-before-bytes": families.pool,
    "flushed-read-behind": families.flushes,
    "maximum-before-units": families.producers_and_readers,
    "sleeps-unseen": families.sync_producers,
    "joins-the-sync": families.sync_producers,
    "end-read-first": families.producers_and_readers,
    "beyond-its-maximum": families.producers_and_readers,
    "looked-at-once": families.topic_deletion,
    "gone-is-nothing": families.clean_up,
    "index-unguarded": families.key_queries,
    "queried-once": families.key_queries,
    "forgotten-too-early": families.consumers,
    "deleted-beside-puts": families.topic_deletion,
    "counted-as-saved": families.consumers,
    "timed-after-the-sync": families.flushes,
    "stopped-beside-a-put": families.close,
}
"""The scenarios for the search of a bug; a campaign draws from all of them."""


def explored(
    tracker: DirtyTracker, *, states: int, bug: str = "", seed: int = 0, among: Sequence[Family] = FAMILIES
) -> campaign.InterleavingResult:
    return explore_interleavings(
        bug=bug,
        seed=seed,
        states=states,
        seconds=None,
        tracker=tracker,
        progress=lambda done, seconds: None,
        families=among,
    )


def test_every_planted_race_has_its_family() -> None:
    assert {bug.id for bug in PLANTED.values() if bug.needs_threads} <= FAMILY_OF.keys() <= PLANTED.keys()


@pytest.mark.slow
def test_a_campaign_counts_repeats_and_catches_its_canary(tracker: DirtyTracker) -> None:
    first, second = (explored(tracker, states=60, seed=3) for _ in range(2))
    assert first.tally.distinct == second.tally.distinct
    assert first.tally.outcomes == second.tally.outcomes
    assert first.tally.effects == second.tally.effects
    assert first.verdict in (Verdict.HOLDS, Verdict.VACUOUS)
    assert first.tally.interleavings == 60
    assert first.tally.exhausted == (15, False)
    assert len(first.tally.distinct) > 55
    assert first.repeated == 3
    assert first.canary == CANARY


def test_a_campaign_in_which_too_little_happened_is_vacuous(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "_CANARY_MAX", 1)
    result = explored(tracker, states=8)
    assert result.verdict is Verdict.VACUOUS
    assert "topics_deleted" in result.silent


def test_a_campaign_without_its_canary_is_vacuous(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "_CANARY_MAX", 1)
    monkeypatch.setattr(campaign, "EFFECTS", ())
    assert explored(tracker, states=4).verdict is Verdict.VACUOUS


@pytest.mark.deep
def test_the_store_holds_in_thousands_of_interleavings(tracker: DirtyTracker) -> None:
    result = explored(tracker, states=4_000, seed=8)
    assert result.verdict is Verdict.HOLDS, result.failure and str(result.failure.broken)
    assert len(result.tally.distinct) > 3_900


@pytest.mark.deep
@pytest.mark.parametrize("bug", FAMILY_OF)
def test_a_campaign_finds_every_planted_race(bug: str, tracker: DirtyTracker) -> None:
    result = explored(tracker, states=6_000, bug=bug, among=[FAMILY_OF[bug]])
    assert result.verdict is Verdict.BROKEN
    failure = result.failure
    assert failure is not None
    assert sum(map(len, failure.interleaving.scenario.tasks)) <= 10  # draws decide how far it gets
    assert failure.interleaving.switches <= 10
    read, _ = from_token(token_of(failure.interleaving))
    assert str(run_interleaving(read, tracker=tracker).broken) == str(failure.broken)


@pytest.mark.slow
def test_shrinking_keeps_to_one_failure(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrinking, "_TRIES_MAX", 120)
    planted = replace(BUSY, settings=replace(SMALL, bug="written-before-bytes"))
    seeds = (drawn(planted, seed) for seed in range(200))
    runs = ((interleaving, run_interleaving(interleaving, tracker=tracker)) for interleaving in seeds)
    interleaving, ran = next((i, r) for i, r in runs if r.broken is not None)
    assert ran.broken is not None
    small = shrink(BrokenInterleaving(interleaving, ran.broken, ran), tracker=tracker)
    assert small.broken.sentence == ran.broken.sentence
    assert small.interleaving.switches <= interleaving.switches
    assert sum(map(len, small.interleaving.scenario.tasks)) < sum(map(len, BUSY.tasks))


@pytest.mark.slow
def test_an_interrupt_while_a_failure_is_made_small_keeps_the_smallest(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure was lost, and the campaign called vacuous."""
    smaller: list[BrokenInterleaving] = []

    def interrupted(
        failure: BrokenInterleaving, *, tracker: DirtyTracker, took: Callable[[BrokenInterleaving], None]
    ) -> NoReturn:
        smaller.append(replace(failure))
        took(smaller[0])
        raise KeyboardInterrupt

    monkeypatch.setattr(campaign, "shrink", interrupted)
    bug = "written-before-bytes"
    result = explored(tracker, states=2_000, bug=bug, among=(FAMILY_OF[bug],))
    assert result.interrupted
    assert result.verdict is Verdict.BROKEN
    assert result.failure is smaller[0]


def test_an_interrupt_in_the_canary_keeps_the_campaign(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "_caught_canary", Mock(side_effect=KeyboardInterrupt))
    result = explored(tracker, states=10)
    assert (result.interrupted, result.tally.interleavings) == (True, 10)


def test_one_task_has_one_order() -> None:
    """Shrinking omits tasks and may leave one.

    A draw of its interleavings failed on an empty range.
    """
    alone = Scenario("alone", SMALL, (), ((Put(),),), ())
    assert {drawn(alone, seed) for seed in range(20)} == {
        sequential(alone, modules) for modules in {draw_modules(Random(seed)) for seed in range(20)}
    }


def test_watched_modules_are_there() -> None:
    read, _ = from_token(token_of(Interleaving(SMALLEST, (0, 1, 2), (), watched_modules())))
    assert read.modules == watched_modules()
