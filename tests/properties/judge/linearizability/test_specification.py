"""Test hand-made histories of a store: answers that are legal, and answers that are not."""

from collections.abc import Sequence

import pytest

from tornpage.model import commitlog
from tornpage.model.answers import Answer, Got, PutAnswer, QueueRead, RecordRead, put_answer
from tornpage.model.operations import (
    AnyOperation,
    AskMaximum,
    AskMinimum,
    Close,
    Commit,
    DeleteTopics,
    Flush,
    GetAt,
    Pull,
    Put,
    Query,
    QueryProgress,
    Step,
)
from tornpage.model.payloads import given_of
from tornpage.model.state import CommitLog, Layout
from tornpage.properties.judge.linearizability.calls import CLOSED, Call
from tornpage.properties.judge.linearizability.linearise import linearise
from tornpage.properties.judge.linearizability.specification import points_of, shared_at
from tornpage.properties.program.case import Settings
from tornpage.properties.program.translation import layout_of

PLAIN = layout_of(Settings(file_bytes=1024))
POOL = layout_of(Settings(file_bytes=1024, index=False, pool_buffers=3))
SIZE = 112
"""The record of an empty message of topic T."""
NOW_MS = 7


def put_of(fill: int, body_bytes: int = 0, topic: str = "T", properties: str = "") -> Put:
    return Put(topic=topic, fill=fill, body_bytes=body_bytes, properties=properties, advance_ms=0)


def answers(*puts: Put, layout: Layout = PLAIN) -> list[PutAnswer]:
    """Return the answers of a store to these puts, one after the other."""
    log, found = CommitLog(), []
    for put in puts:
        log, outcome = commitlog.put(log, given_of(put), layout=layout, store_timestamp=NOW_MS)
        found.append(put_answer(outcome))
    return found


def body_of(put: Put) -> bytes:
    return given_of(put).body or b""


def record_of(put: Put, answer: PutAnswer) -> Got:
    """Return the result of a get of a record."""
    return Got("FOUND", put.topic, body_of(put), put.queue_id, answer.queue_offset, answer.store_timestamp)


def says(client: QueueRead | tuple[RecordRead, ...] | int) -> Answer:
    return Answer(client=client)


def nothing(status: str) -> Answer:
    return Answer(got=Got(status))


A, B, C = put_of(1), put_of(2), put_of(3)
FIRST, SECOND, THIRD = answers(A, B, C)
SEEN = [
    RecordRead(answer.offset, answer.queue_offset, body_of(put))
    for put, answer in zip((A, B, C), (FIRST, SECOND, THIRD), strict=True)
]
PULL = Pull("T", 0, 0)
ASKED = QueryProgress("T", 0)
KEYED = [put_of(fill, properties="KEYS\x01k") for fill in (1, 2)]
KEYED_PUTS = [(put, Answer(put=answer)) for put, answer in zip(KEYED, answers(*KEYED), strict=True)]
KEYED_SEEN = tuple(RecordRead(answer.offset, answer.queue_offset, b"") for answer in answers(*KEYED))
UNKNOWN = says(QueueRead("NO_MATCHED_LOGIC_QUEUE", 0, 0, 0))
REFUSED = Answer(put=PutAnswer("SERVICE_NOT_AVAILABLE"))
T_GONE = DeleteTopics(), Answer(names=("T",))
CLOSES = Close(), Answer()


def in_turn(*asked: tuple[AnyOperation, Answer]) -> list[Call]:
    """Return calls one after the other."""
    return [Call(0, request, 2 * n, answer, 2 * n + 1) for n, (request, answer) in enumerate(asked)]


def at_once(*asked: tuple[AnyOperation, Answer]) -> list[Call]:
    """Return calls that all overlap."""
    return [Call(n, request, n, answer, 100 + n) for n, (request, answer) in enumerate(asked)]


def verdict(calls: Sequence[Call], layout: Layout = PLAIN) -> str:
    return linearise(points_of(calls, layout), shared_at(NOW_MS)).verdict


def found(*records: RecordRead, following: int, most: int) -> Answer:
    return says(QueueRead("FOUND", following, 0, most, records))


PUT_A, PUT_B = (A, Answer(put=FIRST)), (B, Answer(put=SECOND))
DISPATCH = Step("reput"), Answer()

