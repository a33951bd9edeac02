"""Test the index in the model: keys of a record, the window, the limit, and no match."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model.support import batch_of, inner_of, layout_of, message_of, put_all
from tornpage.model.commitlog import CommitLog, put
from tornpage.model.flushing import flush
from tornpage.model.index import keys_of, last_update, query
from tornpage.model.message import Batch, Message
from tornpage.model.queues import dispatch, failed_dispatch

LAYOUT = layout_of(file_bytes=1 << 16)
EVER = (0, 2**63 - 1)


def found_in(log: CommitLog, topic: str, key: str, count: int = 32, window: tuple[int, int] = EVER) -> list[int]:
    """Return the offsets in the log of the messages that a query returns."""
    return [log.records.index(record) for record in query(log, LAYOUT, topic, key, count, *window)]


def log_at(times: list[int], **fields: Any) -> CommitLog:
    """Return a dispatched log of messages with the key k, stored at these times."""
    log = CommitLog()
    for time in times:
        message = message_of(properties={"KEYS": "k"}, **fields)
        log, _ = put(log, message, layout=LAYOUT, store_timestamp=time)
    return dispatch(log)


@pytest.mark.parametrize(
    ("properties", "keys"),
    [
        ("", ()),
        ("UNIQ_KEY\x01u", ("u",)),
        ("KEYS\x01a b\x02UNIQ_KEY\x01u", ("u", "a", "b")),
        ({"KEYS": " a  b "}, ("a", "b")),
        ({"KEYS": "a\tb\xa0c"}, ("a\tb\xa0c",)),
        ({"KEYS": "a a", "UNIQ_KEY": "a"}, ("a", "a", "a")),
        ({"KEYS": " "}, ()),
        ({"KEYS": "", "UNIQ_KEY": ""}, ()),
        ({"UNIQ_KEY": "a b"}, ("a b",)),
        ({"UNIQ_KEY": " "}, (" ",)),
        ("KEYS\x01a\x02KEYS\x01b", ("b",)),
    ],
    ids=ascii,
)
@pytest.mark.parametrize(("sys_flag", "has_keys"), [(0, True), (4, True), (8, True), (12, False)])
def test_keys_of_a_record(properties: Any, keys: tuple[str, ...], sys_flag: int, has_keys: bool) -> None:
    log, _ = put_all(message_of(properties=properties, sys_flag=sys_flag), layout=LAYOUT)
    assert keys_of(log.records[0]) == (keys if has_keys else ())


def test_who_has_the_key_is_found_once() -> None:
    given_: list[Message | Batch] = [
        message_of("T", properties={"KEYS": "a a", "UNIQ_KEY": "a"}),
        message_of("T", properties={"KEYS": "b a"}),
        message_of("S", properties={"KEYS": "a"}),
        batch_of(topic="T", body=inner_of(properties=b"KEYS\x01a") + inner_of(), properties="UNIQ_KEY\x01a"),
    ]
    log = dispatch(put_all(*given_, layout=LAYOUT)[0])
    assert found_in(log, "T", "a") == [0, 1, 3]
    assert found_in(log, "S", "a") == [2]
    assert found_in(log, "T", "b") == [1]
    assert found_in(log, "T", "") == found_in(log, "T", "a a") == found_in(log, "U", "a") == []


def test_equal_hashes_and_equal_texts_are_other_keys() -> None:
    """Aa and BB have one hash.

    Topic `T#a` with key `b`, and topic `T` with key `a#b`, have one text.
    """
    keys = [("T", "Aa"), ("T", "BB"), ("T#a", "b"), ("T", "a#b")]
    log = dispatch(put_all(*(message_of(topic, properties={"KEYS": key}) for topic, key in keys), layout=LAYOUT)[0])
    assert [found_in(log, topic, key) for topic, key in keys] == [[0], [1], [2], [3]]


def test_a_delayed_message_is_found_in_the_schedule_topic() -> None:
    log = dispatch(put_all(message_of(properties={"KEYS": "a", "DELAY": "1"}), layout=LAYOUT)[0])
    assert (found_in(log, "SCHEDULE_TOPIC_XXXX", "a"), found_in(log, "T", "a")) == ([0], [])


@pytest.mark.parametrize(
    ("window", "places"),
    [
        ((1_000, 1_999), [0, 1, 2]),
        ((1_001, 1_999), [1, 2]),
        ((1_000, 1_998), [0, 1]),
        ((1_999, 1_999), [2]),
        ((1_500, 1_499), []),
        ((0, 999), [4]),
        ((2_000, 2_000), [3]),
    ],
)
def test_window_is_exact_with_both_ends(window: tuple[int, int], places: list[int]) -> None:
    log = log_at([1_000, 1_500, 1_999, 2_000, 500])
    assert found_in(log, "T", "k", window=window) == places


@pytest.mark.parametrize(
    ("max_num", "places"),
    [(-1, []), (0, []), (1, [69]), (3, [67, 68, 69]), (64, [*range(6, 70)]), (99, [*range(6, 70)])],
)
def test_the_newest_are_brought_in_ascending_order(max_num: int, places: list[int]) -> None:
    assert found_in(log_at([*range(70, 0, -1)]), "T", "k", max_num) == places


def test_limit_of_the_layout() -> None:
    log = log_at([1, 2, 3])
    assert len(query(log, replace(LAYOUT, query_max=2), "T", "k", 32, *EVER)) == 2


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), max_size=12),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(0, 12),
)
def test_complete_and_sound(puts: list[tuple[str, int]], begin_ms: int, end_ms: int, count: int) -> None:
    log = CommitLog()
    for key, time in puts:
        log, _ = put(log, message_of(properties={"KEYS": key}), layout=LAYOUT, store_timestamp=time)
    matching = [place for place, (key, time) in enumerate(puts) if key == "a" and begin_ms <= time <= end_ms]
    assert found_in(log, "T", "a", count, (begin_ms, end_ms)) == []
    assert found_in(dispatch(log), "T", "a", count, (begin_ms, end_ms)) == (matching[-count:] if count else [])


def test_only_readable_records_are_found() -> None:
    log = log_at([1])
    log, _ = flush(log)
    log, _ = put(log, message_of(properties={"KEYS": "k"}), layout=LAYOUT, store_timestamp=2)
    poisoned, _ = flush(dispatch(log), sync_fails=True)
    assert (found_in(dispatch(log), "T", "k"), found_in(poisoned, "T", "k")) == ([0, 1], [0])


def test_a_step_that_failed_has_indexed_nothing_of_the_part_that_failed() -> None:
    layout = layout_of()
    log, _ = put_all(*[message_of(properties={"KEYS": "k"}, body=bytes(30))] * 3, layout=layout)
    assert log.files == 3
    assert [len(query(each, layout, "T", "k", 9, *EVER)) for each in failed_dispatch(log, layout)] == [0, 0, 1, 1, 2, 2]


def test_without_an_index_nothing_is_found() -> None:
    layout = replace(LAYOUT, index=False)
    log = log_at([1])
    assert query(log, layout, "T", "k", 9, *EVER) == ()
    assert last_update(log, layout) is None


def test_last_update_is_that_of_the_last_record_with_a_key() -> None:
    keyed = {"KEYS": "k"}
    log, _ = put_all(
        message_of(properties=keyed, body=bytes(8)),
        message_of(properties=keyed, sys_flag=12),
        message_of(),
        layout=LAYOUT,
    )
    assert last_update(log, LAYOUT) is None
    assert last_update(dispatch(log), LAYOUT) == (1, 0)
    log, _ = put_all(message_of(properties=keyed, sys_flag=4), layout=LAYOUT, log=log)
    assert last_update(dispatch(log), LAYOUT) == (4, log.records[3].offset)
