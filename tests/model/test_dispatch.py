"""Test multi-dispatch and light queues: names, offsets, written properties, refusals."""

from typing import Any

import pytest

from tests.model.support import batch_of, layout_of, message_of, put_all
from tornpage.model.commitlog import CommitLog, put
from tornpage.model.dispatch import light_queues, named_queues, names_in, next_queue_offset
from tornpage.model.message import Message, PutStatus

LAYOUT = layout_of(file_bytes=1 << 16, multi_dispatch=True, light_queues=True)
PLAIN = layout_of(file_bytes=1 << 16, multi_dispatch=True)
OFF = layout_of(file_bytes=1 << 16, light_queues=True)


def naming(names: str, topic: str = "T", **fields: Any) -> Message:
    """Return a message that names queues."""
    return message_of(topic, properties=f"INNER_MULTI_DISPATCH\x01{names}", **fields)


def offsets(log: CommitLog) -> list[tuple[int, str]]:
    """Return the queue offset of each record, and the offsets written for its named queues."""
    written = [str(record.message.properties).partition("OFFSET\x01")[2] for record in log.records]
    return [(record.queue_offset, text) for record, text in zip(log.records, written, strict=True)]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("a", ["a"]),
        ("a,b,a", ["a", "b", "a"]),
        ("a,", ["a", ""]),
        (",", ["", ""]),
        (" a , b", [" a ", " b"]),
        (" ", []),
        ("\t\n", []),
        ("", []),
    ],
)
def test_names(names: str, found: list[str]) -> None:
    assert names_in({"INNER_MULTI_DISPATCH": names}) == found


@pytest.mark.parametrize(
    ("layout", "topic", "queues"),
    [
        (LAYOUT, "T", (("a", 3), ("%LMQ%b", 0), ("a%LMQ%", 3))),
        (PLAIN, "T", (("a", 3), ("%LMQ%b", 3), ("a%LMQ%", 3))),
        (OFF, "T", ()),
        (LAYOUT, "SCHEDULE_TOPIC_XXXX", ()),
        (LAYOUT, "%RETRY%g", ()),
        (LAYOUT, "%RETRY%", ()),
        (LAYOUT, "x%RETRY%g", (("a", 3), ("%LMQ%b", 0), ("a%LMQ%", 3))),
        (LAYOUT, "RMQ_SYS_TRANS_HALF_TOPIC", (("a", 3), ("%LMQ%b", 0), ("a%LMQ%", 3))),
    ],
)
def test_named_queues(layout: Any, topic: str, queues: tuple[tuple[str, int], ...]) -> None:
    assert named_queues(naming("a,%LMQ%b,a%LMQ%", topic, queue_id=3), layout=layout) == queues


def test_offsets_of_named_queues_go_on() -> None:
    log, _ = put_all(naming("%LMQ%a,%LMQ%b"), naming("%LMQ%b"), naming("%LMQ%a,%LMQ%b,%LMQ%c"), layout=LAYOUT)
    assert offsets(log) == [(0, "0,0"), (1, "1"), (2, "1,2,0")]


def test_one_table_for_all_queues() -> None:
    """A queue continues after every number given in it: by its own records or by name."""
    given = [
        message_of("A"),
        naming("A", "B"),  # A-0 by name: 1
        message_of("A"),
        naming("A", "B", queue_id=1),  # another queue of A
        message_of("%LMQ%x"),  # an ordinary record of queue 0 of that name
        naming("%LMQ%x", "B", queue_id=1),
        message_of("%LMQ%x", queue_id=1),
        message_of("%LMQ%x"),
    ]
    log, _ = put_all(*given, layout=LAYOUT)
    assert offsets(log) == [(0, ""), (0, "1"), (2, ""), (0, "0"), (0, ""), (1, "1"), (0, ""), (2, "")]
    assert next_queue_offset(log, ("%LMQ%x", 0), layout=LAYOUT) == 3
    assert next_queue_offset(log, ("%LMQ%y", 0), layout=LAYOUT) == 0


def test_equal_queues_get_equal_offsets() -> None:
    log, _ = put_all(naming("T,T,a,a"), naming("a,T"), message_of(), layout=LAYOUT)
    assert offsets(log) == [(0, "0,0,0,0"), (1, "1,1"), (2, "")]


@pytest.mark.parametrize("sys_flag", [4, 12])
def test_transactions_get_offsets_and_advance_nothing(sys_flag: int) -> None:
    log, _ = put_all(
        naming("%LMQ%a"), naming("%LMQ%a,%LMQ%b,T", sys_flag=sys_flag), naming("%LMQ%a,%LMQ%b"), layout=LAYOUT
    )
    assert offsets(log) == [(0, "0"), (0, "1,0,1"), (1, "1,0")]


