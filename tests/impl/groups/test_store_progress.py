"""Test offsets of consumer groups in a store on a real disk.

They are committed, read, saved, corrected and forgotten.
"""

import errno
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.faulty_files import FaultyFiles
from tests.support.impl.retained import HOUR_MS, Retained
from tests.support.impl.stores import MESSAGE, caught_up, config_of, open_store
from tornpage.impl.errors import BadProgress, ReadOnlyStore, StoreClosed
from tornpage.impl.groups.broker_configs import ConsumerFilterData, SubscriptionGroupConfig, TopicConfig
from tornpage.impl.message.message import Message
from tornpage.impl.store import MessageStore

TOPIC, QUEUE = MESSAGE.topic, MESSAGE.queue_id
OTHER = replace(MESSAGE, topic="Other")
LIGHT = replace(config_of(), enable_lmq=True, enable_multi_dispatch=True)
OFFSETS, LIGHT_OFFSETS = "consumerOffset.json", "lmqConsumerOffset.json"


def read_by(store: MessageStore, number: int, group: str = "g", message: Message = MESSAGE) -> int:
    return store.commit_offset(group, message.topic, message.queue_id, number)


def file_of(kept: Retained, name: str = OFFSETS) -> str:
    return (kept.directory / "config" / name).read_text()


def write(kept: Retained, text: str, name: str = OFFSETS) -> None:
    (kept.directory / "config" / name).write_text(text)


def codes(store: MessageStore) -> list[str]:
    return [finding.code for finding in store.findings]


def reopened(kept: Retained) -> MessageStore:
    kept.store.close()
    return kept.open()


@pytest.fixture
def kept(tmp_path: Path) -> Retained:
    """Put four messages into a queue and one into another topic, all dispatched and durable."""
    kept = Retained(tmp_path)
    kept.put(4)
    kept.put(1, OTHER)
    kept.settle()
    return kept


# ---- commit and query --------------------------------------------------------------------------------------------


def test_the_last_commit_counts_up_to_the_end_of_the_queue(kept: Retained) -> None:
    assert read_by(kept.store, 3) == 3
    assert read_by(kept.store, 1) == 1
    assert kept.store.query_offset("g", TOPIC, QUEUE) == 1
    assert read_by(kept.store, 99) == 4
    assert kept.store.query_offset("g", TOPIC, QUEUE) == 4
    assert kept.store.consumer_offsets(TOPIC) == {"g": {QUEUE: 4}}
    assert kept.store.topics_of_group("g") == [TOPIC]


def test_an_offset_takes_the_place_of_the_one_that_was_read(kept: Retained) -> None:
    assert kept.store.raise_offset(0, "g", TOPIC, QUEUE, 1) is None
    assert kept.store.consumer_offsets(TOPIC) == {}
    assert read_by(kept.store, 1) == 1
    assert kept.store.raise_offset(0, "g", TOPIC, QUEUE, 2) is None
    assert kept.store.raise_offset(1, "g", TOPIC, QUEUE, 99) == 4
    assert kept.store.consumer_offsets(TOPIC) == {"g": {QUEUE: 4}}


def test_a_group_without_a_commit_begins_at_0_of_a_young_queue(kept: Retained) -> None:
    assert kept.store.query_offset("g", TOPIC, QUEUE) == 0
    assert kept.store.query_offset("g", "unused topic", 0) == 0


def test_in_a_queue_that_has_lost_its_first_message_the_client_decides(kept: Retained) -> None:
    kept.put(6)
    kept.settle()
    kept.disk.percent = 88
    kept.clean()
    assert kept.store.min_offset_in_queue(TOPIC, QUEUE) > 0
    assert kept.store.query_offset("g", TOPIC, QUEUE) is None


