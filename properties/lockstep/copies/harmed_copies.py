"""Change copies of a closed store, and read what they serve."""

from functools import partial

from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.store import MessageStore
from tornpage.model import salvage
from tornpage.model.state import Record
from tornpage.properties.contract import observed
from tornpage.properties.disk.disk import Image
from tornpage.properties.lockstep.pair import Pair
from tornpage.properties.program.log_places import ROOT, log_files

__all__ = ["FLOORS", "place_of", "pull_queue", "put_to_queue"]

_BATCH = 32
_PULLS_MAX = 10_000
FLOORS = (f"{ROOT}/config/durableFloor", f"{ROOT}/config/derivedFloor")
"""The files that RocketMQ does not write."""


def place_of(pair: Pair, image: Image, record: Record) -> tuple[str, int]:
    """Return the path of the log file of a record, and its position in that file."""
    base = record.offset // pair.settings.file_bytes * pair.settings.file_bytes
    return next(path for path in log_files(image.files) if path.endswith(f"/{base:020d}")), record.offset - base


def pull_queue(store: MessageStore, queue: tuple[str, int], found: salvage.Opened) -> None:
    """Pull a queue to its end, and note what it returns in `pulled` and `stuck`."""
    offset, end = store.min_offset_in_queue(*queue), store.max_offset_in_queue(*queue)
    pulled = found.pulled.setdefault(queue, {})
    for _ in range(_PULLS_MAX):
        if offset >= end:
            return
        result = observed("get_message", partial(store.get_message, *queue, offset, max_msg_nums=_BATCH))
        with result:
            for buffer in result.messages:
                message = buffer.message()
                pulled[buffer.queue_offset] = message.offset, message.body
            if result.next_begin_offset <= offset:
                break
            offset = result.next_begin_offset
    found.stuck.append(queue)


def put_to_queue(store: MessageStore, queue: tuple[str, int], found: salvage.Opened) -> None:
    """Put a message, pull the queue again, and note in `puts` whether the message is returned."""
    answer = observed("put", lambda: store.put(Message(queue[0], b"reached", queue_id=queue[1])))
    if answer.status is PutStatus.PUT_OK:
        store._durability.commit_all()  # no record in a buffer is readable
        store._reput.drain()
        after = salvage.Opened()
        pull_queue(store, queue, after)
        got = after.pulled[queue].get(answer.queue_offset)
        found.puts[queue] = answer.queue_offset, got == (answer.offset, b"reached")
        found.stuck += after.stuck
