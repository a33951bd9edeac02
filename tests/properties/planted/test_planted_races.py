"""Test bugs that need threads to meet: one switch in the smallest scenario shows each."""

from dataclasses import dataclass, replace

import pytest

from tests.support.properties.sweeps import sweep
from tornpage.model.operations import (
    Close,
    Commit,
    DeleteTopics,
    Flush,
    GetRecord,
    Pull,
    Put,
    Query,
    QueryProgress,
    Step,
)
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.interleavings.run import run_interleaving
from tornpage.properties.explore.interleavings.scenario import Scenario
from tornpage.properties.explore.interleavings.token import from_token, token_of
from tornpage.properties.planted import PLANTED, races
from tornpage.properties.program.case import Settings

SMALL = Settings(file_bytes=1024, queue_units=3, index=False)
POOL, SYNC = replace(SMALL, pool_buffers=3), replace(SMALL, sync_flush=True)
INDEXED = replace(SMALL, index=True)
LIGHT = replace(SMALL, file_bytes=4096, multi_dispatch=True, light_queues=True)
SIZE = 112
"""The record of an empty message of topic T."""

ONE, TWO = Put(), Put(fill=1)
LARGE, OTHER, THIRD = (Put(body_bytes=800, fill=fill) for fill in range(3))
KEYED = Put(properties="KEYS\x01k")
KEYED_LARGE = replace(KEYED, body_bytes=700)
NAMED = Put(properties="INNER_MULTI_DISPATCH\x01%LMQ%a")
REPUT, CLEAN, FLUSH = Step("reput"), Step("clean"), Flush()
TOO_FULL = 86
QUEUE_READS = "tornpage.impl.read.queue_reads"


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two tasks that meet; `modules` besides those of the bug have yield points.

    `contracts` are further promises that it may break.
    """

    scenario: Scenario
    modules: tuple[str, ...] = ()
    order: tuple[int, ...] | None = None
    switches: int = 1
    contracts: tuple[int, ...] = ()


def meeting(
    first: tuple[object, ...],
    second: tuple[object, ...],
    *,
    before: tuple[object, ...] = (),
    settings: Settings = SMALL,
    services: tuple[str, ...] = (),
    percent: int = 0,
) -> Scenario:
    return Scenario("meeting", settings, before, (first, second), services, percent)  # type: ignore[arg-type]


RACES: dict[str, Meeting] = {
    "RMQ-B24": Meeting(
        meeting((GetRecord(1),), (CLEAN,), before=(LARGE, OTHER, THIRD, REPUT, FLUSH), percent=TOO_FULL),
    ),
    "RMQ-B40": Meeting(
        meeting((REPUT,), (DeleteTopics(),), before=(ONE, REPUT, TWO)), ("tornpage.impl.queue.queue_files",),
        contracts=(8,),
    ),
    "RMQ-B76": Meeting(
        meeting((NAMED,), (replace(NAMED, topic="U"),), settings=LIGHT), ("tornpage.impl.log.commit_log",),
        contracts=(4,),
    ),
    "written-before-bytes": Meeting(meeting((TWO,), (GetRecord(0, behind=SIZE),), before=(ONE,))),
    "committed-before-bytes": Meeting(
        meeting((Step("commit"),), (GetRecord(0),), before=(ONE,), settings=POOL),
    ),
    "flushed-read-behind": Meeting(meeting((FLUSH,), (TWO, FLUSH), before=(ONE,))),
    "maximum-before-units": Meeting(meeting((REPUT,), (Pull(),), before=(ONE, REPUT, TWO))),
    "sleeps-unseen": Meeting(meeting((ONE,), (TWO,), services=("reput",)), order=(0, 2, 1)),
    "joins-the-sync": Meeting(
        meeting((ONE,), (TWO,), settings=SYNC, services=("group-commit",)), order=(0, 2, 1), switches=2,
    ),
    "end-read-first": Meeting(meeting((Pull(offset=1),), (TWO, REPUT), before=(ONE, REPUT))),
    "beyond-its-maximum": Meeting(meeting((Pull(),), (REPUT,), before=(ONE, REPUT, TWO)), (QUEUE_READS,)),
    "looked-at-once": Meeting(meeting((Pull(),), (DeleteTopics(),), before=(ONE, REPUT)), (QUEUE_READS,)),
    "gone-is-nothing": Meeting(
        meeting((GetRecord(0),), (CLEAN,), before=(LARGE, OTHER, REPUT, FLUSH), percent=TOO_FULL),
        ("tornpage.impl.log.commit_log",),
    ),
    "index-unguarded": Meeting(
        meeting((REPUT,), (Query(),), before=(KEYED, REPUT, replace(KEYED, fill=1)), settings=INDEXED),
        ("tornpage.impl.index.index_entries", "tornpage.impl.index.index_file"),
    ),
    "queried-once": Meeting(
        meeting(
            (Query(),), (replace(KEYED, fill=9), REPUT, CLEAN),
            before=(KEYED_LARGE, replace(KEYED_LARGE, fill=1), REPUT, FLUSH), settings=INDEXED, percent=TOO_FULL,
        ),
        ("tornpage.impl.read.message_query",),
    ),
    "forgotten-too-early": Meeting(
        meeting((DeleteTopics(), QueryProgress()), (Commit(offset=1),), before=(ONE, REPUT)),
    ),
    "deleted-beside-puts": Meeting(
        meeting((TWO,), (DeleteTopics(),), before=(ONE, REPUT)), ("tornpage.impl.log.commit_log",),
        contracts=(4,),
    ),
    "counted-as-saved": Meeting(
        meeting((Step("progress"),), (Commit(offset=1),), before=(ONE, REPUT, Commit(offset=0))),
    ),
    "timed-after-the-sync": Meeting(meeting((FLUSH, Step("flush-queues")), (TWO,), before=(ONE,))),
    "stopped-beside-a-put": Meeting(
        meeting((TWO,), (Close(),), before=(ONE,)),
        ("tornpage.impl.log.commit_log", "tornpage.impl.io.mapped_file", "tornpage.impl.put.put_path"),
        contracts=(11,),
    ),
}  # fmt: skip


def modules_of(race: Meeting) -> tuple[str, ...]:
    return (*race.modules, races.__name__)


def test_every_race_has_its_meeting() -> None:
    assert {bug.id for bug in PLANTED.values() if bug.needs_threads} <= RACES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("bug", RACES)
def test_a_switch_at_some_place_shows_it_and_its_token_too(bug: str, tracker: DirtyTracker) -> None:
    race = RACES[bug]
    planted = replace(race.scenario, settings=replace(race.scenario.settings, bug=bug))
    runs = sweep(planted, tracker=tracker, modules=modules_of(race), order=race.order, switches=race.switches)
    (alone, first), *_ = [next(runs)]
    assert first.broken is None, "without a switch nothing is wrong: nothing but a race shows it"
    assert alone.switches == 0
    interleaving, ran = next((i, r) for i, r in runs if r.broken is not None)
    assert ran.broken is not None
    assert ran.broken.contract in (PLANTED[bug].contract, *race.contracts)
    assert interleaving.switches <= race.switches
    again, _ = from_token(token_of(interleaving))
    assert again == interleaving
    replayed = run_interleaving(again, tracker=tracker)
    assert str(replayed.broken) == str(ran.broken)
    assert replayed.key == ran.key


@pytest.mark.parametrize("bug", RACES)
def test_the_store_holds_wherever_one_task_is_left(bug: str, tracker: DirtyTracker) -> None:
    race = RACES[bug]
    for interleaving, ran in sweep(race.scenario, tracker=tracker, modules=modules_of(race), order=race.order):
        assert ran.broken is None, (interleaving, str(ran.broken))
        assert ran.verdict.value == "holds"