@pytest.mark.parametrize(
    ("group", "topic", "queue_id", "offset"),
    [("", TOPIC, 0, 0), ("g", "", 0, 0), ("a@b", TOPIC, 0, 0), ("g", "a@b", 0, 0), ("g", TOPIC, -1, 0),
     ("g", TOPIC, 1 << 31, 0), ("g", TOPIC, 0, -1), ("g", TOPIC, 0, 1 << 63)],
)  # fmt: skip
def test_what_no_file_could_hold_is_refused(kept: Retained, group: str, topic: str, queue_id: int, offset: int) -> None:
    with pytest.raises(BadProgress, match="cannot be stored"):
        kept.store.commit_offset(group, topic, queue_id, offset)
    assert kept.store.consumer_offsets(topic) == {}


def test_the_lag_is_summed_over_the_queues_of_a_topic(kept: Retained) -> None:
    kept.put(2, queue_id=QUEUE + 1)
    kept.settle()
    read_by(kept.store, 3)
    assert kept.store.diff_total("g", TOPIC) == 1 + 2
    assert kept.store.diff_total("h", TOPIC) == 4 + 2
    assert kept.store.diff_total("g", "unused topic") == 0


def test_groups_that_are_left_out_keep_what_they_have_committed(kept: Retained) -> None:
    """RocketMQ 4.9.3 deletes it."""
    read_by(kept.store, 3)
    read_by(kept.store, 1, group="h")
    assert kept.store.query_min_offset_in_all_group(TOPIC) == {QUEUE: 1}
    assert kept.store.query_min_offset_in_all_group(TOPIC, without=["h"]) == {QUEUE: 3}
    assert kept.store.query_offset("h", TOPIC, QUEUE) == 1


def test_a_group_may_go_on_where_another_one_is(kept: Retained) -> None:
    read_by(kept.store, 3)
    kept.store.clone_offset("g", "h", TOPIC)
    kept.store.clone_offset("unknown", "i", TOPIC)
    assert kept.store.consumer_offsets(TOPIC) == {"g": {QUEUE: 3}, "h": {QUEUE: 3}}


def test_who_has_left_and_is_behind_everything_is_forgotten(kept: Retained) -> None:
    for group, number in (("gone", 0), ("reads", 0), ("is ahead", 2)):
        read_by(kept.store, number, group=group)
    assert kept.store.scan_unsubscribed_topic({(TOPIC, "reads")}) == [(TOPIC, "gone")]
    assert set(kept.store.consumer_offsets(TOPIC)) == {"reads", "is ahead"}


def test_nothing_is_committed_or_asked_behind_a_close(kept: Retained) -> None:
    kept.store.close()
    for verb in (lambda: read_by(kept.store, 1), lambda: kept.store.query_offset("g", TOPIC, QUEUE),
                 lambda: kept.store.diff_total("g", TOPIC), kept.store.topic_configs):  # fmt: skip
        with pytest.raises(StoreClosed):
            verb()


# ---- the file ----------------------------------------------------------------------------------------------------


def test_the_service_saves_as_rocketmq_writes(kept: Retained) -> None:
    read_by(kept.store, 3)
    read_by(kept.store, 1, message=OTHER)
    assert kept.runner.step("progress", after_ms=5_000) == 10_000
    assert file_of(kept) == ('{\n\t"offsetTable":{\n\t\t"Other@g":{1:1\n\t\t},\n\t\t"TopicTest@g":{1:3\n\t\t}\n\t}\n}')


def test_nothing_is_written_while_nothing_changes_or_before_its_time(kept: Retained) -> None:
    read_by(kept.store, 3)
    kept.runner.step("progress")
    kept.disk.calls.clear()
    kept.runner.step("progress", after_ms=5_000)
    read_by(kept.store, 4)
    kept.runner.step("progress", after_ms=4_999)
    assert [call for call in kept.disk.calls if call[0] == "sync"] == []
    kept.runner.step("progress", after_ms=1)
    assert "{1:4\n" in file_of(kept)


