"""Programs for a store on a failing disk, each with an I/O fault rule.

Their operations touch every kind of file.

The caller adds the end, a crash or an open.
"""

import random
from collections.abc import Iterator

from tornpage.model.operations import AimFault, Clean, Close, CommitOffset, DeleteTopics, Flush, Operation, Put, Step

__all__ = ["draw_fault_rule", "story"]

_WHERE: dict[str, tuple[str, ...]] = {
    "sync-error": ("kind=log", "kind=queue", "kind=index", "kind=checkpoint", "kind=progress", "kind=floor"),
    "sync-lost": ("kind=log", "kind=log", "kind=queue", "kind=index", "kind=checkpoint", "kind=progress"),
    "short-write": ("kind=checkpoint", "kind=progress", "kind=derived-floor", "kind=log", "op=zero"),
    "no-space": ("kind=log", "kind=queue", "kind=progress", "kind=derived-floor", "kind=checkpoint", "op=allocate"),
    "read-error": ("kind=floor", "kind=progress", "kind=queue", "kind=derived-floor", "kind=checkpoint", "kind=index"),
    "directory-sync-error": ("path=config", "path=commitlog", "path=store", "path=consumequeue/*"),
    "rename-error": ("kind=progress", "kind=derived-floor", "path=*.bak"),
    "unlink-error": ("kind=marker", "kind=log", "kind=queue", "kind=progress"),
}
"""Where a fault rule may hit; each of these occurs in the program."""

_FAR_MS = 60_000


def draw_fault_rule(effect: str, rng: random.Random, *, anywhere: bool = False) -> AimFault:
    """Draw a fault rule for files of the program.

    With `anywhere` it hits the first calls that it can hit.
    """
    where = "" if anywhere else rng.choice(_WHERE[effect])
    count = rng.choice(("", "nth=1", "nth=1", "nth=2", "every=2", "probability=0.5"))
    if where and count:
        where = f"{where} and {count}"
    return AimFault(effect, where or "nth=1", seed=rng.randrange(1 << 16))


def story(effect: str, rng: random.Random, *, anywhere: bool) -> Iterator[Operation]:
    """Yield the operations of a program.

    With `anywhere` the rule hits the first possible call, and no operation is left out.
    """
    yield Put(body_bytes=rng.choice((100, 900)), properties="KEYS\x01k1")
    yield CommitOffset(queue=rng.randrange(8))
    yield draw_fault_rule(effect, rng, anywhere=anywhere)
    for operation in (
        Put(body_bytes=rng.choice((100, 2_000))),
        Put(topic="TopicC", queue_id=rng.randrange(4), properties="KEYS\x01k2\x02WAIT\x01false"),
        Step("commit", 1_000),
        Flush(),
        Put(properties="DELAY\x011"),
        Step("reput"),
        Step("schedule", 1_000),
        Step("flush-queues", _FAR_MS),
        Step("progress", _FAR_MS),
        DeleteTopics(in_use=("TopicC",)),
        Put(body_bytes=rng.choice((400, 14_000))),
        Step("allocate"),
        Clean(after_hours=73, manual=True),
    ):
        if anywhere or rng.random() < 0.75:
            yield operation
    if anywhere or rng.random() < 0.4:
        yield Close()
