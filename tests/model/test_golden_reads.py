"""Compare the model with RocketMQ 4.9.3's answers: queues, tags codes, index and pulls.

Where they differ, RocketMQ has a defect that this store mends, and the test names it. Only the log is taken from the
answers; queues, index and pulls are computed from that.
"""

import json
from functools import lru_cache
from typing import Any, NamedTuple

import pytest

from tests.model.support import layout_of, message_of
from tests.support.properties.handmade import golden_dirs
from tornpage.model import index, queues, reading
from tornpage.model.commitlog import CommitLog, GetStatus, Layout, Record

WHOLE = (
    "01-plain-ascii",
    "02-topics-unicode-limits",
    "03-rollover-blanks-retention",
    "04-hosts-and-batches",
    "05-transactions-delays-light-queues",
    "06-index-files-collisions",
    "07-queue-ext-bitmaps",
)
UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
FOREVER_MS = 4_102_444_800_000
PROBED = (
    *("topic", "queueId", "offset", "maxMsgNums"),
    *("status", "nextBeginOffset", "minOffset", "maxOffset", "messageCount"),
)


class Golden(NamedTuple):
    """A log, the settings of its open, and RocketMQ's answers about it."""

    log: CommitLog
    layout: Layout
    answers: dict[str, Any]


@pytest.fixture(params=WHOLE)
def case(request: pytest.FixtureRequest) -> Golden:
    return golden_of(request.param)


@lru_cache
def golden_of(name: str) -> Golden:
    folders = [folder for folder in golden_dirs() if folder.name == name]
    if not folders:
        pytest.skip(f"golden store {name} is not at hand: set TORNPAGE_GOLDEN to the directory of golden stores")
    config, truth, expected = (
        json.loads((folders[0] / file).read_text(encoding="utf-8"))
        for file in ("config.json", "truth.json", "expected.json")
    )
    settings = config["store"]
    answers = next(step["state"] for step in expected["steps"] if step["do"] == "dump")
    properties = {row["commitLogOffset"]: truth["puts"][row["put"]]["properties"] for row in truth["records"]}
    for queue in answers["queues"]:  # as stored: delay levels, batches and light queues change the put message
        properties |= {message["commitLogOffset"]: message["properties"] for message in queue["messages"]}
    records = tuple(record_of(row, properties[row["phy"]]) for row in answers["log"] if row["kind"] == "record")
    end = answers["maxPhyOffset"]
    log = CommitLog(records=records, end_offset=end, flushed_offset=end, dispatched_offset=end)
    return Golden(log, layout_for(settings), answers)


def record_of(row: dict[str, Any], properties: Any) -> Record:
    message = message_of(row["topic"], queue_id=row["queueId"], sys_flag=row["sysFlag"], properties=properties or "")
    return Record(row["phy"], row["size"], row["queueOffset"], row["storeTimestamp"], message)


def layout_for(settings: dict[str, Any]) -> Layout:
    changes: dict[str, Any] = {}
    if "messageDelayLevel" in settings:
        levels = settings["messageDelayLevel"].split()
        delays_ms = tuple(1000 * int(level[:-1]) * UNIT_SECONDS[level[-1]] for level in levels)
        changes = {"delays_ms": delays_ms, "delay_levels": len(levels)}
    return layout_of(
        file_bytes=settings["mappedFileSizeCommitLog"],
        multi_dispatch=settings.get("enableMultiDispatch", False),
        light_queues=settings.get("enableLmq", False),
        **changes,
    )


def test_units_and_tags_codes_are_those_of_rocketmq(case: Golden) -> None:
    """Retention had removed two log files of one store.

    Units of removed records are below its minima.
    """
    found = {
        queue: [(unit.queue_offset, unit.record.offset, unit.record.size_bytes, unit.tags_code) for unit in units]
        for queue, units in queues.queues_of(case.log, case.layout).items()
    }
    assert found == {
        (queue["topic"], queue["queueId"]): [
            (*entry[:3], entry[4]["tagsCode"] if len(entry) > 4 and entry[4] else entry[3])
            for entry in queue["entries"]
        ]
        for queue in case.answers["queues"]
    }


def test_what_queues_say_of_themselves(case: Golden) -> None:
    for queue in case.answers["queues"]:
        place = (queue["topic"], queue["queueId"])
        found = (
            reading.min_offset(case.log, case.layout, *place),
            reading.max_offset(case.log, case.layout, *place),
            reading.earliest_message_time(case.log, case.layout, place),
        )
        earliest = None if queue["earliestMessageTime"] == -1 else queue["earliestMessageTime"]
        assert found == (queue["minOffset"], queue["maxOffset"], earliest)
    for one in case.answers["singleEntry"]:
        place = (one["topic"], one["queueId"])
        unit = reading.unit_at(case.log, case.layout, *place, one["offset"])
        time = reading.store_timestamp_in_queue(case.log, case.layout, *place, one["offset"])
        expected = None if one["storeTimestamp"] == -1 else one["storeTimestamp"]
        assert (unit.record.offset if unit else 0, time) == (one["commitLogOffset"], expected)


