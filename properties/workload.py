"""The standard workload of a campaign: what producers and operators do, drawn from a seed.

Three log files of 16 KiB, 40 records or more, three queues (docs/contract.md, "Campaigns").
"""

import random

from properties.case import Close, FailSync, Flush, Get, Open, Operation, Put, Settings

__all__ = ["draw_operation", "draw_settings"]

_TOPICS = ("TopicA", "TopicB", "%RETRY%group")


def draw_settings(base: Settings, rng: random.Random) -> Settings:
    """Vary what a campaign may vary: flush mode and checksum kind."""
    return Settings(
        file_bytes=base.file_bytes,
        record_bytes_max=base.record_bytes_max,
        sync_flush=rng.random() < 0.5,
        trailer=rng.random() < 0.8,
        files_max=base.files_max,
        disk=base.disk,
        bug=base.bug,
    )


def draw_operation(rng: random.Random, *, closed: bool) -> Operation:
    """Draw the next operation of a store that is open or closed."""
    if closed:
        return Open()
    drawn = rng.random()
    if drawn < 0.05:
        return Flush()
    if drawn < 0.12:
        return Get(record=rng.randrange(64), shift=rng.choice((0, 0, 1, -1, 88, 104, 112, 180)))
    if drawn < 0.125:
        return Close()
    if drawn < 0.13:
        return FailSync()
    return draw_put(rng)


def draw_put(rng: random.Random) -> Put:
    """Draw a put of 40 to 1,900 body bytes; a few carry whole records, properties, transactions or IPv6 hosts."""
    rare = rng.random()
    return Put(
        topic=rng.choice(_TOPICS),
        queue_id=rng.randrange(2),
        body_bytes=rng.choice((40, 400, 900, 900, 900, 1400, 1900)),
        fill=rng.randrange(1 << 16),
        body_kind="record" if rare < 0.1 else "zeros" if rare < 0.15 else "random",
        properties=rng.choice(("", "KEYS\x01k1 k2\x02TAGS\x01TagA", "TAGS\x01TagB", "WAIT\x01false")),
        sys_flag=0x04 if rare > 0.95 else 0x0C if rare > 0.9 else 0,
        born_v6=0.8 < rare < 0.85,
        store_v6=0.83 < rare < 0.88,
    )
