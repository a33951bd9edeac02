"""Test that deleted topics stay deleted and start empty when they are used again."""

import errno
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.retained import NIGHT_MS, Retained, names_in
from tests.support.impl.stores import MESSAGE, config_of
from tornpage.impl.dispatch.deleted_topics import DeletedTopics
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.dispatching import NO_INDEX_PUTS, Dispatched, QueueRun
from tornpage.impl.message.message import GetStatus, PutStatus

LATER_MS = NIGHT_MS + 3 * 24 * 3_600_000
TWO_UNITS = replace(config_of(), time_zone="UTC", mapped_file_size_consume_queue=40)
MULTI = replace(config_of(), time_zone="UTC", enable_multi_dispatch=True, enable_lmq=True)
NAMING = replace(MESSAGE, topic="Parent", properties={"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b"})


@pytest.fixture
def kept(tmp_path: Path) -> Retained:
    """Put four messages of one topic and one of another."""
    kept = Retained(tmp_path)
    kept.put(4, replace(MESSAGE, properties={"KEYS": "k"}))
    kept.put(1, topic="Other")
    kept.settle()
    return kept


def bounds(kept: Retained, topic: str = "TopicTest", queue_id: int = 1) -> tuple[int, int]:
    return kept.store.min_offset_in_queue(topic, queue_id), kept.store.max_offset_in_queue(topic, queue_id)


def reopen(kept: Retained, *, closed: bool = False) -> None:
    if closed:
        kept.store.close()
    else:
        kept.store._held.close()
    kept.open()
    kept.runner.step("reput")


# ---- deleting ----------------------------------------------------------------------------------------------------


def test_other_topics_stay_and_the_log_keeps_everything(kept: Retained) -> None:
    assert kept.store.clean_unused_topics({"Other", "Unknown"}) == ("TopicTest",)
    assert kept.store.queues() == [("Other", 1)]
    assert kept.store.get_message("TopicTest", 1, 0).status is GetStatus.NO_MATCHED_LOGIC_QUEUE
    assert kept.store.get(0).status is GetStatus.FOUND
    assert len(kept.store.query_message("TopicTest", "k").messages) == 4
    assert names_in(kept.directory / "consumequeue" / "TopicTest" / "1") == []
    assert kept.store.clean_unused_topics({"Other"}) == ()


