"""The first offset of a broadcasting consumer survives its process.

Symptom: a broadcasting consumer that began at the end of a queue and died within 10 seconds began at the end again when
it was started next. Messages that had arrived meanwhile were skipped.
Cause: the first offset was noted in memory, and saved with the first progress after 10 seconds.
Fix: the first offset is saved when it is decided, as a broker does for other consumers (impl/consumer/offset_store.py).
Found by: the operation `run_direct` of `tornpage explore consumers`, 500 runs.
"""

from pathlib import Path

from tests.support.impl.consumers import World
from tests.support.impl.faulty_files import FaultyFiles
from tornpage.impl.consumer.client import Client
from tornpage.impl.consumer.offset_store import LocalOffsets
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import OffsetUpdated, Refused, UpdateStatus
from tornpage.impl.consumer.settings import ConsumeFromWhere, ConsumerSettings, MessageModel
from tornpage.impl.parts import Parts

_QUEUE = MessageQueue("orders", "broker-a", 0)


def test_message_after_the_first_start_is_consumed_after_the_second(tmp_path: Path) -> None:
    world = World(tmp_path / "store")
    begins = {
        "message_model": MessageModel.BROADCASTING,
        "consume_from_where": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    }
    world.put("before")
    world.join(**begins)  # type: ignore[arg-type]
    world.settle(for_ms=2_000)
    world.crash("a")
    world.put("between")
    world.join(**begins)  # type: ignore[arg-type]
    world.settle(for_ms=2_000)
    assert world.consume() == ["between"]
    world.close()


def test_first_offset_that_cannot_be_saved_is_decided_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    settings = ConsumerSettings(consumer_group="g", client_id="c", message_model=MessageModel.BROADCASTING)
    offsets = LocalOffsets(Client(settings, {}, incarnation="1", parts=Parts()), files, str(tmp_path))
    files.fail("sync", times=1)
    assert isinstance(offsets.keep_first(_QUEUE, 3, 0).answer, Refused)
    assert offsets.get(_QUEUE) is None
    assert offsets.keep_first(_QUEUE, 3, 0).answer == OffsetUpdated(UpdateStatus.STORED, 3)
