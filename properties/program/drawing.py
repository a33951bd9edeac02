"""Draw single operations of the standard workload: their numbers and words.

`Words` has what a run draws from. The standard ones are those of the strategy `random`. A row of a covering array
(explore/crashes/factors.py) chooses others.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from tornpage.model.operations import (
    ChangeTable,
    Clean,
    CommitOffset,
    DeleteTopics,
    Get,
    GetMessage,
    HoldBuffer,
    Member,
    OffsetByTime,
    PullHeld,
    Put,
    PutBatch,
    QueryKey,
    QueryOffsets,
    ReplicaIs,
    ReplicaState,
    ServiceName,
    SwitchFlag,
    TryFunctions,
    TrySettings,
)
from tornpage.model.properties import CLAUSES

__all__ = [
    "FILTERED",
    "PROPERTIES",
    "TOPICS",
    "WORDS",
    "Words",
    "draw_batch",
    "draw_change_table",
    "draw_clean_for_room",
    "draw_clean_on_request",
    "draw_commit_offset",
    "draw_delete_topics",
    "draw_get",
    "draw_get_message",
    "draw_hold_buffer",
    "draw_offset_by_time",
    "draw_pull_held",
    "draw_put",
    "draw_query_key",
    "draw_query_offsets",
    "draw_replica",
    "draw_switch_flag",
    "draw_try_functions",
    "draw_try_settings",
    "fitted",
]

PROPERTIES = (
    "",
    "KEYS\x01k1 k2\x02TAGS\x01TagA",
    "TAGS\x01TagB",
    "WAIT\x01false",
    "UNIQ_KEY\x01u\x02KEYS\x01Aa k1",
    "KEYS\x01BB\x02TAGS\x01TagA",  # "Aa" and "BB" have one hash
    "",
    "KEYS\x01k1 k2\x02TAGS\x01TagA",
    "DELAY\x013\x02TAGS\x01TagB",
    "DELAY\x011\x02KEYS\x01k1",
    "INNER_MULTI_DISPATCH\x01%LMQ%one,%LMQ%two",
)
FILTERED = (
    "size\x015\x02color\x01red",
    "size\x013",
    "size\x01-2\x02limit\x013.5",
    "size\x013.5\x02limit\x015",
    "size\x013000000000\x02color\x01blue",
    "size\x01many\x02color\x01it's",
    "paid\x01TRUE\x02color\x01red",
    "paid\x01no\x02size\x014",
    "",
)
"""Properties that filters read: numbers of several kinds, text that is no number, and none."""

TOPICS = ("TopicA", "TopicB", "%RETRY%group")


@dataclass(frozen=True, slots=True)
class Words:
    """What the operations of a run are drawn from.

    A put goes to one of `topics` and one of `queues` queues, with `body_bytes` bytes and one of the `properties`. A
    member of a batch has one of the first three properties. A pull asks for one of `pulls` messages. With
    `by_properties` it filters by properties instead of tags, and most puts have properties that filters read. A step of
    one of the `services` comes after one of `pauses_ms`. An element that is listed twice is twice as likely. With
    `topics_move` each session has topics of its own, so that the queues of earlier ones expire. With `to_the_end` some
    puts fill a log file to its end or nearly so (`fitted`).
    """

    services: Sequence[ServiceName] = ("group-commit",)
    topics: tuple[str, ...] = TOPICS
    queues: int = 2
    body_bytes: tuple[int, ...] = (40, 400, 900, 900, 900, 1400, 1900)
    properties: tuple[str, ...] = PROPERTIES
    pulls: tuple[int, ...] = (32, 3, 1)
    pauses_ms: tuple[int, ...] = (0, 200, 500, 1_000, 10_000)
    topics_move: bool = False
    to_the_end: bool = False
    by_properties: bool = False

    def in_session(self, number: int) -> "Words":
        """Return the words of a session, counted from 0."""
        if not (self.topics_move and number):
            return self
        return replace(self, topics=tuple(f"{topic}{number}" for topic in self.topics))


_RECORD_BYTES, _TRAILER_BYTES = 91, 20
_LEFT_BYTES = (8, 8, 8, 9, 7, 16, 8 + 92, 8 + 112)
"""Room that a record leaves in its log file: none, too little for a record, and just enough for a small one."""

WORDS = Words()
"""Those of the standard workload."""


def draw_clean_for_room(rng: random.Random) -> Clean:
    """Draw a clean-up of a disk that is too full."""
    return Clean(percent=rng.choice((88, 95)))


def draw_clean_on_request(rng: random.Random) -> Clean:
    """Draw a clean-up of files that have expired."""
    return Clean(after_hours=rng.choice((0, 1, 73)), manual=True, percent=10)


def draw_delete_topics(rng: random.Random, words: Words = WORDS) -> DeleteTopics:
    """Draw which topics are still in use; the others are deleted."""
    return DeleteTopics(in_use=tuple(topic for topic in words.topics if rng.random() < 0.6))


def draw_hold_buffer(rng: random.Random) -> HoldBuffer:
    """Draw a reader that keeps a buffer."""
    return HoldBuffer(record=rng.randrange(8))


def draw_commit_offset(rng: random.Random) -> CommitOffset:
    """Draw a committed offset of a consumer group; a few groups are those of light queues."""
    group, queue = _group_and_queue(rng)
    return CommitOffset(group=group, queue=queue, behind=rng.choice((0, 0, 0, 1, 3, -1)))


def draw_change_table(rng: random.Random, words: Words = WORDS) -> ChangeTable:
    """Draw a new entry of a broker table, a change of one, or its removal."""
    number = rng.choice((-1, -1, 0, 1, 2, 7))
    if rng.random() < 0.5:
        return ChangeTable("topics", rng.choice(words.topics), number)
    return ChangeTable("groups", rng.choice(("g", "h")), number)


def draw_query_offsets(rng: random.Random) -> QueryOffsets:
    """Draw a question for the progress of a consumer group."""
    group, queue = _group_and_queue(rng)
    return QueryOffsets(group=group, queue=queue)


def _group_and_queue(rng: random.Random) -> tuple[str, int]:
    return rng.choice(("g", "h", "%LMQ%g")), rng.randrange(-1, 8)


def draw_get(rng: random.Random) -> Get:
    """Draw a read at the offset of a record, or near it."""
    return Get(record=rng.randrange(64), shift=rng.choice((0, 0, 1, -1, 88, 104, 112, 180)))


def draw_get_message(rng: random.Random, words: Words = WORDS) -> GetMessage:
    """Draw a pull, by properties or by tags."""
    return GetMessage(
        queue=rng.randrange(-1, 8),
        shift=rng.choice((0, 0, 1, 5, -1, 30)),
        max_msg_nums=rng.choice(words.pulls),
        tags="" if words.by_properties else rng.choice(("", "", "TagA", "TagA||TagB")),
        where=draw_where(rng) if words.by_properties else "",
    )


def draw_where(rng: random.Random, levels: int = 2) -> str:
    """Draw an expression of one to five parts, of at most this many levels."""
    first, *others = [_draw_part(rng, levels) for _ in range(rng.randrange(1, 6))]
    joints = rng.choice(((" AND ",), (" OR ",), (" AND ", " OR ")))
    return first + "".join(rng.choice(joints) + part for part in others)


def _draw_part(rng: random.Random, levels: int) -> str:
    has_levels = levels > 1 and rng.random() < 0.2
    inner = draw_where(rng, levels - 1) if has_levels else rng.choice(tuple(CLAUSES))
    return f"{rng.choice(('', '', 'NOT '))}({inner})"


def draw_query_key(rng: random.Random) -> QueryKey:
    """Draw a query by key."""
    return QueryKey(
        key=rng.randrange(-1, 8),
        max_num=rng.choice((32, 2)),
        begin_ms=rng.choice((0, 5)),
        window_ms=rng.choice((-1, 20)),
    )


def draw_offset_by_time(rng: random.Random) -> OffsetByTime:
    """Draw a look-up by time."""
    return OffsetByTime(queue=rng.randrange(-1, 8), record=rng.randrange(20), shift_ms=rng.choice((0, 1, -1)))


def draw_pull_held(rng: random.Random, words: Words = WORDS) -> PullHeld:
    """Draw a pull at the end of a queue, or near it. Most of them wait."""
    return PullHeld(
        topic=rng.choice(words.topics),
        queue_id=rng.randrange(words.queues),
        shift=rng.choice((0, 0, 0, -1, 1)),
        max_msg_nums=rng.choice(words.pulls),
        tags=rng.choice(("", "", "TagA")),
        hold_ms=rng.choice((15_000, 15_000, 1_000, 1, 0)),
    )


def draw_switch_flag(rng: random.Random) -> SwitchFlag:
    """Draw a running flag, which is cleared more often than set."""
    return SwitchFlag(bit=rng.choice((1, 2, 4, 8)), on=rng.random() < 0.3)


def draw_try_settings(rng: random.Random) -> TrySettings:
    """Draw which settings a caller tries."""
    return TrySettings(part=rng.randrange(4))


def draw_try_functions(rng: random.Random) -> TryFunctions:
    """Draw the arguments with which a caller asks functions."""
    return TryFunctions(fill=rng.randrange(1 << 16))


def draw_replica(rng: random.Random) -> ReplicaIs:
    """Draw the state of the best replica. Half of them confirm."""
    return ReplicaIs(state="confirms" if rng.random() < 0.5 else rng.choice(get_args(ReplicaState)))


def fitted(put: Put, room_bytes: int, rng: random.Random, *, trailer: bool) -> Put:
    """Return a put whose record leaves a few bytes of the room in a log file.

    Return the put itself if the room is too small.

    A log file keeps 8 bytes free, so a record that leaves 7 does not fit.
    """
    plain = Put(topic=put.topic, queue_id=put.queue_id, fill=put.fill, advance_ms=put.advance_ms)
    record_bytes = _RECORD_BYTES + len(put.topic.encode()) + (_TRAILER_BYTES if trailer else 0)
    body_bytes = room_bytes - rng.choice(_LEFT_BYTES) - record_bytes
    return replace(plain, body_bytes=body_bytes) if body_bytes >= 0 else put


def draw_put(rng: random.Random, words: Words = WORDS) -> Put:
    """Draw a put, in the standard workload of 40 to 1,900 body bytes.

    A few have whole records as bodies, properties, transactions or IPv6 hosts, are delayed, go to light queues, or wait
    for their answer.
    """
    rare = rng.random()
    return Put(
        topic=rng.choice(words.topics),
        queue_id=rng.randrange(words.queues),
        body_bytes=rng.choice(words.body_bytes),
        fill=rng.randrange(1 << 16),
        body_kind="record" if rare < 0.1 else "zeros" if rare < 0.15 else "random",
        properties=rng.choice(FILTERED if words.by_properties and rng.random() < 0.7 else words.properties),
        sys_flag=0x04 if rare > 0.95 else 0x0C if rare > 0.9 else 0,
        born_v6=0.8 < rare < 0.85,
        store_v6=0.83 < rare < 0.88,
        later=0.2 < rare < 0.27,
    )


def draw_batch(rng: random.Random, words: Words = WORDS) -> PutBatch:
    """Draw a batch of two to four messages; a few wait for their answer."""
    members = tuple(
        Member(
            body_bytes=rng.choice((400, 900, 1400)),
            fill=rng.randrange(1 << 16),
            properties=rng.choice(words.properties[:3]),
        )
        for _ in range(rng.randrange(2, 5))
    )
    return PutBatch(
        topic=rng.choice(words.topics),
        queue_id=rng.randrange(words.queues),
        members=members,
        properties=rng.choice(("", "WAIT\x01true\x02CLUSTER\x01C")),
        later=rng.random() < 0.1,
    )
