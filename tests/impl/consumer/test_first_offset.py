"""Test where a group begins in a queue. Spec: consumers, section 7.7; C1, C2."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.consumers import GROUP, World
from tests.support.impl.faulty_files import FaultyFiles
from tests.support.impl.stores import open_store
from tornpage.impl.consumer.connection import CallError
from tornpage.impl.consumer.first_offset import first_offset
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Bounds,
    OffsetFound,
    OffsetStatus,
    QueryBounds,
    QueryOffset,
    Refusal,
    Refused,
    Request,
    SearchOffset,
    UpdateOffset,
)
from tornpage.impl.consumer.settings import ConsumeFromWhere

MakeWorld = Callable[..., World]
LAST = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
TIMESTAMP = ConsumeFromWhere.CONSUME_FROM_TIMESTAMP
QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.mark.parametrize(
    ("where", "begins_early", "searched", "expected"),
    [
        (LAST, False, None, 9),
        (LAST, True, None, 4),
        (FIRST, False, None, 4),
        (TIMESTAMP, False, 7, 7),
        (TIMESTAMP, True, 7, 4),
    ],
)
def test_place_of_a_group_without_progress(
    where: ConsumeFromWhere, begins_early: bool, searched: int | None, expected: int
) -> None:
    assert first_offset(where, begins_early=begins_early, bounds=Bounds(4, 9), searched=searched) == expected


def not_found(request: Request) -> OffsetFound | None:
    """Answer as a broker whose queues are not young."""
    is_query = isinstance(request, QueryOffset) and request.queue.topic == "orders"
    return OffsetFound(OffsetStatus.NOT_FOUND, -1) if is_query else None


def join(here: World, rule: Callable[[Request], object], **changes: Any) -> None:
    here.join("a", **changes)
    here.connections["a"].rule = rule  # type: ignore[assignment]
    here.settle(for_ms=100)
    here.connections["a"].rule = lambda _: None
    here.settle(for_ms=3_000)


@pytest.mark.parametrize(("where", "expected"), [(LAST, []), (FIRST, ["m0", "m1"])])
def test_new_group_begins_where_the_settings_say(
    world: MakeWorld, where: ConsumeFromWhere, expected: list[str]
) -> None:
    here = world()
    here.put("m0", "m1")
    join(here, not_found, consume_from_where=where)
    assert here.consume() == expected
    here.put("m2")
    here.settle(for_ms=1_000)
    assert here.consume() == ["m2"]


def test_group_begins_at_a_time(world: MakeWorld) -> None:
    here = world()
    here.put("m0")
    here.settle(for_ms=50)
    here.put("m1")
    join(here, not_found, consume_from_where=TIMESTAMP, consume_timestamp_ms=here.clock.now_ms)
    assert here.consume() == ["m1"]
    assert here.connections["a"].count(SearchOffset) >= 1


@pytest.mark.parametrize("where", [LAST, FIRST])
def test_busy_broker_does_not_mean_no_progress(world: MakeWorld, where: ConsumeFromWhere) -> None:
    """C1, CB03: RocketMQ skips the backlog or repeats it."""
    here = world()
    here.put("m0", "m1", "m2", "m3")
    here.store.commit_offset(GROUP, "orders", 0, 1)
    busy = Refused(Refusal.BUSY, "busy")
    join(here, lambda request: busy if isinstance(request, QueryOffset) else None, consume_from_where=where)
    assert here.consume() == ["m1", "m2", "m3"]


@pytest.mark.parametrize("kind", [QueryOffset, QueryBounds, UpdateOffset])
@pytest.mark.parametrize("outcome", [CallError.TIMED_OUT, CallError.UNREACHABLE, Refused(Refusal.SHUTTING_DOWN)])
def test_failed_request_is_repeated(world: MakeWorld, kind: type, outcome: CallError | Refused) -> None:
    here = world()
    here.put("m0")
    join(here, lambda request: outcome if isinstance(request, kind) else not_found(request))
    assert here.consume() == ["m0"]


def test_first_offset_is_stored_before_a_message_is_consumed(world: MakeWorld) -> None:
    """C2: messages between the subscription and the first pull are not skipped."""
    here = world(queues=2)
    here.put("old", queue_id=1)
    join(here, not_found, consume_from_where=LAST)
    here.crash("a")
    assert here.stored(1) == 1
    here.put("new", queue_id=1)
    here.join("b", consume_from_where=LAST)
    here.connections["b"].rule = lambda _: None
    here.settle(for_ms=2_000)
    assert here.consume("b") == ["new"]


def test_first_offset_survives_a_kill_at_once(world: MakeWorld, tmp_path: Path) -> None:
    """C2: a new group would begin at the end again, and skip the messages put meanwhile."""
    here = world()
    here.put("old")
    join(here, not_found, consume_from_where=LAST)
    shutil.copytree(here.directory, tmp_path / "killed")
    with open_store(tmp_path / "killed", config=here.config) as killed:
        assert killed.consumer_offsets("orders") == {GROUP: {0: 1}}


def test_first_offset_that_cannot_be_saved_is_decided_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    here = World(tmp_path / "store", files=files)
    here.put("m0")
    files.fail("rename", part="consumerOffset", times=3)
    join(here, not_found)
    here.settle(for_ms=5_000)
    assert here.consume() == ["m0"]
    here.close()


def test_queue_that_is_added_later_begins_at_its_first_message(world: MakeWorld) -> None:
    here = world(queues=1)
    here.put("old")
    join(here, not_found, consume_from_where=LAST)
    here.put("new", queue_id=1)
    here.connections["a"].rule = lambda request: (
        OffsetFound(OffsetStatus.NOT_FOUND, -1, is_group_known=True)
        if isinstance(request, QueryOffset) and request.queue.queue_id == 1 and here.stored(1) is None
        else None
    )
    here.settle(for_ms=31_000)
    assert here.consume() == ["new"]


def test_all_queues_of_a_new_group_begin_alike(world: MakeWorld) -> None:
    """The first stored queue must not make the others look as if they were added later."""
    here = world(queues=3)
    for queue_id in range(3):
        here.put("old", queue_id=queue_id)
    join(here, not_found, consume_from_where=LAST)
    assert [here.stored(queue_id) for queue_id in range(3)] == [1, 1, 1]


def test_young_queue_begins_at_0_and_stays_there(world: MakeWorld) -> None:
    here = world()
    here.put("m0")
    here.join("a", consume_from_where=LAST)
    here.settle()
    assert here.stored() == 0
    assert here.consume() == ["m0"]


def test_update_only_if_absent_keeps_progress(world: MakeWorld) -> None:
    here = world()
    here.put("m0", "m1")
    here.broker.handle(UpdateOffset(GROUP, QUEUE, 1), "a", here.now_ms)
    here.broker.handle(UpdateOffset(GROUP, QUEUE, 2, only_if_absent=True), "a", here.now_ms)
    assert here.stored() == 1