HOLDS: dict[str, Sequence[Call]] = {
    "nothing": (),
    "puts in turn": in_turn(PUT_A, PUT_B),
    "a later put was first": at_once(PUT_A, PUT_B)[::-1],
    "a pull behind dispatch": in_turn(PUT_A, DISPATCH, (PULL, found(SEEN[0], following=1, most=1))),
    "a pull before dispatch": in_turn(PUT_A, (PULL, UNKNOWN), DISPATCH),
    "a pull sees a put that has not returned": at_once(
        PUT_A, DISPATCH, (PULL, found(SEEN[0], following=1, most=1)),
    ),
    "dispatch shows one of two": at_once(
        PUT_A, PUT_B, DISPATCH, (PULL, found(SEEN[0], following=1, most=1)), (AskMaximum("T", 0), says(2)),
    ),
    "progress of a group": in_turn(
        PUT_A, DISPATCH, (ASKED, says(0)), (Commit("T", 0, 1), Answer(committed=1)), (ASKED, says(1)),
        (Commit("T", 0, 0), Answer(committed=0)), (ASKED, says(0)), (Commit("T", 0, 7), Answer(committed=1)),
        T_GONE, (ASKED, says(0)),
    ),
    "a commit beside a deletion": at_once(
        PUT_A, DISPATCH, (Commit("T", 0, 1), Answer(committed=0)), T_GONE, (ASKED, says(0)),
    ),
    "a query by key": in_turn(
        *KEYED_PUTS, DISPATCH, (Query("T", "k", 1), says((KEYED_SEEN[1],))),
        (Query("T", "k"), says(KEYED_SEEN)), (Query("T", "l"), says(())),
    ),
    "the index shows one of two": at_once(
        *KEYED_PUTS, DISPATCH, (Query("T", "k"), says((KEYED_SEEN[0],))), (AskMaximum("T", 0), says(2)),
    ),
    "a put without an answer is seen": [
        Call(0, A, 0), *at_once((GetAt(0), Answer(got=record_of(A, FIRST))))
    ],
    "a get at the end": in_turn(
        PUT_A, (GetAt(SIZE), nothing("OFFSET_OVERFLOW_ONE")), (GetAt(SIZE + 1), nothing("OFFSET_OVERFLOW_BADLY")),
    ),
    "a get inside a record": in_turn(PUT_A, (GetAt(5), nothing("OFFSET_FOUND_NULL"))),
    "a flush": in_turn(PUT_A, (Flush(), Answer(durable=True, client=SIZE))),
    "a flush between two puts": at_once(PUT_A, PUT_B, (Flush(), Answer(durable=True, client=SIZE))),
    "reads behind a close": in_turn(
        PUT_A, CLOSES, (PULL, CLOSED), (B, REFUSED),
    ),
    "puts are refused before reads": at_once(
        CLOSES, (A, REFUSED), (AskMaximum("T", 0), says(0)),
    ),
    "two closers": [*at_once(CLOSES, CLOSES), Call(3, PULL, 50, UNKNOWN, 60)],
    "a deleted topic restarts its numbers": in_turn(
        PUT_A, DISPATCH, T_GONE, (PULL, UNKNOWN),
        (B, Answer(put=SECOND._replace(queue_offset=0))), DISPATCH, (AskMaximum("T", 0), says(1)),
    ),
    "numbers go before queues": [
        *in_turn(PUT_A, DISPATCH), Call(1, T_GONE[0], 4, T_GONE[1], 20),
        Call(2, B, 5, Answer(put=SECOND._replace(queue_offset=0)), 6), Call(3, AskMaximum("T", 0), 7, says(1), 8),
    ],
}  # fmt: skip

