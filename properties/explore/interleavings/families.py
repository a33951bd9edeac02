"""Draw scenarios by family; each is small and makes some threads of a store meet.

A log file holds a few messages, so that puts roll over. A queue file holds few units as well.
"""

from collections.abc import Callable, Sequence
from random import Random

from tornpage.model.operations import (
    AskMaximum,
    AskMinimum,
    Close,
    Commit,
    DeleteTopics,
    Flush,
    GetRecord,
    Member,
    Pull,
    Put,
    PutBatch,
    Query,
    QueryProgress,
    Step,
)
from tornpage.model.operations import InterleavedOperation as Operation
from tornpage.properties.explore.interleavings.scenario import Scenario
from tornpage.properties.program.case import Settings

__all__ = ["FAMILIES", "SMALLEST", "Family", "topic_deletion"]

Family = Callable[[Random], Scenario]

_SMALL = Settings(file_bytes=1024, queue_units=3, index=False)
_LARGE_BYTES = 800
_NAMED = "INNER_MULTI_DISPATCH\x01%LMQ%a"
_OVERTAKEN_SHARE = 0.5
_FORCIBLY_PERCENT = 86
"""Above `disk_space_clean_forcibly_ratio`, so that files are deleted whatever their age."""


def _put(rng: Random, fill: int, topics: Sequence[str] = ("T", "T", "U")) -> Put | PutBatch:
    """Return a put; `fill` makes its body differ from all others."""
    topic = rng.choice(topics)
    if rng.random() < 0.2:
        return PutBatch(topic=topic, members=tuple(Member(20, fill + 100 * n) for n in range(rng.randint(1, 2))))
    return Put(topic=topic, body_bytes=rng.choice((10, 40, 300, _LARGE_BYTES)), fill=fill)


def _producers(rng: Random, count: int, topics: Sequence[str] = ("T", "T", "U")) -> list[tuple[Operation, ...]]:
    return [
        tuple(_put(rng, 10 * producer + number, topics) for number in range(rng.randint(1, 2)))
        for producer in range(count)
    ]


def _reader(rng: Random, topics: Sequence[str] = ("T", "T", "U"), count: int = 3) -> tuple[Operation, ...]:
    """Return a task that reads, mostly one queue at the position returned by its last pull."""
    topic = rng.choice(topics)
    menu: tuple[Operation, ...] = (
        Pull(topic=topic),
        Pull(topic=topic, max_msg_nums=1),
        Pull(topic=topic, offset=rng.randint(0, 2)),
        AskMaximum(topic=topic),
        AskMinimum(topic=topic),
        GetRecord(record=-1),
        GetRecord(record=rng.randint(0, 3)),
    )
    return tuple(rng.choice(menu) for _ in range(rng.randint(2, count)))


def _written(rng: Random, count: int) -> tuple[Operation, ...]:
    return tuple(_put(rng, 1000 + number) for number in range(rng.randint(0, count)))


def producers_and_readers(rng: Random) -> Scenario:
    """Combine puts, dispatch, and readers of log and queues."""
    tasks = (*_producers(rng, 2), _reader(rng), _reader(rng, count=2))
    return Scenario("producers and readers", _SMALL, _written(rng, 2), tasks)


def sync_producers(rng: Random) -> Scenario:
    """Combine puts that wait for their flush by group commit with a flush or a reader."""
    tasks = (*_producers(rng, rng.randint(2, 3)), rng.choice(((Flush(),), _reader(rng, count=2))))
    settings = Settings(file_bytes=1024, queue_units=3, index=False, sync_flush=True)
    return Scenario("producers that wait for the disk", settings, _written(rng, 1), tasks, ("reput", "group-commit"))


def pool(rng: Random) -> Scenario:
    """Combine puts into buffers, commits, flushes, and readers of what is committed."""
    settings = Settings(file_bytes=1024, queue_units=3, index=False, pool_buffers=6)
    menu: tuple[Operation, ...] = (Step("commit"), Step("commit"), Flush(), Step("flush"))
    steps = tuple(rng.choice(menu) for _ in range(3))
    reader = (GetRecord(record=rng.randint(0, 2)), *_reader(rng, count=2))
    return Scenario("transient store pool", settings, _written(rng, 1), (*_producers(rng, 2), steps, reader))


def preallocated(rng: Random) -> Scenario:
    """Combine puts that roll over with the service that creates log files ahead.

    Commits and saves of progress run beside them.
    """
    settings = Settings(file_bytes=1024, queue_units=3, index=False, files_ahead=1, pool_buffers=rng.choice((0, 6)))
    large = tuple(Put(topic="T", body_bytes=_LARGE_BYTES, fill=10 + number) for number in range(rng.randint(1, 2)))
    menu: tuple[Operation, ...] = (Flush(), Step("commit"), Step("progress")) if settings.pool_buffers else (Flush(),)
    others = (rng.choice(menu), Commit(offset=rng.randint(0, 2)))
    tasks = (large, *_producers(rng, 1), others, _reader(rng, count=2))
    return Scenario("preallocated files", settings, _written(rng, 1), tasks, ("reput", "allocate"))


def flushes(rng: Random) -> Scenario:
    """Combine puts with flushes of log and queues: by hand, by timer, by two at once."""
    menu: tuple[Operation, ...] = (Flush(), Step("flush"), Step("flush-queues"))
    steps = tuple(rng.choice(menu) for _ in range(2))
    tasks = (*_producers(rng, 2), steps, (Flush(), *_reader(rng, count=2)))
    return Scenario("flushes beside puts", _SMALL, _written(rng, 1), tasks)


