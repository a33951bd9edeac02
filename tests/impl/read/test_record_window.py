"""Test windows of a pull: what they return, compared with the walk, and their release."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.stores import caught_up, config_of, open_store
from tornpage.impl.errors import BufferReleased
from tornpage.impl.kernels.compiled import CompiledParts
from tornpage.impl.message.message import Message
from tornpage.impl.parts import Parts
from tornpage.impl.read.confirming import confirm_units
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.read.read_buffer import RecordWindow
from tornpage.impl.store import MessageStore

COMPILED = Parts({confirm_units: CompiledParts(records_worth_loading=0).confirm_units})
NAMES_U = "INNER_MULTI_DISPATCH\x01U"


def described(found: GetMessageResult) -> tuple[Any, ...]:
    """Return everything that an answer says, and release it."""
    with found:
        records = [(each.offset, each.queue_offset, bytes(each), each.message()) for each in found.messages]
        return (
            found.status, found.next_begin_offset, found.min_offset, found.max_offset, found.behind_bytes,
            found.suggest_pulling_from_slave, found.size_bytes, records,
        )  # fmt: skip


def written(directory: Path, seed: int, **changes: Any) -> None:
    """Write a store of several files with multi-dispatched, prepared and long messages."""
    draw = random.Random(seed)
    with open_store(directory, config=replace(config_of(file_bytes=4096), **changes)) as store:
        for number in range(60):
            body = draw.randbytes(draw.choice((0, 10, 200, 900)))
            properties = draw.choice(("", "KEYS\x01k", NAMES_U))
            flags = draw.choice((0, 0, 0, 4))
            born = ("::1", 5) if draw.random() < 0.3 else ("127.0.0.1", 5)
            message = Message(
                draw.choice("TU"), body, number % 2, properties=properties, sys_flag=flags, born_host=born
            )
            assert store.put(message).stored


@pytest.mark.parametrize("verify_reads", ["always", "once", "never"])
@pytest.mark.parametrize("seed", range(3))
def test_compiled_pulls_are_those_of_the_walk(tmp_path: Path, seed: int, verify_reads: str) -> None:
    draw = random.Random(seed)
    limits: dict[str, Any] = {
        "max_transfer_bytes_on_message_in_memory": draw.choice((262_144, 700)),
        "max_transfer_count_on_message_in_memory": draw.choice((32, 3)),
        "max_transfer_count_on_message_in_disk": 2,
        "max_transfer_bytes_on_message_in_disk": 400,
    }
    written(tmp_path, seed, enable_multi_dispatch=True, verify_reads=verify_reads, **limits)
    config = replace(config_of(file_bytes=4096), enable_multi_dispatch=True, verify_reads=verify_reads, **limits)  # type: ignore[arg-type]
    asked = [
        (draw.choice("TU"), draw.randrange(2), draw.randrange(-1, 36), draw.choice((0, 1, 2, 32, 100)))
        for _ in range(60)
    ]
    answers = []
    for parts in (Parts(), COMPILED):
        with open_store(tmp_path, config=config, parts=parts) as store:
            caught_up(store)
            answers.append([described(store.get_message(*each[:3], max_msg_nums=each[3])) for each in asked])
            assert store._reads.buffers.held == 0
    assert answers[0] == answers[1]
    assert any(len(each[-1]) > 2 for each in answers[0])


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """A store with ten messages in one queue."""
    with open_store(tmp_path, file_bytes=4096, parts=COMPILED) as opened:
        for number in range(10):
            assert opened.put(Message("T", b"%d" % number)).stored
        yield caught_up(opened)


def test_window_is_a_sequence_of_buffers(store: MessageStore) -> None:
    found = store.get_message("T", 0, 2)
    window = found.messages
    assert isinstance(window, RecordWindow)
    assert len(window) == 8
    assert store._reads.buffers.held == 8
    assert window[0] is window[0]
    assert window[-1].message().body == b"9"
    assert [each.message().body for each in window[1:3]] == [b"3", b"4"]
    assert next(iter(window)) is window[0]
    with pytest.raises(IndexError):
        window[8]
    found.release()
    assert store._reads.buffers.held == 0


def test_released_buffer_of_a_window_is_not_released_twice(store: MessageStore) -> None:
    found = store.get_message("T", 0, 0)
    first = found.messages[0]
    first.release()
    first.release()
    assert store._reads.buffers.held == 9
    found.release()
    found.release()
    assert store._reads.buffers.held == 0
    for buffer in (first, found.messages[5]):
        assert buffer.released
        with pytest.raises(BufferReleased):
            buffer.message()


def test_window_is_taken_back_by_a_close(store: MessageStore) -> None:
    found = store.get_message("T", 0, 0)
    kept = found.messages[1].message()
    store.close()
    assert kept.body == b"1"
    assert kept.topic == "T"
    with pytest.raises(BufferReleased):
        found.messages[0].message()
    found.release()