def test_a_save_that_fails_is_tried_again(kept: Retained) -> None:
    read_by(kept.store, 3)
    kept.disk.fail("sync", part="config", code=errno.EIO, times=1)
    assert kept.runner.step("progress") == 1_000
    assert not (kept.directory / "config" / OFFSETS).exists()
    kept.runner.step("progress", after_ms=1_000)
    assert "{1:3\n" in file_of(kept)


def test_offsets_are_saved_at_once_on_request(kept: Retained) -> None:
    read_by(kept.store, 3)
    kept.store.save_offsets()
    assert "{1:3\n" in file_of(kept)
    kept.disk.calls.clear()
    kept.store.save_offsets()
    assert [call for call in kept.disk.calls if call[0] == "sync"] == []


def test_save_on_request_raises_and_keeps_the_commits(kept: Retained) -> None:
    read_by(kept.store, 3)
    kept.disk.fail("sync", part="config", code=errno.EIO, times=1)
    with pytest.raises(OSError, match="Input/output"):
        kept.store.save_offsets()
    kept.store.save_offsets()
    assert "{1:3\n" in file_of(kept)


def test_a_close_saves_and_the_next_opener_knows(kept: Retained) -> None:
    read_by(kept.store, 3)
    assert reopened(kept).query_offset("g", TOPIC, QUEUE) == 3
    assert codes(kept.store) == []


def test_a_close_that_cannot_save_is_no_clean_exit(kept: Retained) -> None:
    read_by(kept.store, 3)
    kept.disk.fail("create", part=OFFSETS, code=errno.ENOSPC)
    kept.store.close()
    assert "clean exit not noted" in str(kept.store.read_only_reason)
    assert (kept.directory / "abort").exists()


def test_light_groups_have_one_number_for_each_topic(tmp_path: Path) -> None:
    kept = Retained(tmp_path, LIGHT)
    kept.put(4, queue_id=0)
    kept.settle()
    assert kept.store.commit_offset("%LMQ%g", TOPIC, 7, 2) == 2
    assert kept.store.commit_offset("g", TOPIC, 0, 3) == 3
    assert reopened(kept).query_offset("%LMQ%g", TOPIC, 5) == 2
    assert file_of(kept, LIGHT_OFFSETS) == (
        '{\n\t"lmqOffsetTable":{\n\t\t"TopicTest@%LMQ%g":2\n\t},\n\t"offsetTable":{\n\t\t"TopicTest@g":{0:3\n\t\t}\n\t}\n}'
    )
    assert not (kept.directory / "config" / OFFSETS).exists()


# ---- correction --------------------------------------------------------------------------------------------------


def test_an_offset_beyond_its_queue_is_brought_back_durably(kept: Retained) -> None:
    kept.store.close()
    write(kept, '{"offsetTable":{"TopicTest@g":{1:7},"TopicTest@h":{1:2},"Gone@g":{0:3}}}')
    store = kept.open()
    assert codes(store) == ["progress_corrected"]
    assert store.query_offset("g", TOPIC, QUEUE) == 4
    assert store.query_offset("h", TOPIC, QUEUE) == 2
    assert store.query_offset("g", "Gone", 0) == 0
    assert "{1:4\n" in file_of(kept)
    assert codes(reopened(kept)) == []


def test_a_file_that_says_nothing_refuses_no_start(kept: Retained) -> None:
    """A broker of 4.9.3 does not start when file and backup are both empty."""
    kept.store.close()
    write(kept, "{")
    write(kept, '{"offsetTable":{"TopicTest@g":{1:-7}}}', f"{OFFSETS}.bak")
    store = kept.open()
    assert codes(store) == ["config_file_unreadable"]
    assert store.put(MESSAGE).offset >= 0


