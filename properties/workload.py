"""The standard workload of a campaign: what producers and operators do, drawn from a seed.

Three log files of 16 KiB, 40 records or more, three queues (docs/contract.md, "Campaigns").
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from properties.case import (
    Clean,
    Close,
    CommitOffset,
    DeleteTopics,
    FailSync,
    FailWrite,
    Flush,
    Get,
    GetMessage,
    HoldBuffer,
    Member,
    OffsetByTime,
    Open,
    Operation,
    Put,
    PutBatch,
    QueryKey,
    QueryOffsets,
    RefuseFile,
    ReleaseBuffer,
    ServiceName,
    Settings,
    Step,
)

__all__ = ["draw_operation", "draw_settings", "mode_of"]

_PROPERTIES = (
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
_TOPICS = ("TopicA", "TopicB", "%RETRY%group")


def draw_settings(base: Settings, rng: random.Random) -> Settings:
    """Vary what a campaign may vary: durability mode, files made ahead, directories, checksum kind, light queues."""
    mode = rng.random()
    return replace(
        base,
        sync_flush=mode < 0.4,
        pool_buffers=2 if mode >= 0.85 else 1 if mode >= 0.7 else 0,
        fast_fail=mode >= 0.9,
        files_ahead=rng.choice((0, 1, 1)),
        least_pages=rng.choice((4, 1)),
        trailer=rng.random() < 0.8,
        multi_dispatch=(dispatches := rng.random() < 0.3),
        light_queues=dispatches,
        log_paths=rng.choice((1, 1, 2)),
        queue_units=rng.choice((16, 4, 8)),
        queue_ext=rng.random() < 0.15,
        index=rng.random() < 0.9,
        index_slots=rng.choice((3, 1, 10)),
        index_entries=rng.choice((24, 10, 64)),
    )


def mode_of(settings: Settings) -> str:
    """Return the durability mode of a store, as activation tables call it."""
    if settings.sync_flush:
        return "mode_sync"
    return "mode_pool" if settings.pool_buffers else "mode_async"


def draw_operation(
    rng: random.Random,
    *,
    closed: bool,
    services: Sequence[ServiceName] = ("group-commit",),
    deletes: bool = False,
) -> Operation:
    """Draw the next operation of a store with these services, be it open or closed; if wanted, a few delete."""
    if closed:
        return Open()
    drawn = rng.random()
    if deletes and drawn < 0.02:
        return draw_deletion(rng)
    if drawn < 0.05:
        return Flush()
    if drawn < 0.09:
        return Get(record=rng.randrange(64), shift=rng.choice((0, 0, 1, -1, 88, 104, 112, 180)))
    if drawn < 0.12:
        return draw_read(rng)
    if drawn < 0.125:
        return Close()
    if drawn < 0.13:
        return FailSync()
    if drawn < 0.135:
        return FailWrite()
    if drawn < 0.14:
        return RefuseFile()
    if drawn < 0.19 and "reput" in services:
        return Step(service="reput")
    if drawn < 0.27:
        return Step(service=rng.choice(services), after_ms=rng.choice((0, 200, 500, 1_000, 10_000)))
    if drawn < 0.29 and "schedule" in services:
        return Step(service="schedule", after_ms=rng.choice((1_000, 3_000, 3_000)))
    if drawn < 0.32:
        return draw_progress(rng)
    return draw_batch(rng) if drawn < 0.37 else draw_put(rng)


def draw_deletion(rng: random.Random) -> Clean | DeleteTopics | HoldBuffer | ReleaseBuffer:
    """Draw a clean-up of a disk that is too full or of files that have expired, what stands in its way, or topics."""
    drawn = rng.random()
    if drawn < 0.3:
        return Clean(percent=rng.choice((88, 95)))
    if drawn < 0.5:
        return Clean(after_hours=rng.choice((0, 1, 73)), manual=True, percent=10)
    if drawn < 0.75:
        return DeleteTopics(in_use=tuple(topic for topic in _TOPICS if rng.random() < 0.6))
    return HoldBuffer(record=rng.randrange(8)) if drawn < 0.9 else ReleaseBuffer()


def draw_progress(rng: random.Random) -> CommitOffset | QueryOffsets | Step:
    """Draw what a consumer group notes, or asks, or that what was noted is saved."""
    drawn = rng.random()
    if drawn < 0.3:
        return Step(service="progress", after_ms=5_000)
    group, queue = rng.choice(("g", "h", "%LMQ%g")), rng.randrange(-1, 8)
    if drawn < 0.9:
        return CommitOffset(group=group, queue=queue, behind=rng.choice((0, 0, 0, 1, 3, -1)))
    return QueryOffsets(group=group, queue=queue)


def draw_read(rng: random.Random) -> GetMessage | QueryKey | OffsetByTime:
    """Draw a pull, a query by key or a look-up by time."""
    drawn = rng.random()
    if drawn < 0.5:
        return GetMessage(
            queue=rng.randrange(-1, 8),
            shift=rng.choice((0, 0, 1, 5, -1, 30)),
            max_msg_nums=rng.choice((32, 3, 1)),
            tags=rng.choice(("", "", "TagA", "TagA||TagB")),
        )
    if drawn < 0.8:
        return QueryKey(
            key=rng.randrange(-1, 8),
            max_num=rng.choice((32, 2)),
            begin_ms=rng.choice((0, 5)),
            window_ms=rng.choice((-1, 20)),
        )
    return OffsetByTime(queue=rng.randrange(-1, 8), record=rng.randrange(20), shift_ms=rng.choice((0, 1, -1)))


def draw_put(rng: random.Random) -> Put:
    """Draw a put of 40 to 1,900 body bytes; a few carry whole records, properties, transactions or IPv6 hosts, are
    delayed, go to light queues, or wait for their answer."""
    rare = rng.random()
    return Put(
        topic=rng.choice(_TOPICS),
        queue_id=rng.randrange(2),
        body_bytes=rng.choice((40, 400, 900, 900, 900, 1400, 1900)),
        fill=rng.randrange(1 << 16),
        body_kind="record" if rare < 0.1 else "zeros" if rare < 0.15 else "random",
        properties=rng.choice(_PROPERTIES),
        sys_flag=0x04 if rare > 0.95 else 0x0C if rare > 0.9 else 0,
        born_v6=0.8 < rare < 0.85,
        store_v6=0.83 < rare < 0.88,
        later=0.2 < rare < 0.27,
    )


def draw_batch(rng: random.Random) -> PutBatch:
    """Draw a batch of two to four messages; a few wait for their answer."""
    members = tuple(
        Member(
            body_bytes=rng.choice((400, 900, 1400)),
            fill=rng.randrange(1 << 16),
            properties=rng.choice(_PROPERTIES[:3]),
        )
        for _ in range(rng.randrange(2, 5))
    )
    return PutBatch(
        topic=rng.choice(_TOPICS),
        queue_id=rng.randrange(2),
        members=members,
        properties=rng.choice(("", "WAIT\x01true\x02CLUSTER\x01C")),
        later=rng.random() < 0.1,
    )
