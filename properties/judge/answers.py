"""Compare answers to pulls, queries and look-ups by time with the model.

A pull may have more than one legal answer (model/reading.py). Its messages are compared byte by byte with what the puts
wrote.
"""

from collections.abc import Callable, Sequence
from functools import partial

from tornpage.impl.read.filters import PropertyFilter
from tornpage.impl.read.message_filter import MessageFilter, TagFilter
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.store import MessageStore
from tornpage.model import index, reading
from tornpage.model.dispatch import Queue, places
from tornpage.model.reading import Pulled
from tornpage.model.state import CommitLog, Layout, Record
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.judge.buffers import ExpectedBuffer, messages_are_right
from tornpage.properties.judge.ledgers import Key
from tornpage.properties.judge.rulings import bounds_text, queue_text

__all__ = [
    "Stored",
    "compare_first_times",
    "compare_pull",
    "compare_query",
    "compare_time",
    "found_by_key",
    "key_text",
    "pulled_rightly",
]


Stored = Callable[[Record], bytes]
"""Returns the bytes of a record as the log holds them."""


def compare_pull(
    store: MessageStore,
    log: CommitLog,
    layout: Layout,
    queue: Queue,
    offset: int,
    *,
    stored: Stored,
    max_msg_nums: int = 32,
    tags: Sequence[str] | None = None,
    where: str = "",
) -> Pulled:
    """Pull from a queue and compare status, bounds, next offset and messages (contract 17, 8).

    Returns the legal answer that the store gave.
    """
    legal = reading.legal_answers(log, layout, *queue, offset, max_msg_nums, tags, where)
    message_filter: MessageFilter | None = None if tags is None else TagFilter("||".join(tags))
    if where:
        message_filter = observed("the property filter", lambda: PropertyFilter(where))
    with observed(
        "get_message",
        lambda: store.get_message(*queue, offset, max_msg_nums=max_msg_nums, message_filter=message_filter),
    ) as found:
        return pulled_rightly(found, legal, layout, queue, offset, stored=stored)


def pulled_rightly(
    found: GetMessageResult, legal: Sequence[Pulled], layout: Layout, queue: Queue, offset: int, *, stored: Stored
) -> Pulled:
    """Return the legal answer that a pull gave (contract 17, 8).

    Every field of the answer and of its messages is compared, and the messages are released (contract 1, 11). Raises
    GuaranteeBroken if the pull gave none of the answers.
    """
    bounds = (found.status.value, found.next_begin_offset, found.min_offset, found.max_offset)
    fitting = [answer for answer in legal if (answer.status.value, *answer[1:4]) == bounds]
    if not fitting:
        expected = " or ".join(_pulled_text(answer.status.value, *answer[1:4]) for answer in legal)
        raise GuaranteeBroken(
            17,
            f"a pull from queue {queue_text(queue)} at {offset} gives another status or other bounds",
            expected,
            _pulled_text(*bounds),
        )
    answer = fitting[0]
    offsets = [message.offset for message in found.messages]
    expected_offsets = [record.offset for record in answer.records]
    if offsets != expected_offsets:
        sentence = f"a pull from queue {queue_text(queue)} at {offset} returns the wrong messages"
        raise GuaranteeBroken(17, sentence, str(expected_offsets), str(offsets))
    said = (found.size_bytes, found.behind_bytes, found.suggest_pulling_from_slave)
    size_bytes = sum(each.size_bytes for each in answer.records)
    wanted = (size_bytes, answer.behind_bytes, answer.suggest_pulling_from_slave)
    if said != wanted:
        sentence = f"a pull from queue {queue_text(queue)} at {offset} states other sizes or another distance"
        raise GuaranteeBroken(17, sentence, str(wanted), str(said))
    wanted_messages = [
        ExpectedBuffer(record.offset, dict(places(record, layout))[queue], stored(record), layout.drops_joined)
        for record in answer.records
    ]
    messages_are_right(found, wanted_messages, turn=offset)
    return answer


def _pulled_text(status: str, following: int, least: int, most: int) -> str:
    return f"{status}, next offset {following}, queue {bounds_text((least, most))}"


def key_text(key: Key) -> str:
    """Return a topic and a key as text."""
    return f"key {key[1]!r} of topic {key[0]}"


def compare_query(
    store: MessageStore,
    log: CommitLog,
    layout: Layout,
    key: Key,
    *,
    stored: Stored,
    max_num: int = 64,
    begin_ms: int = 0,
    end_ms: int = 2**63 - 1,
) -> int:
    """Query a key, compare the messages found, and return how many there are (contract 5)."""
    expected = index.query(log, layout, *key, max_num, begin_ms, end_ms)
    found_by_key(store, key, expected, stored=stored, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms)
    return len(expected)


def found_by_key(
    store: MessageStore,
    key: Key,
    expected: Sequence[Record],
    *,
    stored: Stored,
    max_num: int,
    begin_ms: int = 0,
    end_ms: int = 2**63 - 1,
) -> None:
    """Check that a query returns exactly these records (contract 5)."""
    with observed(
        "query_message", lambda: store.query_message(*key, max_num=max_num, begin_ms=begin_ms, end_ms=end_ms)
    ) as found:
        offsets = [message.offset for message in found.messages]
        expected_offsets = [record.offset for record in expected]
        if offsets != expected_offsets:
            window = f"{max_num} at most from {begin_ms} to {end_ms}"
            sentence = f"a query for {key_text(key)} ({window}) returns the wrong messages"
            raise GuaranteeBroken(5, sentence, str(expected_offsets), str(offsets))
        _compare_bytes([bytes(message) for message in found.messages], expected, stored, contract=5)


def _compare_bytes(found: Sequence[bytes], records: Sequence[Record], stored: Stored, *, contract: int) -> None:
    for data, record in zip(found, records, strict=True):
        if data != stored(record):
            raise GuaranteeBroken(contract, f"the message read at offset {record.offset} is not the one put there")


def compare_time(store: MessageStore, log: CommitLog, layout: Layout, queue: Queue, timestamp: int) -> None:
    """Ask for the queue offset of a time and compare it with the model (contract 8)."""
    legal = reading.offset_by_time(log, layout, *queue, timestamp)
    found = observed("offset_in_queue_by_time", lambda: store.offset_in_queue_by_time(*queue, timestamp))
    if found not in legal:
        sentence = f"the offset in queue {queue_text(queue)} at {timestamp} is wrong"
        raise GuaranteeBroken(8, sentence, " or ".join(map(str, sorted(legal))), str(found))


def compare_first_times(store: MessageStore, log: CommitLog, layout: Layout, queue: Queue) -> None:
    """Compare the first store times of the log and of a queue with the model (contract 8)."""
    for asked in (None, queue):
        expected = reading.earliest_message_time(log, layout, asked)
        found = observed("earliest_message_time", partial(store.earliest_message_time, *(asked or ())))
        if found != expected:
            whose = "the log" if asked is None else f"queue {queue_text(asked)}"
            raise GuaranteeBroken(8, f"the time of the first message of {whose} is wrong", str(expected), str(found))
