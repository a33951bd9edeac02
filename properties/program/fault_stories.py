"""Programs for a store on a failing disk, each with an I/O fault rule.

Their operations touch every kind of file.

The caller adds the end, a crash or an open.
"""

import random
from collections.abc import Iterator, Mapping

from tornpage.model.operations import AimFault, Clean, Close, CommitOffset, DeleteTopics, Flush, Operation, Put, Step

__all__ = ["CALLS", "PLACES", "draw_fault_rule", "fault_rule_at", "story"]

_NAMED_DIRECTORIES = ("path=config", "path=commitlog", "path=store", "path=consumequeue/*")

PLACES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "log": dict.fromkeys(("sync-error", "sync-lost", "short-write", "no-space", "unlink-error"), ("kind=log",)),
    "queue": dict.fromkeys(("sync-error", "sync-lost", "no-space", "read-error", "unlink-error"), ("kind=queue",)),
    "extension": dict.fromkeys(("sync-error", "sync-lost", "no-space"), ("kind=extension",)),
    "index": dict.fromkeys(("sync-error", "sync-lost", "read-error"), ("kind=index",)),
    "checkpoint": dict.fromkeys(
        ("sync-error", "sync-lost", "short-write", "no-space", "read-error"), ("kind=checkpoint",)
    ),
    "progress": dict.fromkeys(
        ("sync-error", "sync-lost", "short-write", "no-space", "read-error", "rename-error", "unlink-error"),
        ("kind=progress",),
    ),
    "backup": {"rename-error": ("path=*.bak",)},
    "floor": dict.fromkeys(("sync-error", "read-error"), ("kind=floor",)),
    "derived-floor": dict.fromkeys(("short-write", "no-space", "read-error", "rename-error"), ("kind=derived-floor",)),
    "marker": {"unlink-error": ("kind=marker",)},
    "new_file": {"short-write": ("op=zero",), "no-space": ("op=allocate",)},
    "directory": {"directory-sync-error": _NAMED_DIRECTORIES},
}
"""Where a fault rule may hit, by place and effect. Each of these occurs in the program, apart from the extension, which
few stores have."""

CALLS: Mapping[str, str] = {
    "first": "nth=1",
    "second": "nth=2",
    "every_second": "every=2",
    "half": "probability=0.5",
    "all": "",
}
"""Which of the calls a fault rule hits. The last one lasts until the next open, over new files too."""

_CALLS_DRAWN = ("", "nth=1", "nth=1", "nth=2", "every=2", "probability=0.5")
_FAR_MS = 60_000


def draw_fault_rule(effect: str, rng: random.Random, *, anywhere: bool = False) -> AimFault:
    """Draw a fault rule for files of the program.

    With `anywhere` it hits the first calls that it can hit.
    """
    places = [text for name, effects in PLACES.items() if name != "extension" for text in effects.get(effect, ())]
    where, count = rng.choice(places), rng.choice(_CALLS_DRAWN)
    return AimFault(effect, "nth=1" if anywhere else _both(where, count), seed=rng.randrange(1 << 16))


def fault_rule_at(effect: str, place: str, calls: str, rng: random.Random) -> AimFault:
    """Return the fault rule of a place and of some of its calls.

    Their names are in `PLACES` and `CALLS`.
    """
    return AimFault(effect, _both(rng.choice(PLACES[place][effect]), CALLS[calls]), seed=rng.randrange(1 << 16))


def _both(where: str, count: str) -> str:
    return f"{where} and {count}" if count else where


def story(rule: AimFault, rng: random.Random, *, whole: bool) -> Iterator[Operation]:
    """Yield the operations of a program with a fault rule.

    Some are left out, unless it is the `whole` program.
    """
    yield Put(body_bytes=rng.choice((100, 900)), properties="KEYS\x01k1")
    yield CommitOffset(queue=rng.randrange(8))
    yield rule
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
        if whole or rng.random() < 0.75:
            yield operation
    if whole or rng.random() < 0.4:
        yield Close()
