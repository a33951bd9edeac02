"""Test the passes of the shrinker on batches, concurrency, settings and known failures."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tornpage.model.operations import (
    Close,
    Concurrent,
    FailAppend,
    Flush,
    Get,
    Member,
    Operation,
    Put,
    PutBatch,
    ReplicaIs,
    Step,
)
from tornpage.properties.campaign.passes import SIMPLER
from tornpage.properties.campaign.replay import replay, shrink, signature
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.program.case import Case, Settings

LARGE = Put(body_bytes=300, advance_ms=0)
NAMED = Put(properties="INNER_MULTI_DISPATCH\x01%LMQ%a", advance_ms=0)
MEMBERS = (
    Member(body_bytes=30, fill=1, properties="KEYS\x01k", flag=7),
    Member(body_bytes=200),
    Member(properties="a\x01b"),
)
BATCH = PutBatch(
    topic="U",
    queue_id=1,
    members=MEMBERS,
    properties="WAIT\x01true",
    sys_flag=4,
    born_v6=True,
    store_v6=True,
    later=True,
    advance_ms=1000,
)
BOTH = Concurrent(
    first=(NAMED, replace(NAMED, topic="U", body_bytes=300)),
    second=(Put(advance_ms=0),),
    schedule=(0, 1, 0, 1),
    jump_step=7,
    jump_ms=2000,
)


def smallest(case: Case, still_fails: Callable[[Case], bool]) -> Case:
    """Shrink with a predicate in place of a replay, in at most this many rounds."""
    for _ in range(500):
        candidates = (simpler for each in SIMPLER for simpler in each(case) if simpler != case)
        found = next((simpler for simpler in candidates if still_fails(simpler)), None)
        if found is None:
            return case
        case = found
    raise AssertionError(f"shrinking does not end: {case}")


def batches_of(case: Case) -> list[PutBatch]:
    return [operation for operation in case.operations if isinstance(operation, PutBatch)]


def concurrent_of(case: Case) -> list[Concurrent]:
    return [operation for operation in case.operations if isinstance(operation, Concurrent)]


def test_a_batch_shrinks_to_one_plain_message() -> None:
    case = smallest(Case(Settings(), (Put(), BATCH, Flush())), lambda case: bool(batches_of(case)))
    assert case.operations == (PutBatch(members=(Member(),)),)


@pytest.mark.parametrize("number", range(len(MEMBERS)))
def test_the_message_of_a_batch_that_matters_stays(number: int) -> None:
    wanted = MEMBERS[number]
    case = smallest(Case(Settings(), (BATCH,)), lambda case: any(wanted in batch.members for batch in batches_of(case)))
    assert case.operations == (PutBatch(members=(wanted,)),)


@pytest.mark.parametrize(
    "matters",
    [
        lambda batch: batch.topic == "U",
        lambda batch: batch.properties != "",
        lambda batch: batch.sys_flag == 4,
        lambda batch: batch.born_v6,
        lambda batch: batch.later,
        lambda batch: len(batch.members) == 2,
    ],
    ids=["topic", "properties", "transaction", "host", "later", "two messages"],
)
def test_only_what_matters_of_a_batch_stays(matters: Callable[[PutBatch], bool]) -> None:
    case = smallest(Case(Settings(), (BATCH,)), lambda case: any(matters(batch) for batch in batches_of(case)))
    (batch,) = batches_of(case)
    document = case.document()["operations"][0]
    assert matters(batch)
    assert len(set(document) - {"op", "members"}) <= 1, document


def test_concurrency_that_does_not_matter_becomes_a_row_of_puts() -> None:
    def has_two_named(case: Case) -> bool:
        return sum(isinstance(operation, Put) and bool(operation.properties) for operation in case.operations) == 2

    case = smallest(Case(Settings(), (BOTH,)), lambda case: has_two_named(case) or bool(concurrent_of(case)))
    assert [type(operation) for operation in case.operations] in ([Concurrent], [Put, Put])
    case = smallest(Case(Settings(), (*BOTH.first, *BOTH.second)), has_two_named)
    assert [type(operation) for operation in case.operations] == [Put, Put]
    assert Case(Settings(), (*BOTH.first, *BOTH.second)) in [
        simpler for each in SIMPLER for simpler in each(Case(Settings(), (BOTH,)))
    ]


@pytest.mark.parametrize(
    ("matters", "left"),
    [
        (lambda both: 1 in both.schedule, Concurrent(schedule=(1,))),
        (lambda both: both.jump_step > 0, Concurrent(jump_step=7, jump_ms=2000)),
        (lambda both: len(both.first) + len(both.second) >= 2, None),
        (lambda both: any(put.properties for put in both.first), Concurrent(first=(NAMED,))),
        (
            lambda both: any(put.body_bytes for put in both.first),
            Concurrent(first=(Put(body_bytes=300, advance_ms=0),)),
        ),
    ],
    ids=["a switch", "a jump", "two puts", "properties", "a body"],
)
def test_only_what_matters_of_concurrent_puts_stays(
    matters: Callable[[Concurrent], bool], left: Concurrent | None
) -> None:
    case = smallest(Case(Settings(), (Flush(), BOTH)), lambda case: any(map(matters, concurrent_of(case))))
    (both,) = concurrent_of(case)
    if left is not None:
        assert case.operations == (left,)
    else:
        assert len(both.first) + len(both.second) == 2
        assert both.schedule == ()


def test_one_switch_is_tried_in_place_of_many() -> None:
    def switches_late(both: Concurrent) -> bool:
        return (sum(both.schedule) == 1 and both.schedule.index(1) >= 37) or sum(both.schedule) > 4

    busy = replace(BOTH, schedule=(0, 1, 0, 1, 1) * 9)
    case = smallest(Case(Settings(), (busy,)), lambda case: any(map(switches_late, concurrent_of(case))))
    assert case.operations == (Concurrent(schedule=(*(0,) * 37, 1)),)


SETTINGS = Settings(
    file_bytes=65536,
    sync_flush=True,
    trailer=False,
    files_max=3,
    role="SYNC_MASTER",
    multi_dispatch=True,
    light_queues=True,
    light_queues_max=2,
    delay_levels=2,
    pool_buffers=2,
    fast_fail=True,
    files_ahead=1,
    least_pages=1,
    log_paths=2,
)


NO_QUEUES = replace(SETTINGS, light_queues_max=0)
PLAIN = replace(BATCH, sys_flag=0)
CHANGED = ("sync_flush", "trailer", "files_max", "role", "multi_dispatch", "light_queues", "light_queues_max")
MODES = ("pool_buffers", "fast_fail", "files_ahead", "least_pages", "log_paths")


@pytest.mark.parametrize("name", [*CHANGED, *MODES, "delay_levels"])
def test_a_setting_goes_back_to_its_default_unless_it_matters(name: str) -> None:
    wanted = getattr(SETTINGS, name)
    case = smallest(Case(SETTINGS, ()), lambda case: getattr(case.settings, name) == wanted)
    assert case.settings == replace(Settings(file_bytes=1024), **{name: wanted})


def test_a_put_loses_its_pairs_and_its_patience() -> None:
    put = Put(pairs=(("KEYS", "k"),), later=True, body_kind="none", advance_ms=2000)
    case = smallest(Case(Settings(), (put,)), lambda case: len(case.operations) == 1)
    assert case.operations == (Put(),)


@pytest.mark.parametrize(
    ("matters", "left"),
    [
        (lambda step: step.service == "flush", Step(service="flush")),
        (lambda step: step.after_ms >= 200, Step(after_ms=312)),
        (lambda step: True, Step()),
    ],
    ids=["the service", "the time", "nothing"],
)
def test_only_what_matters_of_a_step_stays(matters: Callable[[Step], bool], left: Step) -> None:
    def still_fails(case: Case) -> bool:
        return any(isinstance(each, Step) and matters(each) for each in case.operations)

    case = smallest(Case(Settings(), (Put(), Step(service="flush", after_ms=10_000), Flush())), still_fails)
    assert case.operations == (left,)


@pytest.mark.parametrize(
    ("bug", "settings", "operations", "left"),
    [
        ("RMQ-B21", SETTINGS, (Put(), replace(PLAIN, properties="UNIQ_KEY\x01b\x02CLUSTER\x01C"), Flush()), 1),
        ("RMQ-B16", SETTINGS, (ReplicaIs("silent"), Put(), FailAppend(), PLAIN, Step(), Put(advance_ms=2000)), 3),
        ("RMQ-B77", NO_QUEUES, (Put(), replace(BOTH, second=(NAMED,) * 2), NAMED, Get(), Close()), 1),
    ],
)
def test_a_failure_comes_out_small_and_replays(
    tracker: DirtyTracker, bug: str, settings: Settings, operations: tuple[Operation, ...], left: int
) -> None:
    failure = replay(Case(replace(settings, bug=bug), operations), tracker=tracker)
    assert failure is not None
    small = shrink(failure, tracker=tracker)
    assert len(small.case.operations) == left
    assert small.case.settings.role == "ASYNC_MASTER"
    again = replay(small.case, tracker=tracker)
    assert again is not None
    assert signature(again.broken) == signature(failure.broken)