BROKEN: dict[str, Sequence[Call]] = {
    "two puts at one place": in_turn(PUT_A, (B, Answer(put=SECOND._replace(offset=0)))),
    "a number that was given before": in_turn(PUT_A, (B, Answer(put=SECOND._replace(queue_offset=0)))),
    "the order of time": in_turn(PUT_B, PUT_A),
    "a maximum that goes down": in_turn(
        PUT_A, PUT_B, DISPATCH, (AskMaximum("T", 0), says(2)), (AskMaximum("T", 0), says(1)),
    ),
    "a maximum beyond what was put": in_turn(PUT_A, (AskMaximum("T", 0), says(2))),
    "a dispatch that shows nothing": in_turn(PUT_A, DISPATCH, (PULL, UNKNOWN)),
    "a message too many for its maximum": in_turn(
        PUT_A, PUT_B, DISPATCH, (PULL, found(SEEN[0], SEEN[1], following=2, most=1)),
    ),
    "a message left out": in_turn(PUT_A, PUT_B, DISPATCH, (PULL, found(SEEN[1], following=2, most=2))),
    "a message doubled": in_turn(PUT_A, DISPATCH, (PULL, found(SEEN[0], SEEN[0], following=1, most=1))),
    "led past a message": in_turn(
        PUT_A, DISPATCH, (PULL, says(QueueRead("MESSAGE_WAS_REMOVING", 1, 0, 1))),
    ),
    "nothing where there is something": in_turn(
        PUT_A, DISPATCH, (PULL, says(QueueRead("OFFSET_FOUND_NULL", 0, 0, 1))),
    ),
    "another body": in_turn(PUT_A, (GetAt(0), Answer(got=record_of(A, FIRST)._replace(body=b"x")))),
    "no record where one is": in_turn(PUT_A, (GetAt(0), nothing("OFFSET_FOUND_NULL"))),
    "too small without a clean-up": in_turn(PUT_A, (GetAt(0), nothing("OFFSET_TOO_SMALL"))),
    "a flush that leaves a put out": in_turn(PUT_A, PUT_B, (Flush(), Answer(durable=True, client=SIZE))),
    "a flush beyond the end": in_turn(PUT_A, (Flush(), Answer(durable=True, client=2 * SIZE))),
    "a put behind a close": in_turn(CLOSES, PUT_A),
    "a flush after a close": in_turn(PUT_A, CLOSES, (Flush(), Answer(durable=True, client=SIZE))),
    "a deletion after a close": in_turn(PUT_A, CLOSES, T_GONE),
    "a refusal that says where the record is": in_turn(
        CLOSES, (A, Answer(put=FIRST._replace(status="SERVICE_NOT_AVAILABLE"))),
    ),
    "a put that is stored at another time": in_turn((A, Answer(put=FIRST._replace(store_timestamp=NOW_MS + 1)))),
    "a refusal without a close": in_turn((A, REFUSED)),
    "a read that is refused before the close": in_turn((PULL, CLOSED), CLOSES),
    "a queue that outlives its deletion": in_turn(
        PUT_A, DISPATCH, T_GONE, (AskMaximum("T", 0), says(1)),
    ),
    "numbers that go on behind a deletion": in_turn(
        PUT_A, DISPATCH, T_GONE, PUT_B,
    ),
    "progress beyond the end": in_turn(PUT_A, DISPATCH, (Commit("T", 0, 2), Answer(committed=2))),
    "progress that falls short of what was asked for and is there": in_turn(
        PUT_A, PUT_B, DISPATCH, (Commit("T", 0, 2), Answer(committed=1)),
    ),
    "progress that was never committed": in_turn(PUT_A, DISPATCH, (ASKED, says(1))),
    "progress that is lost": in_turn(PUT_A, DISPATCH, (Commit("T", 0, 1), Answer(committed=1)), (ASKED, says(0))),
    "progress that outlives its topic": in_turn(
        PUT_A, DISPATCH, (Commit("T", 0, 1), Answer(committed=1)), T_GONE, (ASKED, says(1)),
    ),
    "a query that misses a message": in_turn(*KEYED_PUTS, DISPATCH, (Query("T", "k"), says((KEYED_SEEN[1],)))),
    "a query that forgets": [
        *at_once(*KEYED_PUTS, DISPATCH), Call(9, Query("T", "k"), 200, says(KEYED_SEEN), 201),
        Call(9, Query("T", "k"), 202, says(()), 203),
    ],
    "a message of another key": in_turn(*KEYED_PUTS, DISPATCH, (Query("T", "l"), says(KEYED_SEEN))),
    "a log that begins anywhere": in_turn(PUT_A, (Step("clean"), says(5))),
    "a log that loses its last file": in_turn(PUT_A, (Step("clean"), says(1024))),
    "a minimum that goes up by itself": in_turn(PUT_A, PUT_B, DISPATCH, (AskMinimum("T", 0), says(1))),
}  # fmt: skip


