"""Test multi-dispatch and light queues: their offsets, also after a restart."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, caught_up, config_of, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import Message, PutStatus, StoredMessage
from tornpage.impl.store import MessageStore

LIGHT = replace(config_of(file_bytes=4096), enable_multi_dispatch=True, enable_lmq=True)
SIDE = replace(LIGHT, enable_lmq=False)
NAMES, OFFSETS = "INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET"


def to(names: str, *, queue_id: int = 1, topic: str = "T", sys_flag: int = 0, more: str = "") -> Message:
    return replace(MESSAGE, topic=topic, queue_id=queue_id, sys_flag=sys_flag, properties=f"{NAMES}\x01{names}{more}")


def stored(store: MessageStore, message: Message) -> StoredMessage:
    """Put a message and return the record in the log."""
    result = store.put(message)
    assert result.status is PutStatus.PUT_OK
    found = store.get(result.offset).message
    assert found is not None
    return found


def offsets(store: MessageStore, message: Message) -> str | None:
    """Put a message and return its offsets in the queues that it names."""
    return stored(store, message).properties.get(OFFSETS)


STEPS: list[tuple[Message, str | None]] = [
    (to("%LMQ%a"), "0"),
    (to("%LMQ%a,%LMQ%b", queue_id=7), "1,0"),
    (to("side,%LMQ%b"), "0,1"),
    (to("side", queue_id=2), "0"),
    (to("side"), "1"),
    (to("%LMQ%a,%LMQ%a"), "2,2"),
    (to("%LMQ%a"), "3"),
    (replace(MESSAGE, topic="side"), None),
    (to("side"), "3"),
    (to("T"), "6"),
    (to("T", queue_id=1), "7"),
    (to("%LMQ%a", sys_flag=4), "4"),
    (to("%LMQ%a", sys_flag=12), "4"),
    (to("%LMQ%a", sys_flag=8), "4"),
    (replace(MESSAGE, topic="%LMQ%a", queue_id=0), None),
    (to("%LMQ%a"), "6"),
]
"""Puts in this order, and the offsets noted in each."""


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("trailer", [True, False])
def test_offsets_of_named_queues_go_on(restarts: bool, trailer: bool, tmp_path: Path) -> None:
    config = replace(LIGHT, record_checksum="record" if trailer else "body")
    store = open_store(tmp_path, config=config)
    for number, (message, expected) in enumerate(STEPS):
        if restarts:
            store.close()
            store = open_store(tmp_path, config=config)
        assert offsets(store, message) == expected, number
    store.close()


def test_offset_that_a_torn_tail_took_is_given_again(tmp_path: Path) -> None:
    with open_store(tmp_path / "live", config=LIGHT) as store:
        assert offsets(store, to("%LMQ%a,side")) == "0,0"
        last = store.put(to("%LMQ%a,%LMQ%b"))
        caught_up(store)
        shutil.copytree(tmp_path / "live", tmp_path / "torn")
    with open(tmp_path / "torn" / "commitlog" / f"{0:020d}", "r+b") as file:
        file.seek(last.offset + 95)
        file.write(b"x")
    config = replace(LIGHT, max_lmq_consume_queue_num=2)
    with open_store(tmp_path / "torn", config=config) as store:
        assert [finding.code for finding in store.findings] == ["torn_tail"] + ["queue_rebuilt"] * 3
        assert offsets(store, to("%LMQ%a,%LMQ%c")) == "1,0"
        assert store.put(to("%LMQ%b")).status is PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED


def test_limit_counts_light_queues_once_and_over_restarts(tmp_path: Path) -> None:
    config = replace(LIGHT, max_lmq_consume_queue_num=2)
    full = PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED
    steps = [
        ("%LMQ%a,%LMQ%a", PutStatus.PUT_OK),
        ("side,other,more", PutStatus.PUT_OK),
        ("%LMQ%b,%LMQ%c", full),
        ("%LMQ%b", PutStatus.PUT_OK),
        ("%LMQ%c", full),
        ("side,%LMQ%c,%LMQ%a", full),
        ("%LMQ%b,%LMQ%a", PutStatus.PUT_OK),
    ]
    for names, status in steps:
        with open_store(tmp_path, config=config) as store:
            assert store.put(to(names)).status is status, names
    with open_store(tmp_path, config=replace(config, max_lmq_consume_queue_num=1)) as store:
        assert store.put(to("%LMQ%a")).status is full
        assert store.put(to("side")).status is full, "the row speaks of what the log would know"
        assert store.put(MESSAGE).status is PutStatus.PUT_OK
    with open_store(tmp_path, config=replace(SIDE, max_lmq_consume_queue_num=0)) as store:
        assert store.put(to("%LMQ%z")).status is PutStatus.PUT_OK


def test_prepared_message_makes_no_light_queue_known(tmp_path: Path) -> None:
    with open_store(tmp_path, config=replace(LIGHT, max_lmq_consume_queue_num=1)) as store:
        assert offsets(store, to("%LMQ%a", sys_flag=4)) == "0"
        assert offsets(store, to("%LMQ%b")) == "0"


def test_prefix_is_a_name_like_others_without_light_queues(tmp_path: Path) -> None:
    with open_store(tmp_path, config=SIDE) as store:
        assert [offsets(store, to("%LMQ%a", queue_id=queue)) for queue in (0, 1, 1, 0)] == ["0", "0", "1", "1"]


UNTOUCHED: dict[str, tuple[MessageStoreConfig, Message]] = {
    "disabled": (config_of(file_bytes=4096), to("%LMQ%a,side")),
    "disabled, light queues on": (replace(config_of(file_bytes=4096), enable_lmq=True), to("%LMQ%a,side")),
    "retry topic": (LIGHT, to("%LMQ%a,side", topic="%RETRY%group")),
    "schedule topic": (LIGHT, to("%LMQ%a,side", topic="SCHEDULE_TOPIC_XXXX")),
    "blank": (LIGHT, to(" \t ")),
    "empty": (LIGHT, replace(MESSAGE, properties=f"{NAMES}\x01\x02A\x01b")),
    "another name": (LIGHT, replace(MESSAGE, properties=f"X{NAMES}\x01a")),
}


@pytest.mark.parametrize("case", UNTOUCHED)
def test_message_that_is_not_dispatched_is_stored_as_it_is(case: str, tmp_path: Path) -> None:
    config, message = UNTOUCHED[case]
    with open_store(tmp_path, config=replace(config, record_checksum="body")) as store:
        result = store.put(replace(message, properties=f"{message.properties}\x02WAIT\x01true\x02"))
        data = (tmp_path / "commitlog" / f"{0:020d}").read_bytes()[: result.size_bytes]
        assert data.endswith(f"{message.properties}\x02WAIT\x01true\x02".encode())
    with open_store(tmp_path, config=LIGHT) as store:
        assert offsets(store, to("%LMQ%a,side")) == "0,0"


def test_delayed_message_is_not_dispatched(tmp_path: Path) -> None:
    with open_store(tmp_path, config=LIGHT) as store:
        found = stored(store, to("%LMQ%a", more="\x02DELAY\x011"))
        assert (found.topic, found.properties.get(OFFSETS)) == ("SCHEDULE_TOPIC_XXXX", None)
        assert offsets(store, to("%LMQ%a")) == "0"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            f"A\x01b\x02{NAMES}\x01x\x02WAIT\x01false\x02K\x01v\x02",
            f"A\x01b\x02{NAMES}\x01x\x02K\x01v\x02{OFFSETS}\x010",
        ),
        (f"{OFFSETS}\x0199\x02{NAMES}\x01x,y", f"{OFFSETS}\x010,0\x02{NAMES}\x01x,y"),
        ({"WAIT": "true", NAMES: "x", "E": ""}, f"{NAMES}\x01x\x02{OFFSETS}\x010"),
        (f"{NAMES}\x01no\x02A\x01\x02ab\x02\x01c\x02{NAMES}\x01x", f"{NAMES}\x01x\x02{OFFSETS}\x010"),
    ],
)
def test_rewritten_string_is_made_anew(given: str | dict[str, str], expected: str, tmp_path: Path) -> None:
    with open_store(tmp_path, config=replace(LIGHT, record_checksum="body")) as store:
        result = store.put(replace(MESSAGE, properties=given))
        data = (tmp_path / "commitlog" / f"{0:020d}").read_bytes()[: result.size_bytes]
        assert data.endswith(len(expected).to_bytes(2, "big") + expected.encode())


def test_properties_may_be_too_long_after_rewriting_only(tmp_path: Path) -> None:
    config = replace(LIGHT, mapped_file_size_commit_log=1 << 17, record_checksum="body")
    longest = 32_767 - len(f"\x02{OFFSETS}\x010")
    with open_store(tmp_path, config=config) as store:
        head = f"{NAMES}\x01x\x02A\x01"
        for length, status in ((longest + 1, PutStatus.PROPERTIES_SIZE_EXCEEDED), (longest, PutStatus.PUT_OK)):
            message = replace(MESSAGE, properties=head + "y" * (length - len(head)))
            assert store.put(message).status is status
        assert offsets(store, to("x")) == "1"
