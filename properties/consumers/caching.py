"""Use the cache of one queue alone, and compare it with the model (contract 16).

The operations and their arguments are drawn from a seed. After each of them all counts of the cache are compared, and
what its limits leave to pull.
"""

from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any

from tornpage.impl.consumer.flow_control import flow_control_of
from tornpage.impl.consumer.messages import ConsumerMessage
from tornpage.impl.consumer.process_queue import ProcessQueue
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.settings import ConsumerSettings
from tornpage.impl.message.message import StoredMessage
from tornpage.impl.parts import Parts
from tornpage.model.consumers.cache import Cache, accepted, limits_of, room
from tornpage.properties.consumers.host import BROKER, TOPIC
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["message_at", "use_cache"]

_QUEUE = MessageQueue(TOPIC, BROKER, 0)
_STEPS = 14
_MIB = 1 << 20
_HOST = ("127.0.0.1", 1)
_BODIES = {size: bytes(size) for size in (0, 1, 7, _MIB // 2, _MIB - 1, _MIB, _MIB + 1)}
_VERBS = ("put", "put", "put", "remove", "remove", "take", "take", "commit", "rollback", "again", "finish", "cut")


def use_cache(seed: int, parts: Parts) -> None:
    """Carry out drawn operations on a cache of the store and on that of the model."""
    rng = Random(seed)
    given: dict[str, Any] = {
        "orderly": rng.random() < 0.4,
        "pull_threshold_for_queue": rng.choice((1, 2, 3, 1_000)),
        "pull_threshold_size_for_queue": rng.choice((1, 2, 100)),
        "pull_threshold_for_topic": rng.choice((-1, -1, 1, 7)),
        "pull_threshold_size_for_topic": rng.choice((-1, -1, 1, 4)),
        "consume_concurrently_max_span": rng.choice((1, 2, 2_000)),
    }
    settings = ConsumerSettings(consumer_group="G", client_id="c", **given)
    began_ms = rng.randrange(1, 9)
    queue, cache = parts.of(ProcessQueue)(began_ms), Cache()
    found = (
        queue.dropped, queue.locked, queue.msg_acc_cnt, queue.last_pull_timestamp, queue.last_consume_timestamp,
        queue.last_lock_timestamp,
    )  # fmt: skip
    _is("a new cache", (False, False, 0, began_ms, began_ms, began_ms), found)
    for number in range(_STEPS):
        verb = rng.choice(_VERBS)
        cache = _step(queue, cache, verb, rng, number)
        _is(f"the cache after {verb}", _counts(cache), _counts_of(queue))
        _limits_hold(queue, cache, settings, given, rng)


def _step(queue: ProcessQueue, cache: Cache, verb: str, rng: Random, now_ms: int) -> Cache:
    """Carry out one operation; return the model's next cache. Raises GuaranteeBroken."""
    expected: object = None
    taken = [each for each in sorted(cache.taken) if rng.random() < 0.6]
    back = [queue.consuming_msg_orderly_tree_map[offset] for offset in taken]
    match verb:
        case "put":
            # a taken message is pulled again in no run: the offset of a pull is past all that is cached
            free = [offset for offset in range(12) if offset not in cache.taken]
            messages = {offset: (0, 1, 7)[offset % 3] for offset in sorted(rng.sample(free, min(3, len(free))))}
            end = rng.randrange(14)
            cache, expected = cache.put(messages)
            given = [_message(offset, size, end) for offset, size in messages.items()]
            found: object = observed(verb, partial(queue.put_message, given))
            if given and end > given[-1].queue_offset:
                _is("the messages after the last pulled one", end - given[-1].queue_offset, queue.msg_acc_cnt)
        case "remove":
            offsets = [offset for offset in range(12) if rng.random() < 0.25]
            cache, expected = cache.remove(offsets)
            given = [_message(offset, 3) for offset in offsets]
            found = observed(verb, partial(queue.remove_message, given, now_ms))
            _is("the time of the last consumption", now_ms, queue.last_consume_timestamp)
        case "take":
            count = rng.randrange(4)
            cache, expected = cache.take(count)
            messages_taken = observed(verb, partial(queue.take_messages, count, now_ms))
            found = tuple(each.queue_offset for each in messages_taken)
            _is("the time of the last consumption", now_ms, queue.last_consume_timestamp)
        case "commit":
            cache, expected = cache.commit()
            found = observed(verb, queue.commit)
        case "rollback":
            cache, found = cache.rollback(), observed(verb, queue.rollback)
        case "again":
            cache, found = cache.rollback(taken), observed(verb, partial(queue.make_message_to_consume_again, back))
        case "finish":
            cache, expected = cache.finish_taken(taken)
            found = observed(verb, partial(queue.finish_taken, back))
        case _:
            offset = rng.randrange(12)
            cache, expected = cache.cut(offset)
            found = observed(verb, partial(queue.cut, offset))
    _is(f"the answer of {verb}", expected, found)
    return cache


def _limits_hold(
    queue: ProcessQueue, cache: Cache, settings: ConsumerSettings, given: Mapping[str, Any], rng: Random
) -> None:
    held = rng.choice((0, 1, 1, 2, 3))
    limits, control = limits_of(given, held), flow_control_of(settings, held)
    _is("the limits of a queue", (limits.count, limits.size, limits.span),
        (control.count, control.size_bytes, control.max_span))  # fmt: skip
    following = max([*cache.waiting, *cache.taken, -1]) + 1 + rng.randrange(3)
    _is(
        "the room of a cache", room(cache, limits, following), observed("room", partial(control.room, queue, following))
    )
    pulled = {following + step: rng.choice(tuple(_BODIES)) for step in range(rng.randrange(4))}
    messages = [_message(offset, size) for offset, size in pulled.items()]
    found = observed("accepted", partial(control.accepted, queue, messages))
    _is("the number of accepted messages", accepted(cache, limits, pulled), found)


def _counts(cache: Cache) -> tuple[object, ...]:
    is_waiting = bool(cache.waiting)
    return (
        sorted(cache.waiting), sorted(cache.taken), cache.count, cache.size, cache.span, cache.last,
        cache.is_consuming, is_waiting,
    )  # fmt: skip


def _counts_of(queue: ProcessQueue) -> tuple[object, ...]:
    waiting, taken = list(queue.msg_tree_map), list(queue.consuming_msg_orderly_tree_map)
    return (
        waiting, taken, queue.msg_count, queue.msg_size, queue.max_span, queue.queue_offset_max,
        queue.consuming, queue.has_temp_message(),
    )  # fmt: skip


def _message(offset: int, size: int, end: int = 0) -> ConsumerMessage:
    return message_at(_QUEUE, offset, size, end)


def message_at(queue: MessageQueue, offset: int, size: int = 1, end: int = 0, *, tag: str = "") -> ConsumerMessage:
    """Return a message as a member has it in its cache.

    `size` is that of the body in bytes, `end` the maximum of its queue.
    """
    stored = StoredMessage(
        offset=offset * 100, size_bytes=100, topic=queue.topic, queue_id=queue.queue_id, queue_offset=offset,
        body=_BODIES.get(size) or bytes(size), properties={"TAGS": tag} if tag else {}, flag=0,
        sys_flag=0, born_timestamp=0, born_host=_HOST, store_timestamp=0, store_host=_HOST,
        reconsume_times=0, prepared_transaction_offset=0, body_crc=0,
        message_id="",
    )  # fmt: skip
    return ConsumerMessage(stored, queue, queue.topic, end)


def _is(what: str, expected: object, found: object) -> None:
    if found != expected:
        raise GuaranteeBroken(16, f"{what} is not that of the model", str(expected), str(found))