def clean_up(rng: Random) -> Scenario:
    """Delete the head of the log during reads, dispatch, flushes and puts."""
    full = tuple(Put(topic=rng.choice("TTU"), body_bytes=_LARGE_BYTES, fill=1000 + n) for n in range(rng.randint(2, 4)))
    menu: tuple[Operation, ...] = (Step("clean"), Step("clean"), Step("flush-queues"))
    cleaner = tuple(rng.choice(menu) for _ in range(3))
    getter = (GetRecord(record=rng.randint(0, 3)), *_reader(rng, count=2))
    tasks = (cleaner, getter, _reader(rng), *_producers(rng, 1), (Flush(),))
    before: tuple[Operation, ...] = (*full, Step("reput"), Flush())
    return Scenario("clean-up", _SMALL, before, tasks, percent=_FORCIBLY_PERCENT)


def topic_deletion(rng: Random) -> Scenario:
    """Delete a topic and put to it again during dispatch, flushes and reads."""
    puts = (Put(fill=1000), Put(topic="U", fill=1001), Put(fill=1002))
    before: tuple[Operation, ...] = (*puts, *([Step("reput")] * rng.randint(0, 1)))
    deletion = DeleteTopics(in_use=rng.choice((("U",), ("U",), ())))
    deleter: tuple[Operation, ...] = (deletion, *([Step("flush-queues")] * rng.randint(0, 1)))
    tasks = (deleter, *_producers(rng, 1, "T"), _reader(rng, "T"), rng.choice((_reader(rng, "TU", 2), (Flush(),))))
    return Scenario("topic deletion", _SMALL, before, tasks)


def consumers(rng: Random) -> Scenario:
    """Let consumers pull and commit during puts, dispatch, deletion of their topic and saves."""
    puts = (Put(fill=1000), Put(fill=1001))
    before: tuple[Operation, ...] = (*puts, Step("reput"), Pull(), Commit(offset=rng.randint(0, 2)))
    menu: tuple[Operation, ...] = (Pull(), Commit(), Commit(offset=rng.randint(0, 4)), QueryProgress(), AskMaximum())
    readers = [(Pull(), *(rng.choice(menu) for _ in range(rng.randint(1, 3)))) for _ in range(2)]
    other = rng.choice(((DeleteTopics(),), (DeleteTopics(in_use=("U",)),), (Step("progress"),)))
    tasks = (other, *readers, *_producers(rng, 1, "T"))
    return Scenario("consumers", _SMALL, before, tasks)


def light_queues(rng: Random) -> Scenario:
    """Combine messages of several topics in one light queue with its readers."""
    settings = Settings(file_bytes=4096, queue_units=3, index=False, multi_dispatch=True, light_queues=True)
    producers = [
        tuple(Put(topic=topic, properties=_NAMED, fill=10 * number + n) for n in range(rng.randint(1, 2)))
        for number, topic in enumerate("TU")
    ]
    return Scenario("light queues", settings, (), (*producers, _reader(rng, ("%LMQ%a", "T"))))


def key_queries(rng: Random) -> Scenario:
    """Put, index, flush, expire and query messages with a key."""
    settings = Settings(file_bytes=1024, queue_units=3, index=True, index_slots=2, index_entries=4)

    def keyed(fill: int, body_bytes: int) -> Put:
        return Put(body_bytes=body_bytes, fill=fill, properties=f"KEYS\x01{rng.choice(('k', 'k', 'l', 'k l'))}")

    producers = [
        tuple(keyed(10 * number + n, rng.choice((0, 300, _LARGE_BYTES - 100))) for n in range(rng.randint(1, 2)))
        for number in range(2)
    ]

    def full(count: int) -> tuple[Operation, ...]:
        return (*(keyed(1000 + n, _LARGE_BYTES - 100) for n in range(count)), Step("reput"), Flush())

    if rng.random() < _OVERTAKEN_SHARE:
        # everything that can overtake a query, in one thread: one message arrives and another is deleted
        overtaking = (keyed(2000, 0), Step("reput"), Step("clean"))
        tasks: tuple[tuple[Operation, ...], ...] = ((Query(),), overtaking)
        return Scenario("key queries", settings, full(2), tasks, (), percent=_FORCIBLY_PERCENT)
    before = full(rng.randint(0, 3))
    readers = [tuple(Query(max_num=rng.choice((1, 2, 32))) for _ in range(rng.randint(1, 3))) for _ in range(2)]
    others: tuple[Operation, ...] = (rng.choice((Step("clean"), Step("flush-queues"), DeleteTopics())), Step("clean"))
    return Scenario("key queries", settings, before, (*producers, *readers, others), percent=_FORCIBLY_PERCENT)


def close(rng: Random) -> Scenario:
    """Close the store during puts, flushes and reads."""
    settings = Settings(
        file_bytes=1024, queue_units=3, index=False, sync_flush=rng.random() < 0.5, pool_buffers=rng.choice((0, 0, 6))
    )
    services = ("reput", "group-commit") if settings.sync_flush else ("reput",)
    others = rng.choice(((Flush(),), (Close(),), (Step("flush-queues"),)))
    tasks = ((Close(),), *_producers(rng, 2), _reader(rng, count=2), others)
    return Scenario("close", settings, _written(rng, 2), tasks, services)


FAMILIES: tuple[Family, ...] = (
    producers_and_readers,
    sync_producers,
    pool,
    preallocated,
    flushes,
    clean_up,
    topic_deletion,
    consumers,
    light_queues,
    key_queries,
    close,
)

SMALLEST = Scenario("two puts and a pull", _SMALL, (), ((Put(),), (Put(fill=1),), (Pull(),)), ())
"""So small that its interleavings at locks can be tried one after the other."""