@pytest.mark.parametrize("name", HOLDS)
def test_a_right_history_is_explained(name: str) -> None:
    assert verdict(HOLDS[name]) == "holds"


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_history_is_not(name: str) -> None:
    assert verdict(BROKEN[name]) == "broken"


# ---- the end of a log file -------------------------------------------------------------------------------------------

LARGE, LARGER = put_of(4, 800), put_of(5, 800)
OVER, NEXT = answers(LARGE, LARGER)
ROLLS = LARGER, Answer(put=NEXT)


def test_readers_may_see_the_blank_before_the_record_behind_it() -> None:
    before = Call(0, LARGE, 0, Answer(put=OVER), 1)
    rolling = Call(0, ROLLS[0], 2, ROLLS[1], 9)
    at_the_end = Call(1, GetAt(1024), 3, nothing("OFFSET_OVERFLOW_ONE"), 4)
    in_the_blank = Call(1, GetAt(OVER.size_bytes), 5, nothing("OFFSET_FOUND_NULL"), 6)
    again = Call(1, GetAt(OVER.size_bytes), 7, nothing("OFFSET_OVERFLOW_ONE"), 8)
    assert verdict([before, rolling, at_the_end, in_the_blank]) == "holds"
    assert verdict([before, rolling, at_the_end, again]) == "broken"
    assert verdict([before, replace_times(rolling, 10, 11), at_the_end]) == "broken"


def replace_times(call: Call, began: int, ended: int) -> Call:
    return Call(call.task, call.request, began, call.answer, ended)


def test_a_clean_up_takes_the_head_from_readers_at_one_moment() -> None:
    puts = in_turn((LARGE, Answer(put=OVER)), ROLLS)
    clean = Call(0, Step("clean"), 10, says(1024), 20)
    here, gone = Answer(got=record_of(LARGE, OVER)), nothing("OFFSET_TOO_SMALL")
    seen_then_gone = [Call(1, GetAt(0), 11, here, 12), Call(1, GetAt(0), 13, gone, 14)]
    gone_then_seen = [Call(1, GetAt(0), 11, gone, 12), Call(1, GetAt(0), 13, here, 14)]
    assert verdict([*puts, clean, *seen_then_gone]) == "holds"
    assert verdict([*puts, clean, *gone_then_seen]) == "broken"
    assert verdict([*puts, clean, Call(1, GetAt(0), 11, nothing("OFFSET_FOUND_NULL"), 12)]) == "broken"


# ---- the transient store pool ----------------------------------------------------------------------------------------


def test_what_a_buffer_holds_is_seen_by_nobody() -> None:
    hidden, shown = nothing("OFFSET_OVERFLOW_ONE"), Answer(got=record_of(A, FIRST))
    assert verdict(in_turn(PUT_A, (GetAt(0), hidden)), POOL) == "holds"
    assert verdict(in_turn(PUT_A, (GetAt(0), shown)), POOL) == "broken"
    assert verdict(in_turn(PUT_A, (Step("commit"), Answer()), (GetAt(0), shown)), POOL) == "holds"


def test_what_was_seen_stays_and_a_flush_commits() -> None:
    hidden, shown = nothing("OFFSET_OVERFLOW_ONE"), Answer(got=record_of(A, FIRST))
    commit = Call(0, Step("commit"), 10, Answer(), 20)
    puts = in_turn(PUT_A)
    first = [Call(1, GetAt(0), 11, hidden, 12), Call(1, GetAt(0), 13, shown, 14)]
    assert verdict([*puts, commit, *first], POOL) == "holds"
    back = [Call(1, GetAt(0), 11, shown, 12), Call(1, GetAt(0), 13, hidden, 14)]
    assert verdict([*puts, commit, *back], POOL) == "broken"
    flushed = (Flush(), Answer(durable=True, client=SIZE))
    assert verdict(in_turn(PUT_A, flushed, (GetAt(0), shown)), POOL) == "holds"
    assert verdict(in_turn(PUT_A, flushed, (GetAt(0), hidden)), POOL) == "broken"
