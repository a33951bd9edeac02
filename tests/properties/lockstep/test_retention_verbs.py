"""Test the judgement after deletions: what may be left of queues and index."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tornpage.model.operations import Clean, DeleteTopics, Flush, HoldBuffer, Operation, Put, Step
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.judge.evidence import Recovered, derived_on, key_of
from tornpage.properties.judge.index import index_is_right
from tornpage.properties.judge.log import begins_where_it_may
from tornpage.properties.judge.queues import queues_are_right
from tornpage.properties.judge.rulings import require
from tornpage.properties.lockstep.deleting import held_buffers_are_right
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

SETTINGS = Settings(file_bytes=1024, queue_units=2, index_entries=4)
KEYED = Put(body_bytes=300, properties="KEYS\x01k")
SETTLED = (Step(service="reput"), Flush(), Step(service="flush-queues", after_ms=60_000))
QUEUE = "consumequeue/T/0/{:020d}"


def carried_out(tracker: DirtyTracker, *operations: Operation, settings: Settings = SETTINGS) -> Lockstep:
    trial = lockstep_of(settings, tracker=tracker)
    for operation in operations:
        trial.run(operation)
    return trial


@pytest.fixture
def trial(tracker: DirtyTracker) -> Lockstep:
    """Nine messages, two to a log file and to a queue file.

    The first two files have gone with four messages.
    """
    trial = carried_out(tracker, *[KEYED] * 5, *SETTLED, Clean(percent=88), *[KEYED] * 4, *SETTLED)
    assert trial.log.min_offset == 2048
    return trial


def derived_of(trial: Lockstep) -> dict[str, bytes]:
    return dict(derived_on(trial.pair.durable(trial.files)))


def judge(trial: Lockstep, content: dict[str, bytes]) -> None:
    for is_right in (queues_are_right, index_is_right):
        is_right(
            content, trial.memory.derived, trial.log.end_offset, settings=SETTINGS, min_offset=trial.log.min_offset
        )


# ---- queues and index --------------------------------------------------------------------------------------------


def test_what_a_store_leaves_is_right_and_is_not_when_nothing_was_deleted(trial: Lockstep) -> None:
    content = derived_of(trial)
    judge(trial, content)
    assert QUEUE.format(0) not in content
    with pytest.raises(GuaranteeBroken, match=r"the queue file .* is not there"):
        queues_are_right(content, trial.memory.derived, trial.log.end_offset, settings=SETTINGS)


def test_units_of_deleted_messages_may_be_there_or_be_filler(trial: Lockstep) -> None:
    content = derived_of(trial)
    filler = bytes(8) + b"\x7f\xff\xff\xff" + bytes(8)
    gone, units = QUEUE.format(40), bytes(trial.memory.derived.queues["T", 0].stored[40:80])
    assert gone not in content
    for there in (units, filler * 2, units[:20] + filler):
        judge(trial, content | {gone: there})
    with pytest.raises(GuaranteeBroken, match="unit 3"):
        judge(trial, content | {gone: filler + b"\1" * 20})
    with pytest.raises(GuaranteeBroken, match="is not there"):
        judge(trial, content | {QUEUE.format(0): filler * 2})


@pytest.mark.parametrize("number", [80, 120])
def test_a_file_with_a_message_that_is_left_has_to_be_there(trial: Lockstep, number: int) -> None:
    content = derived_of(trial)
    del content[QUEUE.format(number)]
    with pytest.raises(GuaranteeBroken, match="is not there"):
        judge(trial, content)


def test_the_last_file_of_a_queue_has_its_number(tracker: DirtyTracker) -> None:
    other = replace(KEYED, topic="U")
    trial = carried_out(tracker, KEYED, KEYED, *[other] * 3, *SETTLED, Clean(percent=88))
    content = derived_of(trial)
    judge(trial, content)
    del content[QUEUE.format(0)]
    with pytest.raises(GuaranteeBroken, match="restart at 0"):
        judge(trial, content)


def test_entries_of_messages_that_are_left_have_to_be_in_the_index(trial: Lockstep) -> None:
    content = derived_of(trial)
    index = sorted(name for name in content if name.startswith("index/"))
    assert len(index) > 1
    for name in index:
        with pytest.raises(GuaranteeBroken, match=r"index"):
            judge(trial, {other: data for other, data in content.items() if other != name})


# ---- where a log begins ------------------------------------------------------------------------------------------


def test_a_log_that_begins_elsewhere_is_noticed(trial: Lockstep) -> None:
    found = trial.recovery.judged_at_rest()
    assert found.key == key_of(found.legal[found.key])
    require(begins_where_it_may(found))
    store: Any = SimpleNamespace(min_offset=1024, max_offset=found.store.max_offset)
    with pytest.raises(GuaranteeBroken, match="begins at another offset"):
        require(begins_where_it_may(replace(found, store=store)))


def test_a_deletion_that_is_not_on_disk_is_noticed(tracker: DirtyTracker) -> None:
    trial = carried_out(tracker, KEYED, *SETTLED, DeleteTopics())
    found: Recovered = trial.recovery.judged_at_rest()
    files = {path: data for path, data in found.durable.files.items() if not path.endswith("deletedTopics")}
    with pytest.raises(GuaranteeBroken, match="other deleted topics"):
        require(begins_where_it_may(replace(found, durable=replace(found.durable, files=files))))


# ---- readers -----------------------------------------------------------------------------------------------------


def test_a_buffer_that_is_taken_back_too_soon_or_too_late_is_noticed(tracker: DirtyTracker) -> None:
    trial = carried_out(tracker, *[KEYED] * 5, *SETTLED, HoldBuffer(), Clean(percent=88))
    assert trial.log.hanging is not None
    pair = trial.pair
    held = list(pair.clients.buffers)
    pair.log = pair.log.changed(hanging=None)
    with pytest.raises(GuaranteeBroken, match="whose file is removed"):
        held_buffers_are_right(pair)
    pair.log = pair.log.changed(min_offset=0)
    held[0].buffer.release()
    with pytest.raises(GuaranteeBroken, match="taken back too soon"):
        held_buffers_are_right(pair)
