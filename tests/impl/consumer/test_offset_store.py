"""Test the progress of a client, in memory and in a file. Spec: consumers, section 8."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.impl.consumers import GROUP, TOPIC, World, settings_of
from tests.support.impl.faulty_files import FaultyFiles
from tornpage.impl.consumer.client import Client
from tornpage.impl.consumer.holding import Holding, HoldingState
from tornpage.impl.consumer.offset_store import LocalOffsets, RemoteOffsets, note_progress
from tornpage.impl.consumer.process_queue import NOTHING, ProcessQueue
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import OffsetFound, OffsetStatus, Subscription
from tornpage.impl.consumer.settings import MessageModel
from tornpage.impl.errors import BadConfig
from tornpage.impl.parts import Parts

MakeWorld = Callable[..., World]
QUEUE = MessageQueue(TOPIC, "broker-a", 0)
OTHER = MessageQueue(TOPIC, "broker-b", 3)
BROADCASTING = MessageModel.BROADCASTING

OFFSETS_JSON = """{
	"offsetTable":{{
			"brokerName":"broker-a",
			"queueId":0,
			"topic":"orders"
		}:5,{
			"brokerName":"broker-b",
			"queueId":3,
			"topic":"orders"
		}:7
	}
}"""
"""The layout of `OffsetSerializeWrapper.toJson(true)`."""


def client() -> Client:
    return Client(settings_of("a@1", message_model=BROADCASTING), {}, incarnation="1", parts=Parts())


def local(directory: Path, files: FaultyFiles | None = None) -> LocalOffsets:
    return LocalOffsets(client(), files or FaultyFiles(), str(directory))


def saved(directory: Path) -> str:
    return (directory / "a@1" / GROUP / "offsets.json").read_text()


# ---- in memory -------------------------------------------------------------------------------------------------------


def test_progress_increases_or_is_set() -> None:
    offsets = RemoteOffsets(client())
    offsets.update(QUEUE, 5, increase_only=True)
    offsets.update(QUEUE, 3, increase_only=True)
    assert offsets.get(QUEUE) == 5
    offsets.update(QUEUE, 3, increase_only=False)
    assert offsets.get(QUEUE) == 3
    offsets.forget(QUEUE)
    assert offsets.get(QUEUE) is None


def test_progress_of_a_dropped_queue_is_not_noted() -> None:
    offsets = RemoteOffsets(client())
    holding = Holding(QUEUE, "t", Subscription(TOPIC), ProcessQueue(), HoldingState.ACTIVE)
    note_progress(offsets, holding, NOTHING, increase_only=True)
    assert offsets.get(QUEUE) is None
    note_progress(offsets, holding, 4, increase_only=True)
    holding.process_queue.dropped = True
    note_progress(offsets, holding, 9, increase_only=True)
    assert offsets.get(QUEUE) == 4


# ---- in a file -------------------------------------------------------------------------------------------------------


def test_file_has_the_bytes_of_rocketmq(tmp_path: Path) -> None:
    offsets = local(tmp_path)
    offsets.update(OTHER, 7, increase_only=True)
    offsets.update(QUEUE, 5, increase_only=True)
    offsets.persist_all((), 0)
    assert saved(tmp_path) == OFFSETS_JSON


def test_file_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a@1" / GROUP).mkdir(parents=True)
    (tmp_path / "a@1" / GROUP / "offsets.json").write_text(OFFSETS_JSON)
    offsets = local(tmp_path)
    assert (offsets.get(QUEUE), offsets.get(OTHER)) == (5, 7)
    assert offsets.query(QUEUE, 0).answer == OffsetFound(OffsetStatus.FOUND, 5, is_group_known=True)
    new = MessageQueue(TOPIC, "broker-c", 0)
    assert offsets.query(new, 0).answer == OffsetFound(OffsetStatus.NOT_FOUND, -1, is_group_known=True)
    offsets.persist_all((), 0)
    assert saved(tmp_path) == OFFSETS_JSON


@pytest.mark.parametrize(
    "text", ["", "{", '{"offsetTable":[]}', '{"offsetTable":{"x":1}}', '{"offsetTable":{{"topic":"t"}:1}}']
)
def test_invalid_file_gives_way_to_its_backup(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "a@1" / GROUP
    folder.mkdir(parents=True)
    (folder / "offsets.json").write_text(text)
    (folder / "offsets.json.bak").write_text(OFFSETS_JSON)
    assert local(tmp_path).get(QUEUE) == 5


@pytest.mark.parametrize("verb", ["create", "pwrite", "sync", "rename", "sync_directory"])
@pytest.mark.parametrize("skip", [0, 1])
def test_failed_save_leaves_the_old_or_the_new_progress(tmp_path: Path, verb: str, skip: int) -> None:
    files = FaultyFiles()
    offsets = local(tmp_path, files)
    for offset in (1, 2):
        offsets.update(QUEUE, offset, increase_only=True)
        offsets.persist_all((), 0)
    offsets.update(QUEUE, 3, increase_only=True)
    files.fail(verb, times=1, skip=skip)
    try:
        offsets.persist_all((), 0)
        expected = {3}
    except OSError:
        expected = {2, 3}
    files.mend()
    assert local(tmp_path).get(QUEUE) in expected
    offsets.persist_all((), 0)
    assert local(tmp_path).get(QUEUE) == 3


# ---- a broadcasting member -------------------------------------------------------------------------------------------


def test_broadcasting_members_get_all_messages_and_keep_their_own_progress(world: MakeWorld) -> None:
    here = world(queues=2)
    here.put("m0", "m1")
    here.put("n0", queue_id=1)
    for client_id in ("a", "b"):
        here.join(client_id, message_model=BROADCASTING)
    here.settle()
    assert sorted(here.consume("a")) == ["m0", "m1", "n0"]
    assert sorted(here.consume("b")) == ["m0", "m1", "n0"]
    here.settle(for_ms=10_000)
    here.crash("a")
    here.put("m2")
    here.join("a", message_model=BROADCASTING)
    here.settle()
    assert here.consume("a") == ["m2"]
    assert here.store.consumer_offsets(TOPIC) == {}


def test_failed_message_of_a_broadcasting_member_is_dropped_with_a_finding(world: MakeWorld) -> None:
    """C11."""
    here = world()
    here.put("m0")
    here.join(message_model=BROADCASTING)
    here.settle()
    here.finish(here.take_all()[0], None)
    here.settle(for_ms=10_000)
    assert here.members["a"].lag()[QUEUE].progress == 1
    assert any("1 failed messages are dropped" in finding for finding in here.members["a"].findings)


def test_shutdown_saves_the_progress(world: MakeWorld) -> None:
    here = world()
    here.put("m0")
    member = here.join(message_model=BROADCASTING)
    here.settle()
    here.consume()
    member.shutdown(here.now_ms)
    here.settle()
    assert member.is_closed
    here.join(message_model=BROADCASTING)
    here.settle()
    assert here.consume() == []


def test_broadcasting_needs_a_directory() -> None:
    with pytest.raises(BadConfig, match="name a directory"):
        PushConsumer(settings_of(message_model=BROADCASTING), {})