def test_a_damaged_store_tells_and_writes_nothing(kept: Retained) -> None:
    read_by(kept.store, 3)
    kept.store.close()
    write(kept, '{"offsetTable":{"TopicTest@g":{1:7}}}')
    log = kept.directory / "commitlog" / f"{0:020d}"
    log.write_bytes(log.read_bytes()[:100])
    store = kept.open()
    assert store.read_only_reason is not None
    assert store.query_offset("g", TOPIC, QUEUE) == 7
    with pytest.raises(ReadOnlyStore):
        store.put_topic_config(TopicConfig("T"))
    with pytest.raises(ReadOnlyStore):
        store.save_offsets()
    store.close()
    assert "{1:7}" in file_of(kept)


# ---- numbers that begin again ------------------------------------------------------------------------------------


def test_who_has_read_a_deleted_topic_begins_it_anew(kept: Retained) -> None:
    read_by(kept.store, 4)
    read_by(kept.store, 1, message=OTHER)
    kept.runner.step("progress")
    kept.store.clean_unused_topics(["Other"])
    assert "{1:0\n" in file_of(kept)
    assert kept.store.consumer_offsets(TOPIC) == {}
    assert kept.store.query_offset("g", "Other", QUEUE) == 1
    kept.put(2)
    kept.settle()
    assert kept.store.query_offset("g", TOPIC, QUEUE) == 0
    kept.runner.step("progress", after_ms=5_000)
    assert "TopicTest" not in file_of(kept)


def test_on_disk_that_is_so_before_the_topic_is_deleted(kept: Retained) -> None:
    read_by(kept.store, 4)
    kept.runner.step("progress")
    read_by(kept.store, 0)  # the file on disk still has 4
    kept.disk.calls.clear()
    kept.store.clean_unused_topics(["Other"])
    renamed = [path.rpartition("/")[2] for verb, path in kept.disk.calls if verb == "rename"]
    assert renamed == [f"{OFFSETS}.bak", OFFSETS, "deletedTopics"]


def test_a_deletion_that_fails_changes_no_offset(kept: Retained) -> None:
    read_by(kept.store, 4)
    kept.disk.fail("create", part="deletedTopics", code=errno.ENOSPC)
    with pytest.raises(OSError, match="No space"):
        kept.store.clean_unused_topics([])
    kept.disk.mend()
    assert kept.store.query_offset("g", TOPIC, QUEUE) == 4
    assert read_by(kept.store, 3) == 3
    assert reopened(kept).query_offset("g", TOPIC, QUEUE) == 3


def test_queues_whose_messages_have_all_expired_begin_anew_too(tmp_path: Path) -> None:
    """RocketMQ 4.9.3 keeps the offsets and skips the first messages with the new numbers."""
    kept = Retained(tmp_path)
    kept.put(3, OTHER)
    kept.put(6)
    kept.settle()
    read_by(kept.store, 3, message=OTHER)
    read_by(kept.store, 2)
    kept.clock.now_ms += 73 * HOUR_MS
    kept.disk.percent = 88
    kept.clean()
    assert kept.store.clean_expired_consume_queues() == (("Other", OTHER.queue_id),)
    kept.put(1, OTHER)
    kept.settle()
    assert kept.store.query_offset("g", "Other", OTHER.queue_id) == 0
    assert kept.store.query_offset("g", TOPIC, QUEUE) == 2


# ---- topics, groups, filters -------------------------------------------------------------------------------------


def test_a_topic_is_on_disk_when_its_verb_returns(kept: Retained) -> None:
    kept.store.put_topic_config(TopicConfig("T", read_queue_nums=4, perm=2))
    assert json.loads(file_of(kept, "topics.json")) == {
        "dataVersion": {"counter": 1, "timestamp": kept.clock.now_ms},
        "topicConfigTable": {
            "T": {"order": False, "perm": 2, "readQueueNums": 4, "topicFilterType": "SINGLE_TAG", "topicName": "T",
                  "topicSysFlag": 0, "writeQueueNums": 16}
        },
    }  # fmt: skip
    assert reopened(kept).topic_configs() == {"T": TopicConfig("T", read_queue_nums=4, perm=2)}
    assert kept.store.delete_topic_config("T")
    assert not kept.store.delete_topic_config("T")
    assert reopened(kept).topic_configs() == {}


