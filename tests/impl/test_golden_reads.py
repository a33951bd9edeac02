"""Directories that RocketMQ 4.9.3 wrote, read by queue, key, time, id and place: its answers, but for its quirks."""

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from impl.message_filter import TagFilter
from impl.os_files import OsFiles
from impl.queue_pull import GetMessageResult
from impl.read_buffer import ReadBuffer
from impl.store import MessageStore
from tests.impl.golden import config_of, first_dump, golden, read
from tests.impl.support import SetClock

CASES = (
    "01-plain-ascii",
    "02-topics-unicode-limits",
    "03-rollover-blanks-retention",
    "04-hosts-and-batches",
    "05-transactions-delays-light-queues",
    "06-index-files-collisions",
    "07-queue-ext-bitmaps",
)
SETTINGS = {
    "mappedFileSizeConsumeQueue": "mapped_file_size_consume_queue",
    "enableConsumeQueueExt": "enable_consume_queue_ext",
    "mappedFileSizeConsumeQueueExt": "mapped_file_size_consume_queue_ext",
    "maxHashSlotNum": "max_hash_slot_num",
    "maxIndexNum": "max_index_num",
}
OVERFLOW = "OFFSET_OVERFLOW_BADLY"


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[MessageStore, dict[str, Any]]]:
    """Open a copy of a golden store; return its reads and what RocketMQ said of it."""
    folder = golden(request.param)
    shutil.copytree(folder / "store", tmp_path / "store", copy_function=shutil.copyfile)
    given = read(folder / "config.json")["store"]
    ours = {name: given[javas] for javas, name in SETTINGS.items() if javas in given}
    config = replace(config_of(folder), **ours)
    with MessageStore.open(tmp_path / "store", config, files=OsFiles(), clock=SetClock()) as store:
        yield store, first_dump(read(folder / "expected.json")["steps"])
        assert store._reads.buffers.held == 0


def offsets_of(result: GetMessageResult) -> list[int]:
    """Return the physical offsets of an answer, and give it back."""
    with result:
        return [buffer.offset for buffer in result.messages]


def test_queues_and_their_messages(case: tuple[MessageStore, dict[str, Any]]) -> None:
    store, state = case
    rows = state["queues"]
    assert store.queues() == sorted((row["topic"], row["queueId"]) for row in rows if row["maxOffset"])
    for row in rows:
        queue = row["topic"], row["queueId"]
        least, most = row["minOffset"], row["maxOffset"]
        assert (store.min_offset_in_queue(*queue), store.max_offset_in_queue(*queue)) == (least, most)
        assert store.message_total_in_queue(*queue) == row["messageTotal"]
        assert store.earliest_message_time(*queue) == row["earliestMessageTime"]
        got, offset = [], least
        while offset < most:
            with store.get_message(*queue, offset) as result:
                assert result.status.value == "FOUND"
                for buffer in result.messages:
                    sha = hashlib.sha256(bytes(buffer)).hexdigest()
                    got.append((buffer.queue_offset, buffer.offset, buffer.size_bytes, sha))
            offset = result.next_begin_offset
        assert got == [
            (message["cqOffset"], message["commitLogOffset"], message["storeSize"], message["recordSha256"])
            for message in row["messages"]
        ]
        ids = {message["msgId"]: message["cqOffset"] for message in row["messages"]}
        assert store.message_ids_in_queue(*queue, -5, most + 5) == ids
        for text, queue_offset in list(ids.items())[:3]:
            found = store.message_by_id(text).message
            assert found is not None
            assert found.message_id == text
            assert found.offset == store.commit_log_offset_in_queue(*queue, queue_offset)
    assert store.earliest_message_time() == next(
        (row["storeTimestamp"] for row in state["log"] if row["kind"] == "record"), -1
    )


