"""Of reads: pulls, queries by key, and the index."""

from model.operations import (
    Close,
    Crash,
    Damage,
    FailSync,
    Flush,
    GetMessage,
    Member,
    OffsetByTime,
    Open,
    Put,
    PutBatch,
    QueryKey,
    RefuseFile,
    Step,
)
from properties.planted.smallest.program import Program
from properties.program.case import Settings

__all__ = ["PROGRAMS"]

REPUT = Step(service="reput")
FLUSH_QUEUES = Step(service="flush-queues", after_ms=60_000)
POISONED = (Put(), Flush(), Put(), REPUT, FailSync(), Flush())
EARLIER_KEYED = Put(properties="KEYS\x01Aa", advance_ms=-1500)
KEYED, OTHER = Put(properties="KEYS\x01Aa"), Put(properties="KEYS\x01BB")
LATER_KEYED = Put(properties="KEYS\x01Aa", advance_ms=3000)
MANY = PutBatch(members=(Member(),) * 401)
TWO_FILES = Settings(index_entries=2)
MANY_FIT = Settings(file_bytes=65536, queue_units=60, index=False)

PROGRAMS: dict[str, Program] = {
    "RMQ-B05": (Settings(), (Put(), FailSync(), Flush(), REPUT)),
    "RMQ-B35": (Settings(), (*POISONED, GetMessage(shift=1))),
    "RMQ-B37": (Settings(), (Put(), Put(advance_ms=500), REPUT, OffsetByTime(shift_ms=1))),
    "any-of-equal-times": (Settings(), (Put(), Put(advance_ms=0), REPUT, OffsetByTime())),
    "last-for-ever": (Settings(), (Put(), REPUT, OffsetByTime(shift_ms=1))),
    "RMQ-B38": (Settings(), (GetMessage(queue=-1),)),
    "RMQ-B43": (MANY_FIT, (MANY, MANY, REPUT, GetMessage(max_msg_nums=1000, tags="TagA"))),
    "RMQ-B44": (Settings(), (Put(), REPUT, GetMessage(shift=2))),
    "RMQ-B45": (MANY_FIT, (MANY, MANY, REPUT, GetMessage(tags="TagA"))),
    "RMQ-B46": (Settings(), (Put(), Put(), REPUT, GetMessage(max_msg_nums=1))),
    "one-queue-file": (Settings(queue_units=1), (Put(), Put(), REPUT, GetMessage())),
    "one-message-at-least": (Settings(), (Put(), REPUT, GetMessage(max_msg_nums=0))),
    "pulls-behind-the-end": (Settings(), (*POISONED, GetMessage())),
    "units-believed": (Settings(), (Put(), Put(topic="U"), Damage(record=1, beside="queue"))),
    "stops-at-damage": (Settings(), (Put(), Put(), Damage())),
    "equal-hashes": (Settings(), (KEYED, OTHER, REPUT, QueryKey())),
    "limit-before-the-key": (Settings(), (KEYED, OTHER, REPUT, QueryKey(max_num=1))),
    "rounds-overlap": (Settings(), (KEYED, REPUT, QueryKey())),
    "RMQ-B52": (Settings(), (QueryKey(max_num=1 << 60),)),
    "RMQ-B47": (Settings(), (Put(), REPUT, OffsetByTime())),
    "RMQ-B47-IPv6": (Settings(), (Put(born_v6=True), REPUT, OffsetByTime())),
    "RMQ-B48": (Settings(), (KEYED, Close())),
    "RMQ-B49": (Settings(), (KEYED, KEYED, REPUT, Crash(kill=True))),
    "RMQ-B51": (Settings(), (Put(), REPUT, KEYED, RefuseFile(), REPUT)),
    "inherited-time": (TWO_FILES, (KEYED, LATER_KEYED, REPUT, QueryKey(begin_ms=3000, window_ms=1000))),
    "whole-seconds": (Settings(), (KEYED, Put(properties="KEYS\x01Aa", advance_ms=500), REPUT, QueryKey(begin_ms=1))),
    "ends-at-an-older-time": (
        Settings(), (KEYED, LATER_KEYED, EARLIER_KEYED, REPUT, QueryKey(begin_ms=2000)),
    ),
    "one-name-a-millisecond": (TWO_FILES, (KEYED, KEYED, REPUT)),
    "equal-is-not-skipped": (
        Settings(index_entries=3),
        (KEYED, REPUT, Put(properties="KEYS\x01Aa k"), RefuseFile(), REPUT, REPUT, Close()),
    ),
    "newest-index-file-dropped": (Settings(), (KEYED, Close(), Open())),
    "index-names-not-synced": (Settings(), (KEYED, Close())),
}  # fmt: skip
