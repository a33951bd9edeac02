"""Hand-made histories of a store: what callers may be told, and what nobody may be told."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tornpage.model import commitlog
from tornpage.model.message import Batch, Message
from tornpage.model.operations import Put
from tornpage.model.payloads import message_of
from tornpage.model.state import CommitLog, Layout
from tornpage.properties.judge.answers import Answer, expected_answer
from tornpage.properties.judge.linearizability.calls import Call
from tornpage.properties.judge.linearizability.linearise import linearise
from tornpage.properties.judge.linearizability.requests import (
    CLOSED,
    CleanStep,
    Closing,
    CommitOffset,
    CommitStep,
    DispatchStep,
    Flushed,
    FlushRequest,
    GetRequest,
    Got,
    KeyRequest,
    Pulled,
    PullRequest,
    PutRequest,
    QueryOffset,
    QueueMaximum,
    QueueMinimum,
    ReadRecord,
    TopicDeletion,
)
from tornpage.properties.judge.linearizability.specification import moments_of
from tornpage.properties.judge.linearizability.state import StoreState
from tornpage.properties.program.case import Settings
from tornpage.properties.program.translation import layout_of

PLAIN = layout_of(Settings(file_bytes=1024))
POOL = layout_of(Settings(file_bytes=1024, index=False, pool_buffers=3))
SIZE = 112
"""The record of an empty message of topic T."""


def given(fill: int, body_bytes: int = 0, topic: str = "T") -> Message:
    return message_of(Put(topic=topic, fill=fill, body_bytes=body_bytes))


def answers(*messages: Message | Batch, layout: Layout = PLAIN) -> list[Answer]:
    """Return what a store answers to these puts, one after the other."""
    log, found = CommitLog(), []
    for message in messages:
        log, outcome = commitlog.put(log, message, layout=layout, store_timestamp=7)
        found.append(expected_answer(outcome))
    return found


A, B, C = given(1), given(2), given(3)
FIRST, SECOND, THIRD = answers(A, B, C)
SEEN = [ReadRecord(answer.offset, answer.queue_offset, message.body or b"") for message, answer in
        zip((A, B, C), (FIRST, SECOND, THIRD), strict=True)]  # fmt: skip
PULL = PullRequest("T", 0, 0)
ASKED = QueryOffset("g", "T", 0)
KEYED = [message_of(Put(fill=fill, properties="KEYS\x01k")) for fill in (1, 2)]
KEYED_PUTS = [(PutRequest(message), answer) for message, answer in zip(KEYED, answers(*KEYED), strict=True)]
KEYED_SEEN = tuple(ReadRecord(answer.offset, answer.queue_offset, b"") for _, answer in KEYED_PUTS)
UNKNOWN = Pulled("NO_MATCHED_LOGIC_QUEUE", 0, 0, 0)


def in_turn(*asked: tuple[Any, Any]) -> list[Call]:
    """Return calls one after the other."""
    return [Call(0, request, 2 * n, answer, 2 * n + 1) for n, (request, answer) in enumerate(asked)]


def at_once(*asked: tuple[Any, Any]) -> list[Call]:
    """Return calls that all overlap."""
    return [Call(n, request, n, answer, 100 + n) for n, (request, answer) in enumerate(asked)]


def verdict(calls: Sequence[Call], layout: Layout = PLAIN) -> str:
    return linearise(moments_of(calls, layout), StoreState(CommitLog())).verdict


def found(*records: ReadRecord, following: int, most: int) -> Pulled:
    return Pulled("FOUND", following, 0, most, records)


PUT_A, PUT_B = (PutRequest(A), FIRST), (PutRequest(B), SECOND)
DISPATCH = (DispatchStep(), None)

HOLDS: dict[str, Sequence[Call]] = {
    "nothing": (),
    "puts in turn": in_turn(PUT_A, PUT_B),
    "a later put was first": at_once((PutRequest(A), FIRST), (PutRequest(B), SECOND))[::-1],
    "a pull behind dispatch": in_turn(PUT_A, DISPATCH, (PULL, found(SEEN[0], following=1, most=1))),
    "a pull in front of dispatch": in_turn(PUT_A, (PULL, UNKNOWN), DISPATCH),
    "a pull sees a put that has not returned": at_once(
        PUT_A, DISPATCH, (PULL, found(SEEN[0], following=1, most=1)),
    ),
    "dispatch shows one of two": at_once(
        PUT_A, PUT_B, DISPATCH, (PULL, found(SEEN[0], following=1, most=1)), (QueueMaximum("T", 0), 2),
    ),
    "progress of a group": in_turn(
        PUT_A, DISPATCH, (ASKED, 0), (CommitOffset("g", "T", 0, 1), 1), (ASKED, 1),
        (CommitOffset("g", "T", 0, 0), 0), (ASKED, 0), (CommitOffset("g", "T", 0, 7), 1),
        (TopicDeletion(), ("T",)), (ASKED, 0),
    ),
    "a commit beside a deletion": at_once(
        PUT_A, DISPATCH, (CommitOffset("g", "T", 0, 1), 0), (TopicDeletion(), ("T",)), (ASKED, 0),
    ),
    "a query by key": in_turn(
        *KEYED_PUTS, DISPATCH, (KeyRequest("T", "k", 1), (KEYED_SEEN[1],)), (KeyRequest("T", "k"), KEYED_SEEN),
        (KeyRequest("T", "l"), ()),
    ),
    "the index shows one of two": at_once(
        *KEYED_PUTS, DISPATCH, (KeyRequest("T", "k"), (KEYED_SEEN[0],)), (QueueMaximum("T", 0), 2),
    ),
    "a put without an answer is seen": [
        Call(0, PutRequest(A), 0), *at_once((GetRequest(0), Got("FOUND", SEEN[0])))
    ],
    "a get at the end": in_turn(
        PUT_A, (GetRequest(SIZE), Got("OFFSET_OVERFLOW_ONE")), (GetRequest(SIZE + 1), Got("OFFSET_OVERFLOW_BADLY")),
    ),
    "a get inside a record": in_turn(PUT_A, (GetRequest(5), Got("OFFSET_FOUND_NULL"))),
    "a flush": in_turn(PUT_A, (FlushRequest(), Flushed(True, SIZE))),
    "a flush between two puts": at_once(PUT_A, PUT_B, (FlushRequest(), Flushed(True, SIZE))),
    "reads behind a close": in_turn(
        PUT_A, (Closing(), None), (PULL, CLOSED), (PutRequest(B), Answer("SERVICE_NOT_AVAILABLE")),
    ),
    "puts are refused before reads": at_once(
        (Closing(), None), (PutRequest(A), Answer("SERVICE_NOT_AVAILABLE")), (QueueMaximum("T", 0), 0),
    ),
    "two closers": [*at_once((Closing(), None), (Closing(), None)), Call(3, PULL, 50, UNKNOWN, 60)],
    "a topic that was deleted begins anew": in_turn(
        PUT_A, DISPATCH, (TopicDeletion(), ("T",)), (PULL, UNKNOWN),
        (PutRequest(B), replace(SECOND, queue_offset=0)), DISPATCH, (QueueMaximum("T", 0), 1),
    ),
    "numbers go before queues": [
        *in_turn(PUT_A, DISPATCH), Call(1, TopicDeletion(), 4, ("T",), 20),
        Call(2, PutRequest(B), 5, replace(SECOND, queue_offset=0), 6), Call(3, QueueMaximum("T", 0), 7, 1, 8),
    ],
}  # fmt: skip

BROKEN: dict[str, Sequence[Call]] = {
    "two puts at one place": in_turn(PUT_A, (PutRequest(B), replace(SECOND, offset=0))),
    "a number that was given before": in_turn(PUT_A, (PutRequest(B), replace(SECOND, queue_offset=0))),
    "the order of time": in_turn((PutRequest(B), SECOND), (PutRequest(A), FIRST)),
    "a maximum that goes down": in_turn(
        PUT_A, PUT_B, DISPATCH, (QueueMaximum("T", 0), 2), (QueueMaximum("T", 0), 1),
    ),
    "a maximum beyond what was put": in_turn(PUT_A, (QueueMaximum("T", 0), 2)),
    "a dispatch that shows nothing": in_turn(PUT_A, DISPATCH, (PULL, UNKNOWN)),
    "a message too many for its maximum": in_turn(
        PUT_A, PUT_B, DISPATCH, (PULL, found(SEEN[0], SEEN[1], following=2, most=1)),
    ),
    "a message left out": in_turn(PUT_A, PUT_B, DISPATCH, (PULL, found(SEEN[1], following=2, most=2))),
    "a message doubled": in_turn(PUT_A, DISPATCH, (PULL, found(SEEN[0], SEEN[0], following=1, most=1))),
    "led past a message": in_turn(
        PUT_A, DISPATCH, (PULL, Pulled("MESSAGE_WAS_REMOVING", 1, 0, 1)),
    ),
    "nothing where there is something": in_turn(
        PUT_A, DISPATCH, (PULL, Pulled("OFFSET_FOUND_NULL", 0, 0, 1)),
    ),
    "another body": in_turn(PUT_A, (GetRequest(0), Got("FOUND", replace(SEEN[0], body=b"x")))),
    "no record where one is": in_turn(PUT_A, (GetRequest(0), Got("OFFSET_FOUND_NULL"))),
    "too small without a clean-up": in_turn(PUT_A, (GetRequest(0), Got("OFFSET_TOO_SMALL"))),
    "a flush that leaves a put out": in_turn(PUT_A, PUT_B, (FlushRequest(), Flushed(True, SIZE))),
    "a flush beyond the end": in_turn(PUT_A, (FlushRequest(), Flushed(True, 2 * SIZE))),
    "a put behind a close": in_turn((Closing(), None), PUT_A),
    "a refusal without a close": in_turn((PutRequest(A), Answer("SERVICE_NOT_AVAILABLE"))),
    "a read that is refused before the close": in_turn((PULL, CLOSED), (Closing(), None)),
    "a queue that outlives its deletion": in_turn(
        PUT_A, DISPATCH, (TopicDeletion(), ("T",)), (QueueMaximum("T", 0), 1),
    ),
    "numbers that go on behind a deletion": in_turn(
        PUT_A, DISPATCH, (TopicDeletion(), ("T",)), (PutRequest(B), SECOND),
    ),
    "progress beyond the end": in_turn(PUT_A, DISPATCH, (CommitOffset("g", "T", 0, 2), 2)),
    "progress that falls short of what was asked for and is there": in_turn(
        PUT_A, PUT_B, DISPATCH, (CommitOffset("g", "T", 0, 2), 1),
    ),
    "progress that was never committed": in_turn(PUT_A, DISPATCH, (ASKED, 1)),
    "progress that is lost": in_turn(PUT_A, DISPATCH, (CommitOffset("g", "T", 0, 1), 1), (ASKED, 0)),
    "progress that outlives its topic": in_turn(
        PUT_A, DISPATCH, (CommitOffset("g", "T", 0, 1), 1), (TopicDeletion(), ("T",)), (ASKED, 1),
    ),
    "a query that misses a message": in_turn(*KEYED_PUTS, DISPATCH, (KeyRequest("T", "k"), (KEYED_SEEN[1],))),
    "a query that forgets": [
        *at_once(*KEYED_PUTS, DISPATCH), Call(9, KeyRequest("T", "k"), 200, KEYED_SEEN, 201),
        Call(9, KeyRequest("T", "k"), 202, (), 203),
    ],
    "a message of another key": in_turn(*KEYED_PUTS, DISPATCH, (KeyRequest("T", "l"), KEYED_SEEN)),
    "a log that begins anywhere": in_turn(PUT_A, (CleanStep(), 5)),
    "a log that loses its last file": in_turn(PUT_A, (CleanStep(), 1024)),
    "a minimum that goes up by itself": in_turn(PUT_A, PUT_B, DISPATCH, (QueueMinimum("T", 0), 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", HOLDS)
def test_a_right_history_is_explained(name: str) -> None:
    assert verdict(HOLDS[name]) == "holds"


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_history_is_not(name: str) -> None:
    assert verdict(BROKEN[name]) == "broken"


# ---- the end of a log file -------------------------------------------------------------------------------------------

LARGE = given(4, 800)
OVER, NEXT = answers(LARGE, replace(LARGE, born_timestamp=9))
ROLLS = (PutRequest(replace(LARGE, born_timestamp=9)), NEXT)


def test_readers_may_see_the_blank_before_the_record_behind_it() -> None:
    before = Call(0, PutRequest(LARGE), 0, OVER, 1)
    rolling = Call(0, ROLLS[0], 2, ROLLS[1], 9)
    at_the_end = Call(1, GetRequest(1024), 3, Got("OFFSET_OVERFLOW_ONE"), 4)
    in_the_blank = Call(1, GetRequest(OVER.size_bytes), 5, Got("OFFSET_FOUND_NULL"), 6)
    again = Call(1, GetRequest(OVER.size_bytes), 7, Got("OFFSET_OVERFLOW_ONE"), 8)
    assert verdict([before, rolling, at_the_end, in_the_blank]) == "holds"
    assert verdict([before, rolling, at_the_end, again]) == "broken"
    assert verdict([before, replace_times(rolling, 10, 11), at_the_end]) == "broken"


def replace_times(call: Call, began: int, ended: int) -> Call:
    return Call(call.task, call.request, began, call.answer, ended)


def test_a_clean_up_takes_the_head_from_readers_at_one_moment() -> None:
    puts = in_turn((PutRequest(LARGE), OVER), ROLLS)
    clean = Call(0, CleanStep(), 10, 1024, 20)
    here, gone = Got("FOUND", ReadRecord(0, 0, LARGE.body or b"")), Got("OFFSET_TOO_SMALL")
    seen_then_gone = [Call(1, GetRequest(0), 11, here, 12), Call(1, GetRequest(0), 13, gone, 14)]
    gone_then_seen = [Call(1, GetRequest(0), 11, gone, 12), Call(1, GetRequest(0), 13, here, 14)]
    assert verdict([*puts, clean, *seen_then_gone]) == "holds"
    assert verdict([*puts, clean, *gone_then_seen]) == "broken"
    assert verdict([*puts, clean, Call(1, GetRequest(0), 11, Got("OFFSET_FOUND_NULL"), 12)]) == "broken"


# ---- the transient store pool ----------------------------------------------------------------------------------------


def test_what_a_buffer_holds_is_seen_by_nobody() -> None:
    hidden, shown = Got("OFFSET_OVERFLOW_ONE"), Got("FOUND", SEEN[0])
    assert verdict(in_turn(PUT_A, (GetRequest(0), hidden)), POOL) == "holds"
    assert verdict(in_turn(PUT_A, (GetRequest(0), shown)), POOL) == "broken"
    assert verdict(in_turn(PUT_A, (CommitStep(), None), (GetRequest(0), shown)), POOL) == "holds"


def test_what_was_seen_stays_and_a_flush_commits() -> None:
    hidden, shown = Got("OFFSET_OVERFLOW_ONE"), Got("FOUND", SEEN[0])
    commit = Call(0, CommitStep(), 10, None, 20)
    puts = in_turn(PUT_A)
    first = [Call(1, GetRequest(0), 11, hidden, 12), Call(1, GetRequest(0), 13, shown, 14)]
    assert verdict([*puts, commit, *first], POOL) == "holds"
    back = [Call(1, GetRequest(0), 11, shown, 12), Call(1, GetRequest(0), 13, hidden, 14)]
    assert verdict([*puts, commit, *back], POOL) == "broken"
    flushed = (FlushRequest(), Flushed(True, SIZE))
    assert verdict(in_turn(PUT_A, flushed, (GetRequest(0), shown)), POOL) == "holds"
    assert verdict(in_turn(PUT_A, flushed, (GetRequest(0), hidden)), POOL) == "broken"
