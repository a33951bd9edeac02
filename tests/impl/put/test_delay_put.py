"""Test delayed messages: their place, and the properties written for them."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.impl.records import VECTORS, host, message_of_vector
from tests.support.impl.stores import MESSAGE, SetClock, config_of, open_store
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import Message, PutStatus, StoredMessage
from tornpage.properties.decode.record import parse_properties

SCHEDULE = "SCHEDULE_TOPIC_XXXX"


def stored(directory: Path, message: Message, config: MessageStoreConfig | None = None) -> StoredMessage:
    """Put a message into a store and return the record in the log."""
    with open_store(directory, config=config or config_of()) as store:
        result = store.put(message)
        assert result.status is PutStatus.PUT_OK
        found = store.get(result.offset).message
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("level", "queue_id", "written"),
    [
        ("1", 0, "1"),
        ("+1", 0, "+1"),
        ("007", 6, "007"),
        ("18", 17, "18"),
        ("19", 17, "18"),
        ("99", 17, "18"),
        ("2147483647", 17, "18"),
    ],
)
@pytest.mark.parametrize("mapping", [False, True])
def test_level_is_clamped_and_chooses_the_queue(
    level: str, queue_id: int, written: str, mapping: bool, tmp_path: Path
) -> None:
    properties: str | dict[str, str] = {"K": "v", "DELAY": level} if mapping else f"K\x01v\x02DELAY\x01{level}"
    found = stored(tmp_path, replace(MESSAGE, queue_id=3, properties=properties))
    assert (found.topic, found.queue_id) == (SCHEDULE, queue_id)
    expected = {"K": "v", "DELAY": written, "REAL_TOPIC": "TopicTest", "REAL_QID": "3"}
    assert list(found.properties.items()) == list(expected.items())
    assert found.body == MESSAGE.body


@pytest.mark.parametrize("levels", ["1s", "1s 2s 3d"])
def test_highest_level_is_that_of_the_setting(levels: str, tmp_path: Path) -> None:
    config = replace(config_of(), message_delay_level=levels)
    found = stored(tmp_path, replace(MESSAGE, properties="DELAY\x014"), config)
    highest = len(levels.split())
    assert (found.queue_id, found.properties["DELAY"]) == (highest - 1, str(highest))


def test_there_are_18_levels_by_default() -> None:
    assert MessageStoreConfig().delay_levels().highest == 18


@pytest.mark.parametrize(
    "message",
    [
        replace(MESSAGE, properties="DELAY\x010"),
        replace(MESSAGE, properties="DELAY\x01-3\x02A\x01b\x02"),
        replace(MESSAGE, properties="XDELAY\x011"),
        replace(MESSAGE, properties="DELAY\x01"),
        replace(MESSAGE, topic="RMQ_SYS_TRANS_HALF_TOPIC", properties="DELAY\x012"),
        replace(MESSAGE, topic=SCHEDULE, properties="DELAY\x010"),
        replace(MESSAGE, sys_flag=4, properties="DELAY\x012"),
        replace(MESSAGE, sys_flag=12, properties="DELAY\x01x"),
        replace(MESSAGE, properties="DELAY\x011\x02DELAY\x010"),
    ],
    ids=lambda message: f"{message.topic} {message.sys_flag} {message.properties!r}",
)
def test_message_that_is_not_delayed_is_stored_as_it_is(message: Message, tmp_path: Path) -> None:
    found = stored(tmp_path, message, config_of(trailer=False))
    assert (found.topic, found.queue_id) == (message.topic, 1)
    data = (tmp_path / "commitlog" / f"{0:020d}").read_bytes()[: found.size_bytes]
    assert data.endswith(str(message.properties).encode())


def test_committed_transaction_is_delayed(tmp_path: Path) -> None:
    found = stored(tmp_path, replace(MESSAGE, sys_flag=8, properties="DELAY\x012"))
    assert (found.topic, found.queue_id, found.sys_flag) == (SCHEDULE, 1, 8)


def test_each_level_counts_in_its_own_queue(tmp_path: Path) -> None:
    for level, expected in (("1", 0), ("2", 0), ("1", 1), ("99", 0), ("18", 1), ("1", 2)):
        with open_store(tmp_path) as store:
            assert store.put(replace(MESSAGE, properties=f"DELAY\x01{level}")).queue_offset == expected
    with open_store(tmp_path) as store:
        assert store.put(MESSAGE).queue_offset == 0


def test_names_that_are_there_keep_their_place(tmp_path: Path) -> None:
    found = stored(tmp_path, replace(MESSAGE, properties="REAL_QID\x019\x02DELAY\x0130\x02A\x01b\x02DELAY\x0140\x02"))
    assert list(found.properties.items()) == [
        ("REAL_QID", "1"), ("DELAY", "18"), ("A", "b"), ("REAL_TOPIC", "TopicTest"),
    ]  # fmt: skip


def test_vector_v5_is_what_a_put_makes_of_its_message(tmp_path: Path) -> None:
    """RocketMQ orders the pairs by a hash map, this store by insertion."""
    vector = VECTORS["V5"]
    pairs = parse_properties(vector["properties"].encode())
    assert vector["topic"] == SCHEDULE
    given = {name: value for name, value in pairs.items() if not name.startswith("REAL_")}
    message = replace(
        message_of_vector(vector), topic=pairs["REAL_TOPIC"], queue_id=int(pairs["REAL_QID"]), properties=given
    )
    clock = SetClock(vector["storeTimestamp"])
    with open_store(tmp_path, config=config_of(trailer=False, file_bytes=1 << 16), clock=clock) as store:
        for offset in range(vector["queueOffset"]):
            assert store.put(message).queue_offset == offset
        result = store.put(message)
        found = store.get(result.offset).message
    assert found is not None
    assert (found.topic, found.queue_id, found.queue_offset) == (SCHEDULE, vector["queueId"], vector["queueOffset"])
    assert found.properties == pairs
    assert (found.size_bytes, found.body, found.flag) == (vector["sizeBytes"], message.body, vector["flag"])
    assert (found.store_host, found.born_host) == (host(vector["storeHost"]), host(vector["bornHost"]))


def test_waiting_is_decided_by_what_the_producer_said(tmp_path: Path) -> None:
    with open_store(tmp_path, sync=True) as store:
        store.put(replace(MESSAGE, properties="DELAY\x011\x02WAIT\x01false"))
        assert store.flushed_offset == 0
        store.put(replace(MESSAGE, properties="DELAY\x011\x02WAIT\x01true"))
        assert store.flushed_offset == store.max_offset