def test_pulls_at_and_beyond_the_range(case: tuple[MessageStore, dict[str, Any]]) -> None:
    store, state = case
    known = set(store.queues())
    for probe in state["pullProbes"]:
        queue = probe["topic"], probe["queueId"]
        result = store.get_message(*queue, probe["offset"], max_msg_nums=probe["maxMsgNums"])
        count = len(offsets_of(result))
        given = result.status.value, result.next_begin_offset, result.min_offset, result.max_offset
        javas = probe["status"], probe["nextBeginOffset"], probe["minOffset"], probe["maxOffset"]
        if queue not in known:
            assert (given, javas[0]) == (("NO_MATCHED_LOGIC_QUEUE", 0, 0, 0), "NO_MESSAGE_IN_QUEUE")
        elif probe["maxMsgNums"] <= 0 and javas[0] == "FOUND":
            assert (given[:2], count) == (("NO_MATCHED_MESSAGE", probe["offset"]), 0)
        elif javas[0] == OVERFLOW:
            assert given == (OVERFLOW, result.max_offset, *javas[2:])
        elif javas[0] == "FOUND":  # RocketMQ ends at the end of a queue file
            assert (given[0], given[2:]) == (javas[0], javas[2:])
            assert (given[1], count) >= (javas[1], probe["messageCount"])
            assert given[1] == min(probe["offset"] + probe["maxMsgNums"], result.max_offset)
        else:
            assert (given, count) == (javas, probe["messageCount"])


def test_pulls_by_tag(case: tuple[MessageStore, dict[str, Any]]) -> None:
    store, state = case
    for probe in state["tagFilterPulls"]:
        result = store.get_message(
            probe["topic"],
            probe["queueId"],
            probe["offset"],
            max_msg_nums=probe["maxMsgNums"],
            message_filter=TagFilter(probe["expression"]),
        )
        got = offsets_of(result)
        assert got[: len(probe["commitLogOffsets"])] == probe["commitLogOffsets"]
        if result.next_begin_offset == probe["nextBeginOffset"]:
            assert (got, result.status.value) == (probe["commitLogOffsets"], probe["status"])
        else:  # RocketMQ ended at the end of a queue file
            assert result.next_begin_offset > probe["nextBeginOffset"]


def test_queries_by_key(case: tuple[MessageStore, dict[str, Any]]) -> None:
    """RocketMQ returns collisions too: ours are those of its messages that have the key."""
    store, state = case
    if "queries" not in state:
        pytest.skip("no query was asked")
    for query in state["queries"]:
        with store.query_message(
            query["topic"], query["key"], max_num=query["maxNum"], begin_ms=query["begin"], end_ms=query["end"]
        ) as result:
            got = []
            for buffer in result.messages:
                message = buffer.message()
                keys = {message.properties.get("UNIQ_KEY"), *message.properties.get("KEYS", "").split(" ")}
                assert (message.topic, query["key"] in keys) == (query["topic"], True)
                assert query["begin"] <= message.store_timestamp <= query["end"]
                got.append(message.offset)
        javas = [offset for offset, _ in query["messages"]]
        assert got == sorted(got)
        missing = [offset for offset in javas if offset not in got]
        for offset in missing:
            found = store.select_message_by_offset(offset)
            assert found is not None
            with found:
                message = found.message()
            keys = {message.properties.get("UNIQ_KEY"), *message.properties.get("KEYS", "").split(" ")}
            in_time = query["begin"] <= message.store_timestamp <= query["end"]
            is_one = (message.topic, query["key"] in keys, in_time) == (query["topic"], True, True)
            assert not is_one or len(got) == min(query["maxNum"], 64), (query, offset)


def test_records_by_place(case: tuple[MessageStore, dict[str, Any]]) -> None:
    store, state = case
    records = {row["phy"]: row for row in state["log"] if row["kind"] == "record"}
    for offset, answer in state["lookMessageByOffset"]:
        buffer: ReadBuffer | None = store.select_message_by_offset(offset)
        assert (buffer is not None) is (offset in records), (offset, answer)
        if buffer is not None:
            with buffer:
                assert hashlib.sha256(bytes(buffer)).hexdigest() == records[offset]["recordSha256"]
    for probe in state["singleEntry"]:
        queue = probe["topic"], probe["queueId"]
        assert store.commit_log_offset_in_queue(*queue, probe["offset"]) == probe["commitLogOffset"]
        assert store.store_timestamp_in_queue(*queue, probe["offset"]) == probe["storeTimestamp"]


def test_offsets_by_time(case: tuple[MessageStore, dict[str, Any]]) -> None:
    """RocketMQ answers by the times of files and takes the nearest message; ours is worked out from the messages."""
    store, state = case
    for row in state["offsetInQueueByTime"]:
        queue = row["topic"], row["queueId"]
        least, most = store.min_offset_in_queue(*queue), store.max_offset_in_queue(*queue)
        times = [store.store_timestamp_in_queue(*queue, number) for number in range(least, most)]
        for time, *_ in row["answers"]:
            expected = next((number for number, stored in enumerate(times, least) if stored >= time), most)
            assert store.offset_in_queue_by_time(*queue, time) == expected
