"""Test the units and index entries of each kind of record."""

import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.support.impl.records import record_of
from tornpage.impl.dispatch.dispatch_records import dispatch_records, tags_code_of
from tornpage.impl.message.codec import BLANK_BYTES, encode_blank
from tornpage.impl.message.delay_levels import SCHEDULE_TOPIC, DelayLevels
from tornpage.impl.message.dispatching import Dispatched, DispatchRules, ExtDraft, IndexPuts, QueueRun
from tornpage.impl.message.key_hash import java_hash, key_hash
from tornpage.impl.message.message import Message
from tornpage.impl.message.multi_dispatch import MultiDispatch

LEVELS = DelayLevels((1_000, 5_000))
RULES = DispatchRules(
    index=True, delay_levels=LEVELS, multi_dispatch=MultiDispatch(light_queues=True), ext=False, bit_map_of=None
)
PLAIN = Message("T", b"body", queue_id=3)
FILE_BYTES = 4096
BASE = 8192
"""Physical offset of the file."""
AT_MS = 1_700_000_000_001


def file_of(*messages: Message, **placed: Any) -> tuple[memoryview, list[int]]:
    """Return a log file with records of these messages, and the begin of each record.

    Queue offsets count from 10.
    """
    data, starts = bytearray(), []
    for number, message in enumerate(messages):
        starts.append(len(data))
        data += record_of(message, trailer=True, queue_offset=10 + number, physical_offset=BASE + len(data), **placed)
    starts.append(len(data))
    return memoryview(data.ljust(FILE_BYTES, b"\0")), starts


def dispatched(*messages: Message, rules: DispatchRules = RULES) -> Dispatched:
    """Dispatch the records of these messages; each one must succeed."""
    view, starts = file_of(*messages)
    found = dispatch_records(view, 0, starts[-1], rules)
    assert (found.end_position, found.records, found.reason) == (starts[-1], len(messages), None)
    return found


def units_of(run: QueueRun) -> list[tuple[int, int, int]]:
    return list(struct.iter_unpack(">qiq", run.units))


# ---- queues ------------------------------------------------------------------------------------------------------


def test_each_record_is_a_unit_of_its_queue() -> None:
    tagged = replace(PLAIN, properties={"TAGS": "TagA"}, queue_id=4)
    view, starts = file_of(PLAIN, tagged)
    found = dispatch_records(view, 0, starts[-1], RULES)
    assert [(run.key, run.queue_offset, run.ext, run.named) for run in found.runs] == [
        ((b"T", 3), 10, (), False),
        ((b"T", 4), 11, (), False),
    ]
    assert units_of(found.runs[0]) == [(BASE, starts[1], 0)]
    assert units_of(found.runs[1]) == [(BASE + starts[1], starts[2] - starts[1], java_hash("TagA"))]
    assert [run.end_offset for run in found.runs] == [BASE + starts[1], BASE + starts[2]]
    assert found.store_timestamp == AT_MS


@pytest.mark.parametrize(("sys_flag", "queues", "entries"), [(0, 1, 1), (8, 1, 1), (4, 0, 1), (12, 0, 0)])
def test_transactions(sys_flag: int, queues: int, entries: int) -> None:
    """Prepared messages are in the index only, and rolled-back ones nowhere."""
    found = dispatched(replace(PLAIN, sys_flag=sys_flag, properties={"KEYS": "k"}))
    assert (len(found.runs), len(found.index.hashes)) == (queues, entries)
    assert found.store_timestamp == AT_MS


def test_tags_code_is_the_hash_of_the_tag() -> None:
    assert tags_code_of(b"T", {}, 7, LEVELS) == 0
    assert tags_code_of(b"T", {"TAGS": "TagA"}, 7, LEVELS) == java_hash("TagA") == 2598919
    assert tags_code_of(b"T", {"TAGS": "\u00fcber", "DELAY": "1"}, 7, LEVELS) == java_hash("\u00fcber")


@pytest.mark.parametrize(
    ("delay", "expected"), [("1", 1_007), ("2", 5_007), ("9", 5_007), ("0", 2598919), ("-3", 2598919), ("x", 2598919)]
)
def test_tags_code_of_a_delayed_message_is_when_it_is_due(delay: str, expected: int) -> None:
    pairs = {"TAGS": "TagA", "DELAY": delay}
    assert tags_code_of(SCHEDULE_TOPIC.encode(), pairs, 7, LEVELS) == expected


def test_time_beyond_64_bits_is_cut_to_them() -> None:
    code = tags_code_of(SCHEDULE_TOPIC.encode(), {"DELAY": "1"}, (1 << 63) - 1, LEVELS)
    assert code == -(1 << 63) + 999


# ---- named queues ------------------------------------------------------------------------------------------------


def named(names: str, offsets: str, **changes: Any) -> Message:
    return replace(
        PLAIN, properties={"INNER_MULTI_DISPATCH": names, "INNER_MULTI_QUEUE_OFFSET": offsets, "TAGS": "a"}, **changes
    )


def test_named_queues_get_the_same_unit_at_their_own_offsets() -> None:
    found = dispatched(named("other,%LMQ%one", "5,6"))
    assert [(run.key, run.queue_offset, run.named) for run in found.runs] == [
        ((b"T", 3), 10, False),
        ((b"other", 3), 5, True),
        ((b"%LMQ%one", 0), 6, True),
    ]
    assert len({run.units for run in found.runs}) == 1


