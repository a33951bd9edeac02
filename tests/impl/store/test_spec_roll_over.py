"""Test records that begin a new file: each queue offset is given once.

This holds for all kinds of records and puts.
"""

import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.impl.status_cases import batch_of
from tests.support.impl.stores import MESSAGE, config_of, open_store, put
from tornpage.impl.message.message import Message, MessageBatch, PutStatus

LIGHT = replace(config_of(), enable_multi_dispatch=True, enable_lmq=True)
NAMES, OFFSETS = "INNER_MULTI_DISPATCH", "INNER_MULTI_QUEUE_OFFSET"
NAMING = replace(MESSAGE, properties=f"{NAMES}\x01%LMQ%a,side,TopicTest")
FILLER = replace(MESSAGE, queue_id=2, body=bytes(700))


def test_message_in_several_queues_rolls_over(tmp_path: Path) -> None:
    """RocketMQ reads the offsets again for the second file; they are the same."""
    with open_store(tmp_path, config=LIGHT) as store:
        results = [store.put(message) for message in (NAMING, replace(FILLER, body=bytes(600)), NAMING, NAMING)]
        assert [result.offset // 1024 for result in results] == [0, 0, 1, 1]
        assert results[2].offset == 1024
        assert [results[index].queue_offset for index in (0, 2, 3)] == [0, 1, 2]
        stored = [store.get(results[index].offset).message for index in (0, 2, 3)]
        assert [each and each.properties[OFFSETS] for each in stored] == ["0,0,0", "1,1,1", "2,2,2"]


@pytest.mark.parametrize(
    ("message", "counted"),
    [
        (replace(MESSAGE, body=bytes(100)), 1),
        (replace(MESSAGE, body=bytes(100), sys_flag=8), 1),
        (replace(MESSAGE, body=bytes(100), sys_flag=4), 0),
        (replace(MESSAGE, body=bytes(100), sys_flag=12), 0),
        (batch_of(b"one", b"two"), 2),
    ],
    ids=["message", "committed", "prepared", "rolled back", "batch"],
)
def test_queue_goes_on_behind_a_record_that_rolled_over(
    message: Message | MessageBatch, counted: int, tmp_path: Path
) -> None:
    with open_store(tmp_path) as store:
        assert store.put(MESSAGE).queue_offset == 0
        store.put(FILLER)
        rolled = put(store, message)
        assert (rolled.offset, rolled.queue_offset) == (1024, 1 if counted else 0)
        assert store.put(MESSAGE).queue_offset == 1 + counted


@pytest.mark.parametrize("properties", ["", "A\x01b"])
def test_message_that_names_no_queue_is_like_others_with_multi_dispatch(properties: str, tmp_path: Path) -> None:
    with open_store(tmp_path, config=LIGHT) as store:
        results = [store.put(replace(MESSAGE, properties=properties)) for _ in range(2)]
        assert [(result.status, result.queue_offset) for result in results] == [
            (PutStatus.PUT_OK, 0),
            (PutStatus.PUT_OK, 1),
        ]
        assert len(list(store.messages())) == 2


def test_messages_and_batches_of_several_threads_share_the_files(tmp_path: Path) -> None:
    """Nothing looked up before the lock is used under it: records follow without gaps."""
    given: tuple[Message | MessageBatch, ...] = (MESSAGE, batch_of(b"one", b"two"), replace(FILLER, queue_id=1))
    with open_store(tmp_path) as store:

        def produce(message: Message | MessageBatch) -> None:
            for _ in range(20):
                assert put(store, message).status is PutStatus.PUT_OK

        threads = [threading.Thread(target=produce, args=(message,), daemon=True) for message in given]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        store.check()
        stored = list(store.messages())
    assert [each.queue_offset for each in stored] == list(range(80))
    for before, after in pairwise(stored):
        assert after.offset == before.offset + before.size_bytes or after.offset % 1024 == 0