def test_a_change_that_the_disk_refuses_has_not_happened(kept: Retained) -> None:
    kept.store.put_subscription_group(SubscriptionGroupConfig("g"))
    kept.disk.fail("sync", part="subscriptionGroup", times=1)
    with pytest.raises(OSError, match="Input/output"):
        kept.store.put_subscription_group(SubscriptionGroupConfig("h", retry_max_times=3))
    assert set(kept.store.subscription_groups()) == {"g"}
    assert set(reopened(kept).subscription_groups()) == {"g"}
    assert kept.store.delete_subscription_group("g")


def test_filters_wait_for_the_service(kept: Retained) -> None:
    entry = ConsumerFilterData(
        "g", TOPIC, expression="a > 1", born_time=5, bloom_filter_data={"bitNum": 8, "bitPos": [1]}
    )
    kept.runner.step("progress")
    kept.store.put_consumer_filter(entry)
    assert not (kept.directory / "config" / "consumerFilter.json").exists()
    kept.runner.step("progress", after_ms=10_000)
    assert '"groupFilterData"' in file_of(kept, "consumerFilter.json")
    assert reopened(kept).consumer_filters() == {(TOPIC, "g"): entry}


def test_what_a_file_of_java_says_besides_stays(kept: Retained) -> None:
    kept.store.close()
    write(kept, '{"forbiddenTable":{"g":{}},"topicConfigTable":{"T":{"topicName":"T","attributes":{}}}}', "topics.json")
    store = kept.open()
    assert store.topic_configs() == {"T": TopicConfig("T")}
    store.put_topic_config(TopicConfig("U"))
    assert json.loads(file_of(kept, "topics.json"))["forbiddenTable"] == {"g": {}}


@pytest.mark.parametrize("text", ['{"topicConfigTable":[]}', '{"topicConfigTable":{"T":{}}}',
                                  '{"topicConfigTable":{"T":{"topicName":"T","perm":"rw"}}}', "[]"])  # fmt: skip
def test_a_table_of_another_shape_says_nothing(kept: Retained, text: str) -> None:
    kept.store.close()
    write(kept, text, "topics.json")
    assert codes(kept.open()) == ["config_file_unreadable"]
    assert kept.store.topic_configs() == {}


# ---- threads -----------------------------------------------------------------------------------------------------


def test_a_real_thread_saves(tmp_path: Path) -> None:
    config = replace(config_of(), flush_consumer_offset_interval=1)
    files, saved = FaultyFiles(), threading.Event()
    files.faults["rename"] = lambda path: saved.set() if path.endswith(OFFSETS) else None
    with open_store(tmp_path, config=config, files=files) as store:
        store.commit_offset("g", TOPIC, QUEUE, 0)
        assert saved.wait(30)


def test_commits_beside_saves_and_deletions_lose_nothing(tmp_path: Path) -> None:
    """Each thread has its own group, and the last commit of the group remains.

    No group has the deleted topic.
    """
    config = replace(config_of(file_bytes=4096), flush_consumer_offset_interval=1)
    with open_store(tmp_path, config=config) as store:
        for _ in range(4):
            store.put(MESSAGE)
            store.put(OTHER)
        caught_up(store)

        def commits(group: str) -> None:
            for number in range(200):
                store.commit_offset(group, OTHER.topic, OTHER.queue_id, number % 5)
                store.commit_offset(group, TOPIC, QUEUE, 4)

        threads = [threading.Thread(target=commits, args=(f"g{number}",)) for number in range(3)]
        for thread in threads:
            thread.start()
        store.clean_unused_topics(["Other"])
        for thread in threads:
            thread.join(30)
    with open_store(tmp_path, config=config) as store:
        assert store.consumer_offsets("Other") == {f"g{number}": {OTHER.queue_id: 4} for number in range(3)}
        assert {at for offsets in store.consumer_offsets(TOPIC).values() for at in offsets.values()} <= {0}