@pytest.mark.parametrize(
    ("names", "offsets"), [("a,b", "1"), ("a", "x"), ("a", ""), (" ", "1"), ("a", "99999999999999999999")]
)
def test_lists_that_do_not_fit_together_name_no_queue(names: str, offsets: str) -> None:
    assert len(dispatched(named(names, offsets)).runs) == 1


def test_queue_named_twice_or_the_own_one_gets_one_unit() -> None:
    found = dispatched(named("a,a,T", "1,1,10"))
    assert [(run.key, run.queue_offset) for run in found.runs] == [((b"T", 3), 10), ((b"a", 3), 1)]


def test_no_named_queues_where_nobody_asked_or_nothing_counts() -> None:
    message = named("a", "1")
    assert len(dispatched(message, rules=replace(RULES, multi_dispatch=None)).runs) == 1
    assert len(dispatched(replace(message, topic="%RETRY%g")).runs) == 1
    assert not dispatched(replace(message, sys_flag=4)).runs


# ---- extension ---------------------------------------------------------------------------------------------------


def test_extension_gets_tags_code_time_and_bit_map() -> None:
    asked: list[tuple[bytes, Mapping[str, str]]] = []

    def bit_map_of(topic: bytes, properties: Mapping[str, str]) -> bytes:
        asked.append((topic, dict(properties)))
        return b"\x05"

    found = dispatched(named("a", "1"), rules=replace(RULES, ext=True, bit_map_of=bit_map_of))
    own, other = found.runs
    assert list(own.ext) == [ExtDraft(java_hash("a"), AT_MS, b"\x05")]
    assert list(other.ext) == []
    assert [topic for topic, _ in asked] == [b"T"]
    assert asked[0][1]["TAGS"] == "a"


def test_provider_of_bit_maps_that_fails_costs_the_bit_map_only(caplog: pytest.LogCaptureFixture) -> None:
    def bit_map_of(topic: bytes, properties: Mapping[str, str]) -> bytes:
        raise ValueError("no filters")

    found = dispatched(PLAIN, rules=replace(RULES, ext=True, bit_map_of=bit_map_of))
    assert found.runs[0].ext[0].bit_map == b""
    assert "bit_map_failed" in caplog.text


# ---- index -------------------------------------------------------------------------------------------------------


def test_unique_key_comes_first_then_the_keys_split_at_spaces() -> None:
    found = dispatched(PLAIN, replace(PLAIN, properties={"KEYS": " a  b ", "UNIQ_KEY": "u"}))
    offset = units_of(found.runs[1])[0][0]
    hashes = [key_hash("T", key) for key in ("u", "a", "b")]
    assert found.index == IndexPuts(hashes, [offset] * 3, [AT_MS] * 3)


def test_no_entries_without_an_index() -> None:
    found = dispatched(replace(PLAIN, properties={"KEYS": "a"}), rules=replace(RULES, index=False))
    assert not found.index.hashes


# ---- where it ends -----------------------------------------------------------------------------------------------


def test_batch_ends_with_the_record_that_makes_it_big_enough() -> None:
    view, starts = file_of(PLAIN, PLAIN, PLAIN)
    small = replace(RULES, batch_bytes_max=starts[1] + 1)
    assert dispatch_records(view, 0, starts[-1], small).end_position == starts[2]
    tiny = replace(RULES, batch_bytes_max=1)
    assert dispatch_records(view, starts[1], starts[-1], tiny).end_position == starts[2]


def test_blank_ends_it_and_is_told() -> None:
    view, starts = file_of(PLAIN)
    view[starts[1] : starts[1] + BLANK_BYTES] = encode_blank(FILE_BYTES - starts[1])
    assert dispatch_records(view, 0, FILE_BYTES, RULES)[:2] == (starts[1], 1)
    found = dispatch_records(view, starts[1], FILE_BYTES, RULES)
    assert (found.end_position, found.records, found.reason) == (starts[1], 0, "blank")


def poke(view: memoryview, position: int, number: int, size: int = 4) -> None:
    view[position : position + size] = number.to_bytes(size, "big", signed=True)


@pytest.mark.parametrize(
    ("position", "number", "size", "reason"),
    [
        (4, 0, 4, "bad_magic"),
        (0, 91, 4, "bad_length"),
        (0, -1, 4, "bad_length"),
        (0, FILE_BYTES, 4, "bad_length"),
        (28, BASE, 8, "bad_position"),
        (28, 1, 8, "bad_position"),
        (36, 0x30, 4, "bad_length"),
        (84, -1, 4, "bad_length"),
        (84, 1 << 30, 4, "bad_length"),
        (88 + 4, 100, 1, "bad_length"),
        (88 + 4 + 2, 1, 2, "bad_length"),
    ],
)
def test_what_is_no_record_stops_it_behind_the_good_ones(position: int, number: int, size: int, reason: str) -> None:
    view, starts = file_of(PLAIN, PLAIN)
    poke(view, starts[1] + position, number, size)
    found = dispatch_records(view, 0, starts[-1], RULES)
    assert (found.end_position, found.records, len(found.runs), found.reason) == (starts[1], 1, 1, reason)


def test_record_that_ends_behind_the_end_is_not_taken() -> None:
    view, starts = file_of(PLAIN, PLAIN)
    assert dispatch_records(view, 0, starts[2] - 1, RULES)[:2] == (starts[1], 1)
    found = dispatch_records(view, 0, starts[1] + 4, RULES)
    assert (found.end_position, found.reason) == (starts[1], "past_end")
