"""Test the units that a record must have: each rule of dispatch, one by one."""

from __future__ import annotations

import pytest

from tests.support.properties.handmade import properties_of, record
from tornpage.pipeline.rows.dispatch import SCHEDULE_TOPIC, Dispatch, dispatch_of
from tornpage.properties.decode.consumequeue import java_hash
from tornpage.properties.decode.record import Record, decode_record


def decoded(**fields: object) -> Record:
    raw = record(0, **fields)  # type: ignore[arg-type]
    found = decode_record(raw + bytes(8), offset=0)
    assert isinstance(found, Record)
    return found


def dispatch(light_queues: bool = True, **fields: object) -> Dispatch:
    return dispatch_of(decoded(**fields), light_queues=light_queues)


def places(found: Dispatch) -> list[tuple[str, int, int, bool]]:
    return [(place.topic, place.queue_id, place.queue_offset, place.is_light) for place in found.places]


def test_ordinary_record_has_a_unit_in_its_own_queue() -> None:
    found = dispatch(queue_id=3, queue_offset=7, properties=properties_of(("TAGS", "TagA")))
    assert places(found) == [("TopicTest", 3, 7, False)]
    assert (found.tags_code, found.is_delayed) == (2598919, False)


@pytest.mark.parametrize(("sys_flag", "units"), [(0x00, 1), (0x04, 0), (0x08, 1), (0x0C, 0)])
def test_prepared_and_rolled_back_records_have_no_unit(sys_flag: int, units: int) -> None:
    assert len(dispatch(sys_flag=sys_flag).places) == units


def test_light_queue_is_queue_0_where_light_queues_are_on() -> None:
    names = properties_of(("INNER_MULTI_DISPATCH", "%LMQ%a,Side"), ("INNER_MULTI_QUEUE_OFFSET", "4,5"))
    own = ("TopicTest", 2, 0, False)
    found = dispatch(queue_id=2, properties=names)
    assert places(found) == [own, ("%LMQ%a", 0, 4, True), ("Side", 2, 5, False)]
    found = dispatch(light_queues=False, queue_id=2, properties=names)
    assert places(found) == [own, ("%LMQ%a", 2, 4, False), ("Side", 2, 5, False)]


@pytest.mark.parametrize("offsets", ["1", "1,x", "1,-2", "1,2,3", "1," + "9" * 19, "1," + "1" * 5000])
def test_further_queues_with_other_offsets_than_names_are_left_out(offsets: str) -> None:
    names = properties_of(("INNER_MULTI_DISPATCH", "a,b"), ("INNER_MULTI_QUEUE_OFFSET", offsets))
    assert len(dispatch(properties=names).places) == 1


def test_of_two_units_in_one_queue_the_first_counts() -> None:
    names = properties_of(("INNER_MULTI_DISPATCH", "a,a,TopicTest"), ("INNER_MULTI_QUEUE_OFFSET", "1,2,3"))
    assert places(dispatch(properties=names)) == [("TopicTest", 0, 0, False), ("a", 0, 1, False)]


@pytest.mark.parametrize("name", [".", "..", "a/b", "../../outside", "/outside", "x" * 256, "ä" * 128], ids=len)
def test_a_name_that_no_directory_can_have_has_no_queue(name: str) -> None:
    names = properties_of(("INNER_MULTI_DISPATCH", f"{name},b"), ("INNER_MULTI_QUEUE_OFFSET", "1,2"))
    assert places(dispatch(properties=names)) == [("TopicTest", 0, 0, False), ("b", 0, 2, False)]
    if len(name.encode()) < 128:
        assert places(dispatch(topic=name.encode())) == []


@pytest.mark.parametrize(("topic", "is_delayed"), [(SCHEDULE_TOPIC.encode(), True), (b"Other", False)])
def test_only_the_schedule_topic_is_delayed(topic: bytes, is_delayed: bool) -> None:
    assert dispatch(topic=topic, properties=properties_of(("DELAY", "3"))).is_delayed is is_delayed


@pytest.mark.parametrize(
    ("level", "is_delayed"), [("9" * 5000, False), ("3", True), ("0" * 5000, False), ("", False), ("²", False)]
)
def test_a_level_may_have_thousands_of_digits(level: str, is_delayed: bool) -> None:
    found = dispatch(topic=SCHEDULE_TOPIC.encode(), properties=properties_of(("DELAY", level)))
    assert found.is_delayed is is_delayed


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("TagA", 2598919),
        ("TAG-NEG", -831219555),
        ("polygenelubricants", -(2**31)),
        ("🚀", 0xD83D * 31 + 0xDE80),
    ],
)
def test_java_hash_is_that_of_java(text: str, code: int) -> None:
    assert java_hash(text) == code