def test_topics_of_the_store_itself_and_light_queues_stay(tmp_path: Path) -> None:
    """RMQ-B55: a system topic that this list lacked."""
    kept = Retained(tmp_path, MULTI)
    kept.put(1, topic="SCHEDULE_TOPIC_XXXX")
    kept.put(1, topic="RMQ_SYS_TRANS_OP_HALF_TOPIC")
    kept.put(1, NAMING)
    kept.settle()
    assert kept.store.clean_unused_topics(()) == ("Parent",)
    assert kept.store.queues() == [
        ("%LMQ%a", 0), ("%LMQ%b", 0), ("RMQ_SYS_TRANS_OP_HALF_TOPIC", 1), ("SCHEDULE_TOPIC_XXXX", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("closed", [True, False])
def test_a_deleted_topic_stays_deleted(kept: Retained, closed: bool) -> None:
    """RMQ-B39: the next open dispatches its records again."""
    kept.store.clean_unused_topics({"Other"})
    reopen(kept, closed=closed)
    assert kept.store.queues() == [("Other", 1)]
    assert kept.store.findings == ()


@pytest.mark.parametrize("closed", [True, False])
def test_its_numbers_begin_at_0_again_and_meet_no_older_message(kept: Retained, closed: bool) -> None:
    kept.store.clean_unused_topics({"Other"})
    kept.put(2)
    kept.settle()
    reopen(kept, closed=closed)
    kept.put(1)
    kept.settle()
    assert bounds(kept) == (0, 3)
    with kept.store.get_message("TopicTest", 1, 0) as pulled:
        assert [message.offset for message in pulled.messages] == [1627, 2048, 2348]
    assert kept.store.findings == ()


def test_messages_that_were_not_dispatched_are_deleted_too(tmp_path: Path) -> None:
    kept = Retained(tmp_path)
    kept.put(4)
    assert kept.store.clean_unused_topics(()) == ("TopicTest",)
    kept.put(1)
    kept.settle()
    assert bounds(kept) == (0, 1)


def test_a_topic_may_be_deleted_again(kept: Retained) -> None:
    for _ in range(2):
        kept.store.clean_unused_topics({"Other"})
        kept.put(2)
        kept.settle()
    reopen(kept)
    assert bounds(kept) == (0, 2)


def test_a_light_queue_is_deleted_by_name(tmp_path: Path) -> None:
    kept = Retained(tmp_path, replace(MULTI, max_lmq_consume_queue_num=2))
    kept.put(2, NAMING)
    kept.settle()
    assert not kept.store.clean_unused_lmq_topic("Parent")
    assert not kept.store.clean_unused_lmq_topic("%LMQ%c")
    assert kept.store.clean_unused_lmq_topic("%LMQ%a")
    assert kept.store.queues() == [("%LMQ%b", 0), ("Parent", 1)]
    third = replace(NAMING, properties={"INNER_MULTI_DISPATCH": "%LMQ%c"})
    assert kept.store.put(third).status is PutStatus.PUT_OK
    kept.settle()
    reopen(kept)
    assert kept.store.queues() == [("%LMQ%b", 0), ("%LMQ%c", 0), ("Parent", 1)]
    assert bounds(kept, "%LMQ%b", 0) == (0, 2)
    assert kept.store.put(NAMING).status is PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED


# ---- durability --------------------------------------------------------------------------------------------------


def test_it_is_durable_before_its_files_go(kept: Retained) -> None:
    kept.disk.calls.clear()
    kept.store.clean_unused_topics({"Other"})
    calls = [(verb, Path(path).name) for verb, path in kept.disk.calls if verb in ("sync", "sync_directory", "unlink")]
    assert calls[1:4] == [("sync", "deletedTopics.new"), ("sync_directory", "config"), ("unlink", f"{0:020d}")]


@pytest.mark.parametrize("verb", ["create", "pwrite", "sync"])
def test_a_disk_that_refuses_leaves_everything_as_it_is(kept: Retained, verb: str) -> None:
    kept.disk.fail(verb, code=errno.ENOSPC, part="deletedTopics")
    with pytest.raises(OSError, match="No space left"):
        kept.store.clean_unused_topics({"Other"})
    kept.disk.mend()
    assert bounds(kept) == (0, 4)
    kept.put(1)
    kept.settle()
    assert bounds(kept) == (0, 5)
    assert kept.store.clean_unused_topics({"Other"}) == ("TopicTest",)


def test_a_kill_before_the_queue_files_go_leaves_no_queue(kept: Retained) -> None:
    kept.disk.fail("unlink", part="/consumequeue/")
    with pytest.raises(OSError, match="Input/output error"):
        kept.store.clean_unused_topics({"Other"})
    kept.disk.mend()
    assert names_in(kept.directory / "consumequeue" / "TopicTest" / "1") != []
    reopen(kept)
    assert kept.store.queues() == [("Other", 1)]
    assert names_in(kept.directory / "consumequeue" / "TopicTest" / "1") == []


@pytest.mark.parametrize("ext", [False, True], ids=["queues", "extensions"])
@pytest.mark.parametrize("refused", [1, 2, 3])
def test_what_a_disk_refuses_to_remove_is_deleted_all_the_same(tmp_path: Path, refused: int, ext: bool) -> None:
    """Test that a queue stays unknown when its deletion fails.

    Symptom: messages of a deleted topic reappeared, and the next message was in no queue until the next open. Cause:
    the queue was registered again when a file of it could not be removed, and its numbers started from 0. Fix: the
    queue stays unknown, and the next open removes the remaining files. Found by: reading what a failing disk may do to
    a deletion.
    """
    kept = Retained(tmp_path, replace(TWO_UNITS, enable_consume_queue_ext=ext))
    kept.put(5)
    kept.put(1, topic="Unused")
    kept.put(1, topic="Other")
    kept.settle()
    kept.disk.fail("unlink", part="/consumequeue", times=refused)
    with pytest.raises(OSError, match="Input/output error"):
        kept.store.clean_unused_topics({"Other"})
    kept.disk.mend()
    assert kept.store.queues() == [("Other", 1)]
    new = kept.put(3)
    kept.settle()
    for _ in range(2):
        assert bounds(kept) == (0, 3)
        found = kept.store.get_message("TopicTest", 1, 0).messages
        assert [message.offset for message in found] == new
        reopen(kept)
        assert kept.store.queues() == [("Other", 1), ("TopicTest", 1)]


def refuse_a_deletion(kept: Retained, *, for_good: bool) -> None:
    """Rename the list and fail the sync of its directory.

    With `for_good` the old list cannot be written again either.
    """
    kept.disk.fail("sync_directory", part="/config", times=1)
    kept.disk.fail("rename", part="deletedTopics", skip=1, times=for_good)
    with pytest.raises(OSError, match="Input/output error"):
        kept.store.clean_unused_topics({"Other"})


@pytest.mark.parametrize(("for_good", "said"), [(False, {}), (True, {b"TopicTest": 1627})], ids=["at once", "later"])
def test_a_deletion_that_is_refused_behind_its_rename_is_taken_back(
    kept: Retained, for_good: bool, said: dict[bytes, int]
) -> None:
    """At the latest the close writes it: the next open finds what the open store served."""
    refuse_a_deletion(kept, for_good=for_good)
    on_disk = DeletedTopics(OsFiles(), str(kept.directory / "config" / "deletedTopics"))
    on_disk.load()
    assert on_disk.offsets == said
    kept.put(1)
    reopen(kept, closed=True)
    assert bounds(kept) == (0, 5)


def test_numbers_that_went_on_begin_behind_a_deletion_that_a_crash_has_found(kept: Retained) -> None:
    """The deletion failed and could not be reverted, and the process was killed after that."""
    refuse_a_deletion(kept, for_good=True)
    new = kept.put(1)
    kept.settle()
    reopen(kept)
    assert bounds(kept) == (4, 5)
    assert [message.offset for message in kept.store.get_message("TopicTest", 1, 4).messages] == new


@pytest.mark.parametrize("goes", ["with the next run", "with the close"])
def test_what_a_disk_refuses_to_remove_goes_later(kept: Retained, goes: str) -> None:
    kept.disk.fail("unlink", part="/consumequeue", times=1)
    with pytest.raises(OSError, match="Input/output error"):
        kept.store.clean_unused_topics({"Other"})
    directory = kept.directory / "consumequeue" / "TopicTest" / "1"
    assert names_in(directory)
    if goes == "with the next run":
        kept.clean(at_ms=LATER_MS)
    else:
        kept.store.close()
    assert names_in(directory) == []


def test_a_log_that_was_cut_keeps_what_follows(kept: Retained, tmp_path: Path) -> None:
    """The end of the log at the deletion was lost: later messages are not deleted."""
    kept.put(1)
    end = kept.store.max_offset
    kept.store.clean_unused_topics({"Other"})
    kept.store._held.close()
    log = kept.directory / "commitlog" / f"{1024:020d}"
    data = bytearray(log.read_bytes())
    cut = end - 300
    data[cut - 1024 :] = bytes(2048 - cut)
    log.write_bytes(data)
    kept.open()
    assert (kept.store.max_offset, kept.store.read_only_reason) == (cut, None)
    kept.put(1)
    kept.settle()
    assert bounds(kept) == (0, 1)
    reopen(kept)
    assert bounds(kept) == (0, 1)


def test_it_is_forgotten_once_the_log_begins_behind_it(kept: Retained) -> None:
    kept.store.clean_unused_topics({"Other"})
    assert kept.store._held.deleted_topics.offsets == {b"TopicTest": 1627}
    kept.put(4, topic="Other")
    kept.settle()
    kept.clean(at_ms=LATER_MS)
    assert kept.store.min_offset == 2048
    assert kept.store._held.deleted_topics.offsets == {}
    reopen(kept)
    assert kept.store.queues() == [("Other", 1)]


@pytest.mark.parametrize(("offset", "left"), [(0, 3), (1, 2), (100, 2), (101, 1), (250, 0), (300, 0), (1000, 0)])
def test_records_in_front_of_the_deletion_are_left_out(tmp_path: Path, offset: int, left: int) -> None:
    """The bound may also lie inside a record.

    No store writes such a list, but a foreign one may contain it.
    """
    deleted = DeletedTopics(OsFiles(), str(tmp_path / "deletedTopics"))
    deleted.add([b"T"], offset)
    units = b"".join(struct.pack(">qiq", place, 100, 7) for place in (0, 100, 200))
    given = Dispatched(
        300, 3, (QueueRun((b"T", 0), 5, units, 300), QueueRun((b"U", 0), 0, units, 300)), NO_INDEX_PUTS, 9, None
    )
    runs = [run for run in deleted.without_deleted(given).runs if run.key == (b"T", 0)]
    assert [(run.queue_offset, len(run.units) // 20, run.end_offset) for run in runs] == (
        [(8 - left, left, 300)] if left else []
    )
    assert deleted.without_deleted(given).runs[-1] == given.runs[-1]


# ---- the file ----------------------------------------------------------------------------------------------------


def test_the_file_says_what_was_remembered(tmp_path: Path) -> None:
    deleted = DeletedTopics(OsFiles(), str(tmp_path / "deletedTopics"))
    deleted.add([b"b", "订单".encode()], 1 << 40)
    deleted.add([b"a"], 7)
    again = DeletedTopics(OsFiles(), str(tmp_path / "deletedTopics"))
    again.load()
    assert again.offsets == {b"a": 7, b"b": 1 << 40, "订单".encode(): 1 << 40}
    assert again.findings == ()


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_damaged_file_is_named(kept: Retained, damage: str) -> None:
    kept.store.clean_unused_topics({"Other"})
    kept.store.close()
    path = kept.directory / "config" / "deletedTopics"
    data = path.read_bytes()
    path.write_bytes({"flip": data[:12] + b"\xff" + data[13:], "cut": data[:-1], "empty": b""}[damage])
    kept.open()
    assert "deleted_topics_unreadable" in {finding.code for finding in kept.store.findings}
    assert kept.store.read_only_reason is None


# ---- expired queues ----------------------------------------------------------------------------------------------


def test_queues_whose_messages_have_all_expired_go_on_request(tmp_path: Path) -> None:
    kept = Retained(tmp_path)
    kept.put(1, topic="SCHEDULE_TOPIC_XXXX")
    kept.put(2)
    kept.put(2, queue_id=2)
    kept.settle()
    assert kept.store.clean_expired_consume_queues() == ()
    kept.clean(at_ms=LATER_MS)
    assert kept.store.queues() == [("SCHEDULE_TOPIC_XXXX", 1), ("TopicTest", 1), ("TopicTest", 2)]
    assert kept.store.clean_expired_consume_queues() == (("TopicTest", 1),)
    assert kept.store.queues() == [("SCHEDULE_TOPIC_XXXX", 1), ("TopicTest", 2)]
    reopen(kept)
    assert bounds(kept) == (0, 0)
    kept.put(1)
    kept.settle()
    assert bounds(kept) == (0, 1)


def test_an_expired_queue_stays_while_a_message_waits_for_dispatch(tmp_path: Path) -> None:
    kept = Retained(tmp_path)
    kept.put(3)
    kept.put(1, queue_id=2)
    kept.settle()
    kept.clean(at_ms=LATER_MS)
    kept.put(1)
    assert kept.store.clean_expired_consume_queues() == ()
    kept.settle()
    assert bounds(kept) == (3, 4)