def test_queries_by_key_find_what_rocketmq_found(case: Golden) -> None:
    """RocketMQ returns records of an equal hash and rounds times down to seconds.

    The first entry of a later file gets a time that is too late.
    """
    first_entries = {file["beginPhyOffset"] for file in case.answers["indexFiles"]}
    records = {record.offset: record for record in case.log.records}
    for asked in case.answers["queries"]:
        topic, key, begin_ms, end_ms = asked["topic"], asked["key"], asked["begin"], asked["end"]
        found = index.query(case.log, case.layout, topic, key, asked["maxNum"], begin_ms, end_ms)
        theirs = [
            offset
            for offset, _ in asked["messages"]
            if records[offset].message.topic == topic and key in index.keys_of(records[offset])
        ]
        for offset in set(theirs) ^ {record.offset for record in found}:
            time_ms = records[offset].store_timestamp
            rounded = 0 <= time_ms - begin_ms < 1000 or 0 < time_ms - end_ms < 1000
            assert rounded or offset in first_entries
        if (begin_ms, end_ms) == (0, FOREVER_MS):
            assert [record.offset for record in found] == theirs
    checked = case.answers["indexCheck"]
    assert sum(len(index.keys_of(record)) for record in case.log.records) == checked["keysOfLogRecords"]


def test_last_update_of_the_index(case: Golden) -> None:
    """A query without a result returns 0 and 0 in RocketMQ."""
    theirs = {
        (asked["indexLastUpdateTimestamp"], asked["indexLastUpdatePhyOffset"])
        for asked in case.answers["queries"]
        if asked["messages"]
    }
    assert theirs == {index.last_update(case.log, case.layout) or (0, 0)}


def test_pulls_are_answered_as_by_rocketmq(case: Golden) -> None:
    """Mended here: an offset far ahead goes back to the maximum, not to 0.

    Nothing is read where nothing is requested. A queue that never existed is unknown. A pull does not end with the file
    of the queue.
    """
    walked = [
        (queue["topic"], queue["queueId"], offset, 32, status, following, queue["minOffset"], queue["maxOffset"], count)
        for queue in case.answers["queues"]
        for offset, status, following, count in queue["pulls"]
    ]
    probed = [tuple(probe[name] for name in PROBED) for probe in case.answers["pullProbes"]]
    for topic, queue_id, offset, wanted, name, following, least, most, count in walked + probed:
        found = reading.get_message(case.log, case.layout, topic, queue_id, offset, wanted)
        status = GetStatus[name]
        if status is GetStatus.NO_MESSAGE_IN_QUEUE:
            status = GetStatus.NO_MATCHED_LOGIC_QUEUE
        elif status is GetStatus.OFFSET_OVERFLOW_BADLY:
            following = most
        elif status is GetStatus.FOUND and wanted == 0:
            status, following, count = GetStatus.NO_MATCHED_MESSAGE, offset, 0
        elif status is GetStatus.FOUND and following < most and count < wanted:
            following, count = found.next_begin_offset, min(wanted, most - offset)
        assert found[:4] == (status, following, least, most)
        assert len(found.records) == count


def test_pulls_with_a_filter_bring_what_rocketmq_brought(case: Golden) -> None:
    """A pull does not end with the file of the queue, so it may return more."""
    for pull in case.answers["tagFilterPulls"]:
        tags = None if pull["expression"] == "*" else [tag.strip() for tag in pull["expression"].split("||")]
        place = (pull["topic"], pull["queueId"], pull["offset"], pull["maxMsgNums"])
        found = reading.get_message(case.log, case.layout, *place, tags)
        offsets = [record.offset for record in found.records]
        theirs = pull["commitLogOffsets"]
        assert offsets[: len(theirs)] == theirs
        if found.next_begin_offset == pull["nextBeginOffset"]:
            assert (found.status.name, offsets) == (pull["status"], theirs)
        else:
            assert pull["nextBeginOffset"] < found.next_begin_offset


def test_a_time_that_one_message_has_is_found_as_in_rocketmq(case: Golden) -> None:
    """RocketMQ searches only the first file and takes the nearest time, any of equal ones."""
    for queue in case.answers["offsetInQueueByTime"]:
        place = (queue["topic"], queue["queueId"])
        units = queues.queue_of(case.log, case.layout, place)
        times = [unit.record.store_timestamp for unit in units]
        last_of_file = max(theirs for _, _, theirs in queue["answers"])
        for time, _, theirs in queue["answers"]:
            (found,) = reading.offset_by_time(case.log, case.layout, *place, time)
            assert found == units[0].queue_offset + sum(each < time for each in times)
            if times.count(time) == 1 and found <= last_of_file:
                assert found == theirs
