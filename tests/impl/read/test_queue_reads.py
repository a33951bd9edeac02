"""Test reads by queue: statuses, size of an answer, filters, and checked messages only."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.impl.reading import PREFILL, FakeExt, Log, limits_of
from tornpage.impl.message.key_hash import java_hash
from tornpage.impl.message.message import GetStatus, Message
from tornpage.impl.message.multi_dispatch import MultiDispatch
from tornpage.impl.queue.consume_queue_ext import ExtUnit
from tornpage.impl.queue.units import Unit
from tornpage.impl.read.filters import PropertyFilter
from tornpage.impl.read.message_filter import TagFilter
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.read.queue_reads import QueueReads

RECORD_BYTES = 101
"""Size of a message of topic T with nine bytes and no properties; ten of them fill a file of 1,024 bytes."""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """Return an empty log of files of 1,024 bytes."""
    log = Log(tmp_path)
    yield log
    log.close()


def fill(log: Log, count: int, *, tags: tuple[str, ...] = ("",)) -> list[int]:
    """Put messages of the same size into queue 0 of T."""
    return [
        log.put(Message("T", b"%09d" % number), tags_code=java_hash(tags[number % len(tags)]), store_timestamp=number)
        for number in range(count)
    ]


def get(reads: QueueReads, offset: int, max_msg_nums: int = 32, **given: object) -> GetMessageResult:
    message_filter = given.get("message_filter")
    return reads.get_message("T", 0, offset, max_msg_nums=max_msg_nums, message_filter=message_filter)  # type: ignore[arg-type]


def brief(result: GetMessageResult) -> tuple[str, int, list[int]]:
    """Return status, next offset and the queue offsets of the messages, checking each message."""
    for buffer in result.messages:
        message = buffer.message()
        assert (message.queue_offset, int(message.body)) == (buffer.queue_offset, buffer.queue_offset)
        assert (message.offset, message.size_bytes) == (buffer.offset, buffer.size_bytes)
    result.release()
    return result.status.value, result.next_begin_offset, [buffer.queue_offset for buffer in result.messages]


# ---- statuses ------------------------------------------------------------------------------------------------------


def test_unknown_queue_is_told_and_not_made(log: Log) -> None:
    result = get(log.reads(), 5)
    assert result == GetMessageResult(GetStatus.NO_MATCHED_LOGIC_QUEUE, 0)
    assert log.reads().names() == []
    assert log.reads().range_of("T", 0) == (0, 0)


@pytest.mark.parametrize("corrects", [True, False])
@pytest.mark.parametrize(
    ("offset", "status", "next_offset"),
    [
        (-1, "OFFSET_TOO_SMALL", 3),
        (2, "OFFSET_TOO_SMALL", 3),
        (8, "OFFSET_OVERFLOW_ONE", 8),
        (9, "OFFSET_OVERFLOW_BADLY", 8),
        (1 << 62, "OFFSET_OVERFLOW_BADLY", 8),
    ],
)
def test_offset_outside_of_the_queue(log: Log, offset: int, status: str, next_offset: int, corrects: bool) -> None:
    """A slave leaves offsets to its master."""
    queue = log.queue()
    queue.min_offset = 3
    fill(log, 5)
    result = get(log.reads(corrects_offsets=corrects), offset)
    assert brief(result) == (status, next_offset if corrects else offset, [])
    assert (result.min_offset, result.max_offset) == (3, 8)


def test_queue_without_messages(log: Log) -> None:
    log.queue()
    assert brief(get(log.reads(), 4)) == ("NO_MESSAGE_IN_QUEUE", 0, [])
    assert brief(get(log.reads(corrects_offsets=False), 4)) == ("NO_MESSAGE_IN_QUEUE", 4, [])


def test_queue_that_starts_at_0_does_not_send_a_consumer_ahead_of_it_back_to_0(log: Log) -> None:
    fill(log, 5)
    assert brief(get(log.reads(), 6)) == ("OFFSET_OVERFLOW_BADLY", 5, [])


@pytest.mark.parametrize("max_msg_nums", [0, -1])
def test_asking_for_nothing_brings_nothing(log: Log, max_msg_nums: int) -> None:
    fill(log, 5)
    assert brief(get(log.reads(), 2, max_msg_nums)) == ("NO_MATCHED_MESSAGE", 2, [])


def test_messages_come_in_order_over_file_ends_up_to_the_end(log: Log) -> None:
    offsets = fill(log, 25)
    assert offsets[-1] // 1024 == 2
    reads = log.reads()
    result = get(reads, 3)
    assert [buffer.offset for buffer in result.messages] == offsets[3:]
    assert (result.size_bytes, result.min_offset, result.max_offset) == (22 * RECORD_BYTES, 0, 25)
    assert brief(result) == ("FOUND", 25, list(range(3, 25)))
    assert brief(get(reads, 3, 4)) == ("FOUND", 7, [3, 4, 5, 6])
    assert brief(get(reads, 24)) == ("FOUND", 25, [24])
    assert log.buffers.held == 0


def test_many_messages_can_be_asked_for(log: Log) -> None:
    fill(log, 1000)
    assert brief(get(log.reads(), 10, 900)) == ("FOUND", 910, list(range(10, 910)))


# ---- how much ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        ({"count_in_memory": 5}, 5),
        ({"bytes_in_memory": 5 * RECORD_BYTES}, 5),
        ({"bytes_in_memory": 5 * RECORD_BYTES - 1}, 4),
        ({"bytes_in_memory": 1}, 1),
        ({"count_in_memory": 0}, 1),
        ({"count_in_disk": 3, "bytes_in_disk": 1}, 20),
        ({"count_in_disk": 3, "memory_bytes": 0}, 3),
        ({"bytes_in_disk": 2 * RECORD_BYTES, "memory_bytes": 0}, 2),
        ({"count_in_memory": 2, "memory_bytes": 0}, 20),
    ],
)
def test_batch_is_full(log: Log, limits: dict[str, int], count: int) -> None:
    """The first message always fits."""
    fill(log, 20)
    assert brief(get(log.reads(limits_of(**limits)), 0)) == ("FOUND", count, list(range(count)))


def test_old_messages_are_few_until_the_recent_ones_begin(log: Log) -> None:
    """Each unit is judged by its own distance to the end."""
    fill(log, 20)
    reads = log.reads(limits_of(count_in_disk=3, count_in_memory=5, memory_bytes=10 * RECORD_BYTES + 24))
    assert brief(get(reads, 0))[2] == [0, 1, 2]
    assert brief(get(reads, 9))[2] == [9, 10, 11, 12, 13]
    assert brief(get(reads, 8))[2] == [8, 9, 10, 11, 12]


def test_slave_is_suggested_for_what_has_left_the_memory(log: Log) -> None:
    fill(log, 9)
    reads = log.reads(limits_of(memory_bytes=5 * RECORD_BYTES))
    results = [get(reads, 0, 1), get(reads, 2, 1), get(reads, 3, 1), get(reads, 0)]
    assert [result.suggest_pulling_from_slave for result in results] == [True, True, False, False]
    assert [result.behind_bytes for result in results] == [n * RECORD_BYTES for n in (8, 6, 5, 1)]
    assert [reads.is_in_disk("T", 0, number) for number in (0, 3, 4, 9)] == [True, True, False, False]
    for result in results:
        result.release()


# ---- filters -------------------------------------------------------------------------------------------------------


def test_tags_that_are_not_wanted_are_passed(log: Log) -> None:
    fill(log, 20, tags=("A", "B", "C"))
    reads = log.reads()
    assert brief(get(reads, 0, 3, message_filter=TagFilter("A || C"))) == ("FOUND", 4, [0, 2, 3])
    assert brief(get(reads, 1, message_filter=TagFilter("X"))) == ("NO_MATCHED_MESSAGE", 20, [])
    assert brief(get(reads, 17, message_filter=TagFilter("B"))) == ("FOUND", 20, [19])


def test_filter_does_not_make_a_read_look_at_the_whole_queue(log: Log) -> None:
    """It looks at as many units as RocketMQ, which also stops at the end of a queue file."""
    fill(log, 2000, tags=("A",))
    reads = log.reads()
    assert brief(get(reads, 0, message_filter=TagFilter("X"))) == ("NO_MATCHED_MESSAGE", 800, [])
    assert brief(get(reads, 0, 1500, message_filter=TagFilter("X"))) == ("NO_MATCHED_MESSAGE", 1500, [])
    assert brief(get(reads, 1900, message_filter=TagFilter("X"))) == ("NO_MATCHED_MESSAGE", 2000, [])


def test_properties_are_looked_at_in_the_record_without_the_checksum(log: Log) -> None:
    for number in range(6):
        log.put(Message("T", b"%09d" % number, properties={"n": str(number), "__CRC32#": "x"}))

    class Wanted(PropertyFilter):
        def matches_record(self, properties: Callable[[], Mapping[str, str]]) -> bool:
            assert properties().keys() == {"n"}
            return super().matches_record(properties)

    assert brief(get(log.reads(), 0, message_filter=Wanted("n > 2 AND n <> 4"))) == ("FOUND", 6, [3, 5])
    assert brief(get(log.reads(), 0, message_filter=Wanted("n > 5"))) == ("NO_MATCHED_MESSAGE", 6, [])
    assert log.buffers.held == 0


def test_tags_code_comes_from_the_extension(log: Log) -> None:
    fill(log, 4, tags=("A", "B"))
    queue = log.queue()
    base = -(1 << 63)
    queue.ext = FakeExt({base: ExtUnit(java_hash("A"), 7, b""), base + 20: ExtUnit(java_hash("B"), 7, b"")})
    queue.stored = [unit._replace(tags_code=base + 20 * number) for number, unit in enumerate(queue.stored)]
    assert brief(get(log.reads(), 0, message_filter=TagFilter("A")))[2] == [0, 2, 3]
    queue.ext = None
    assert brief(get(log.reads(), 0, message_filter=TagFilter("A")))[2] == [0, 1, 2, 3]


# ---- checks --------------------------------------------------------------------------------------------------------


def test_nobody_is_led_past_what_is_not_readable_yet(log: Log) -> None:
    fill(log, 8)
    log.hidden_bytes = 3 * RECORD_BYTES
    reads = log.reads()
    assert brief(get(reads, 2)) == ("FOUND", 5, [2, 3, 4])
    assert brief(get(reads, 5)) == ("OFFSET_FOUND_NULL", 5, [])
    assert brief(get(reads, 3, message_filter=TagFilter("X"))) == ("OFFSET_FOUND_NULL", 5, [])
    assert brief(get(reads, 8)) == ("OFFSET_OVERFLOW_ONE", 8, [])
    log.hidden_bytes = 0
    assert brief(get(reads, 5)) == ("FOUND", 8, [5, 6, 7])


def test_expired_records_are_passed(log: Log) -> None:
    fill(log, 25)
    log.drop_first_file()
    reads = log.reads()
    assert brief(get(reads, 4)) == ("FOUND", 25, list(range(10, 25)))
    log.queue().stored = log.queue().stored[:10]
    assert brief(get(reads, 4)) == ("MESSAGE_WAS_REMOVING", 10, [])
    assert brief(get(reads, 4, message_filter=TagFilter("X"))) == ("NO_MATCHED_MESSAGE", 10, [])


@pytest.mark.parametrize("broken", ["body", "queue offset", "other queue", "other topic", "inside", "prepared", "size"])
def test_unit_whose_record_fails_a_check_is_passed(log: Log, broken: str) -> None:
    fill(log, 3)
    unit = log.queue().stored[1]
    view = log.files.mapped[0].view
    match broken:
        case "body":
            view[unit.offset + 90] ^= 1
        case "queue offset":
            view[unit.offset + 27] ^= 4
        case "other queue":
            view[unit.offset + 15] ^= 1
        case "other topic":
            view[unit.offset + RECORD_BYTES - 3] ^= 1
        case "prepared":
            view[unit.offset + 39] = 4
        case "inside":
            log.queue().stored[1] = unit._replace(offset=unit.offset + 4)
        case "size":
            view[unit.offset + 3] += 1
    reads = log.reads()
    assert brief(get(reads, 0)) == ("FOUND", 3, [0, 2])
    assert reads.store_timestamp("T", 0, 1) is None
    log.queue().stored.pop()
    assert brief(get(reads, 1)) == ("MESSAGE_WAS_REMOVING", 2, [])


@pytest.mark.parametrize("unit", [Unit(0, 0, 0), Unit(-5, 100, 0), Unit(0, 101, 0), Unit(1020, 101, 0)])
def test_units_that_mean_nothing_serve_nothing(log: Log, unit: Unit) -> None:
    fill(log, 12)
    log.queue().stored[5] = unit
    assert brief(get(log.reads(), 4, 3)) == ("FOUND", 8, [4, 6, 7])


def test_prefill_is_never_seen(log: Log) -> None:
    fill(log, 2)
    log.queue().stored += [PREFILL, PREFILL]
    log.put(Message("T", b"%09d" % 4))
    reads = log.reads()
    assert brief(get(reads, 0)) == ("FOUND", 5, [0, 1, 4])
    assert brief(get(reads, 2)) == ("FOUND", 5, [4])
    assert (reads.unit("T", 0, 2), reads.store_timestamp("T", 0, 3)) == (None, None)


def test_record_in_a_queue_that_it_names(log: Log) -> None:
    properties = {"INNER_MULTI_DISPATCH": "%LMQ%a,other", "INNER_MULTI_QUEUE_OFFSET": "0,7"}
    offset = log.put(Message("T", b"%09d" % 0, queue_id=3, properties=properties))
    unit = log.queue("T", 3).stored[0]
    for topic, queue_id, min_offset in (("%LMQ%a", 0, 0), ("other", 3, 7), ("other", 3, 8), ("third", 3, 0)):
        named = log.queue(topic, queue_id)
        named.min_offset, named.stored = min_offset, [unit]
        reads = log.reads(dispatch=MultiDispatch(light_queues=True))
        result = reads.get_message(topic, queue_id, min_offset, max_msg_nums=1, message_filter=None)
        assert [buffer.offset for buffer in result.messages] == (
            [offset] if min_offset != 8 and topic != "third" else []
        )
        assert [buffer.queue_offset for buffer in result.messages] == [min_offset] * len(result.messages)
        result.release()
        off = log.reads().get_message(topic, queue_id, min_offset, max_msg_nums=1, message_filter=None)
        assert off.status is GetStatus.MESSAGE_WAS_REMOVING


# ---- answers of a queue ------------------------------------------------------------------------------------------


def test_queue_says_what_it_has(log: Log) -> None:
    offsets = fill(log, 4)
    log.put(Message("Other", b"x", queue_id=2))
    reads = log.reads()
    assert reads.names() == [("Other", 2), ("T", 0)]
    assert reads.range_of("T", 0) == (0, 4)
    assert [getattr(reads.unit("T", 0, number), "offset", None) for number in (-1, 0, 3, 4)] == [
        None,
        0,
        offsets[3],
        None,
    ]
    assert [reads.store_timestamp("T", 0, number) for number in (-1, 0, 3, 4)] == [None, 0, 3, None]
    assert reads.store_timestamp("unknown", 0, 0) is None
    assert reads.unit("unknown", 0, 0) is None
    assert [(buffer.queue_offset, buffer.message().store_timestamp) for buffer in reads.records("T", 0, -5, 3)] == [
        (0, 0), (1, 1), (2, 2),
    ]  # fmt: skip
    assert list(reads.records("unknown", 0, 0, 5)) == []
    assert log.buffers.held == 0


def test_buffers_of_a_read_that_was_broken_off_are_given_back(log: Log) -> None:
    fill(log, 5)

    class Broken(TagFilter):
        def matches_record(self, properties: Callable[[], Mapping[str, str]]) -> bool:
            if log.buffers.held:
                raise KeyboardInterrupt
            return True

    with pytest.raises(KeyboardInterrupt):
        get(log.reads(), 0, message_filter=Broken("*"))
    assert log.buffers.held == 0