def test_prepared_messages_make_no_light_queue_known_but_meet_the_limit() -> None:
    layout = layout_of(file_bytes=4096, multi_dispatch=True, light_queues=True, light_queues_max=1)
    log, outcomes = put_all(
        naming("%LMQ%a,%LMQ%b", sys_flag=4),
        naming("%LMQ%a", sys_flag=4),
        naming("%LMQ%b", sys_flag=12),
        naming("%LMQ%c"),
        naming("%LMQ%a", sys_flag=4),
        naming("%LMQ%c", sys_flag=4),
        layout=layout,
    )
    exceeded, ok = PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED, PutStatus.PUT_OK
    assert [outcome.status for outcome in outcomes] == [exceeded, ok, ok, ok, exceeded, ok]
    assert light_queues(log, layout=layout) == {"%LMQ%c"}


@pytest.mark.parametrize(
    ("limit", "names", "status"),
    [
        (2, "%LMQ%a", PutStatus.PUT_OK),
        (2, "%LMQ%c", PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED),
        (2, "%LMQ%a,%LMQ%c", PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED),
        (2, "c,T", PutStatus.PUT_OK),
        (3, "%LMQ%c,%LMQ%c", PutStatus.PUT_OK),
        (3, "%LMQ%c,%LMQ%d", PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED),
        (3, "%LMQ%own", PutStatus.PUT_OK),
        (2, "%LMQ%c,", PutStatus.MESSAGE_ILLEGAL),
    ],
)
def test_limit_of_light_queues(limit: int, names: str, status: PutStatus) -> None:
    """The log knows a and b; the ordinary queue of the topic `%LMQ%own` is no light queue."""
    layout = layout_of(file_bytes=4096, multi_dispatch=True, light_queues=True, light_queues_max=limit)
    log, _ = put_all(naming("%LMQ%a,plain"), naming("%LMQ%b"), message_of("%LMQ%own"), layout=layout)
    assert light_queues(log, layout=layout) == {"%LMQ%a", "%LMQ%b"}
    after, outcome = put(log, naming(names), layout=layout, store_timestamp=9)
    assert outcome.status is status
    assert (after == log) is (status is not PutStatus.PUT_OK)


def test_a_limit_that_was_lowered_refuses_whatever_names_queues() -> None:
    log, _ = put_all(naming("%LMQ%a,%LMQ%b"), layout=LAYOUT)
    lowered = layout_of(file_bytes=1 << 16, multi_dispatch=True, light_queues=True, light_queues_max=1)
    for names in ("%LMQ%a", "c"):
        _, outcome = put(log, naming(names), layout=lowered, store_timestamp=2)
        assert outcome.status is PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED
    assert put(log, message_of(), layout=lowered, store_timestamp=2)[1].status is PutStatus.PUT_OK


@pytest.mark.parametrize("layout", [{}, {"multi_dispatch": True}, {"light_queues": True}])
def test_no_limit_without_light_queues(layout: dict[str, bool]) -> None:
    _, outcomes = put_all(naming("%LMQ%a"), layout=layout_of(light_queues_max=0, **layout))
    assert outcomes[0].status is PutStatus.PUT_OK


@pytest.mark.parametrize(
    ("names", "status"),
    [
        ("a", PutStatus.PUT_OK),
        ("n" * 127, PutStatus.PUT_OK),
        ("n" * 128, PutStatus.MESSAGE_ILLEGAL),
        ("é" * 64, PutStatus.MESSAGE_ILLEGAL),
        ("a,", PutStatus.MESSAGE_ILLEGAL),
        (",a", PutStatus.MESSAGE_ILLEGAL),
        ("a,,b", PutStatus.MESSAGE_ILLEGAL),
        (",", PutStatus.MESSAGE_ILLEGAL),
        ("a,.", PutStatus.MESSAGE_ILLEGAL),
        ("..", PutStatus.MESSAGE_ILLEGAL),
        ("a/b", PutStatus.MESSAGE_ILLEGAL),
        ("a, ", PutStatus.PUT_OK),
        (" ", PutStatus.PUT_OK),
        ("a\0", PutStatus.MESSAGE_ILLEGAL),
        ("\ud800", PutStatus.MESSAGE_ILLEGAL),
    ],
    ids=ascii,
)
def test_named_queues_are_called_like_topics(names: str, status: PutStatus) -> None:
    log, outcome = put(CommitLog(), naming(names), layout=LAYOUT, store_timestamp=1)
    assert outcome.status is status
    assert outcome.records or log == CommitLog()


@pytest.mark.parametrize("fields", [{"topic": "%RETRY%g"}, {"topic": "SCHEDULE_TOPIC_XXXX"}])
def test_where_nothing_is_dispatched_names_are_not_looked_at(fields: dict[str, Any]) -> None:
    given = naming("a/b,", **fields)
    log, _ = put_all(given, layout=LAYOUT)
    assert [record.message for record in log.records] == [given]


