"""Judge of puts to a recovered store: a consumer reaches each of them (contract 18).

The store is opened once more on a copy of the image, so that no other judge meets what is put here.
"""

from __future__ import annotations

from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.store import MessageStore
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.judge.image_evidence import ImageEvidence
from tornpage.properties.judge.rulings import judge

__all__ = ["puts_are_reached"]

_QUEUES_MAX = 8
_BATCH = 32
_BODY = b"reached"


@judge(18)
def puts_are_reached(evidence: ImageEvidence) -> None:
    """Contract 18: a put answered with PUT_OK is given to a consumer at that number."""
    store = evidence.recoveries.opened(evidence.seen.image).store
    if store is None or store.read_only_reason is not None:
        return
    try:
        for topic, queue_id in store.queues()[:_QUEUES_MAX]:
            _is_reached(store, topic, queue_id)
    finally:
        observed("close", store.close)


def _is_reached(store: MessageStore, topic: str, queue_id: int) -> None:
    """Put one message to a queue and pull it. Raises GuaranteeBroken."""
    answer = observed("put", lambda: store.put(Message(topic, _BODY, queue_id=queue_id)))
    if answer.status is not PutStatus.PUT_OK:
        return  # a topic that takes no puts of clients
    observed("dispatch", store._reput.drain)
    number, end = answer.queue_offset, store.max_offset_in_queue(topic, queue_id)
    if number < end:
        with observed("get_message", lambda: store.get_message(topic, queue_id, number, max_msg_nums=1)) as result:
            found = [(buffer.queue_offset, buffer.message().offset) for buffer in result.messages]
        if found[:1] == [(number, answer.offset)]:
            return
    sentence = f"a put to {topic!r}, queue {queue_id}, is answered with number {number}, and no consumer reaches it"
    raise GuaranteeBroken(18, sentence, f"a message below the maximum {end}", "none")