@pytest.mark.parametrize(
    ("properties", "stored"),
    [
        ("INNER_MULTI_DISPATCH\x01a\x02", "INNER_MULTI_DISPATCH\x01a\x02INNER_MULTI_QUEUE_OFFSET\x010"),
        (
            "A\x01\x02WAIT\x01false\x02INNER_MULTI_QUEUE_OFFSET\x0199\x02INNER_MULTI_DISPATCH\x01a,b\x02B\x01c",
            "INNER_MULTI_QUEUE_OFFSET\x010,0\x02INNER_MULTI_DISPATCH\x01a,b\x02B\x01c",
        ),
        (
            {"__CRC32#": "1", "INNER_MULTI_DISPATCH": "a"},
            "INNER_MULTI_DISPATCH\x01a\x02INNER_MULTI_QUEUE_OFFSET\x010",
        ),
        (
            "INNER_MULTI_DISPATCH\x01a\x02DELAY\x010",
            "INNER_MULTI_DISPATCH\x01a\x02DELAY\x010\x02INNER_MULTI_QUEUE_OFFSET\x010",
        ),
        (
            "INNER_MULTI_DISPATCH\x01a\x02WAIT\x01true\x02DELAY\x011",
            "INNER_MULTI_DISPATCH\x01a\x02WAIT\x01true\x02DELAY\x011\x02REAL_TOPIC\x01T\x02REAL_QID\x010",
        ),
        ("WAIT\x01false\x02INNER_MULTI_DISPATCH\x01 \x02", "WAIT\x01false\x02INNER_MULTI_DISPATCH\x01 \x02"),
    ],
    ids=ascii,
)
def test_what_is_written(properties: Any, stored: str) -> None:
    log, _ = put_all(message_of(properties=properties), layout=LAYOUT)
    (record,) = log.records
    assert record.message.properties == stored
    assert record.size_bytes >= 91 + len(stored)


def test_wait_is_heard_before_it_is_left_out() -> None:
    layout = layout_of(file_bytes=4096, multi_dispatch=True, sync_flush=True)
    log, _ = put_all(message_of(properties="INNER_MULTI_DISPATCH\x01a\x02WAIT\x01false"), layout=layout)
    assert log.flushed_offset == 0
    assert "WAIT" not in log.records[0].message.properties


def test_longest_properties_with_offsets() -> None:
    """`INNER_MULTI_QUEUE_OFFSET`, its separators and the digits that the log needs count too."""
    filler = 32_767 - len("INNER_MULTI_DISPATCH\x01a\x02" + "B\x01" + "\x02INNER_MULTI_QUEUE_OFFSET\x01" + "0")
    fits = message_of(properties="INNER_MULTI_DISPATCH\x01a\x02B\x01" + "x" * filler)
    log, outcomes = put_all(fits, *[naming("a")] * 9, fits, layout=LAYOUT)
    assert [outcome.status for outcome in outcomes[:-1]] == [PutStatus.PUT_OK] * 10
    assert outcomes[-1].status is PutStatus.PROPERTIES_SIZE_EXCEEDED, "the offset is 10 now"
    assert offsets(log)[-1] == (9, "9")


def test_records_from_before_multi_dispatch_count_in_their_own_queue_only() -> None:
    """Offsets made up by a producer do not count, unless there is one for each name."""
    noted = ("a\x02INNER_MULTI_QUEUE_OFFSET\x01" + text for text in ("x", "9" * 19, "9" * 5000))
    made_up = ["a,b", *noted, "a,b\x02INNER_MULTI_QUEUE_OFFSET\x015"]
    log, _ = put_all(*map(naming, made_up), layout=OFF)
    after, _ = put_all(naming("a"), layout=LAYOUT, log=log)
    assert offsets(after)[-1] == (5, "0")


def test_delayed_and_retried_messages_count_in_their_own_queue_only() -> None:
    given = message_of(properties="INNER_MULTI_DISPATCH\x01a\x02INNER_MULTI_QUEUE_OFFSET\x015\x02DELAY\x011")
    retried = message_of("%RETRY%g", properties="INNER_MULTI_DISPATCH\x01a\x02INNER_MULTI_QUEUE_OFFSET\x015")
    log, _ = put_all(given, retried, naming("a"), layout=LAYOUT)
    assert offsets(log)[-1] == (0, "0")


def test_a_batch_goes_on_behind_a_named_queue() -> None:
    log, _ = put_all(naming("A", "B"), batch_of(b"", b"", topic="A"), naming("A", "B"), layout=LAYOUT)
    assert offsets(log) == [(0, "0"), (1, ""), (2, ""), (1, "3")]
