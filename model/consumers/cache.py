"""Specify the cache of one queue at a member, and its limits (spec: consumers, 3 and 4).

A cache has the messages that were pulled and are not finished. An orderly listener takes some of them. Each function
returns the next cache, and with it the progress where the operation has one. Progress is the smallest offset that is
not finished.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["NOTHING", "Cache", "Limits", "accepted", "limits_of", "room"]

NOTHING = -1
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Cache:
    """The sizes of bodies by offset.

    `waiting` are those of messages that wait, `taken` of those that an orderly listener has.
    `last` is the highest offset that was put. `is_consuming` is true from the first message until a take finds none.
    """

    waiting: Mapping[int, int] = field(default_factory=dict)
    taken: Mapping[int, int] = field(default_factory=dict)
    last: int = 0
    is_consuming: bool = False

    @property
    def count(self) -> int:
        """The number of messages."""
        return len(self.waiting) + len(self.taken)

    @property
    def size(self) -> int:
        """The bytes of all bodies."""
        return sum(self.waiting.values()) + sum(self.taken.values())

    @property
    def span(self) -> int:
        """The difference of the highest and the lowest offset that waits."""
        return max(self.waiting) - min(self.waiting) if self.waiting else 0

    def put(self, messages: Mapping[int, int]) -> tuple["Cache", bool]:
        """Cache messages; whether consumption has to begin."""
        new = {offset: size for offset, size in messages.items() if offset not in self.waiting}
        waiting = {**self.waiting, **new}
        starts = bool(waiting) and not self.is_consuming
        last = max([self.last, *new])
        return replace(self, waiting=waiting, last=last, is_consuming=self.is_consuming or starts), starts

    def remove(self, offsets: Sequence[int]) -> tuple["Cache", int]:
        """Remove finished messages."""
        if not self.waiting:
            return self, NOTHING
        waiting = {offset: size for offset, size in self.waiting.items() if offset not in offsets}
        return replace(self, waiting=waiting), min(waiting, default=self.last + 1)

    def take(self, count: int) -> tuple["Cache", tuple[int, ...]]:
        """Take the first messages that wait."""
        chosen = tuple(sorted(self.waiting))[:count]
        taken = {**self.taken, **{offset: self.waiting[offset] for offset in chosen}}
        waiting = {offset: size for offset, size in self.waiting.items() if offset not in chosen}
        return replace(self, waiting=waiting, taken=taken, is_consuming=self.is_consuming and bool(chosen)), chosen

    def commit(self) -> tuple["Cache", int]:
        """Finish all that is taken."""
        return replace(self, taken={}), max(self.taken) + 1 if self.taken else NOTHING

    def rollback(self, offsets: Sequence[int] | None = None) -> "Cache":
        """Put back what is taken, or some of it."""
        back = {offset: size for offset, size in self.taken.items() if offsets is None or offset in offsets}
        taken = {offset: size for offset, size in self.taken.items() if offset not in back}
        return replace(self, waiting={**self.waiting, **back}, taken=taken)

    def finish_taken(self, offsets: Sequence[int]) -> tuple["Cache", int]:
        """Finish some that are taken."""
        taken = {offset: size for offset, size in self.taken.items() if offset not in offsets}
        return replace(self, taken=taken), min([*self.waiting, *taken], default=self.last + 1)

    def cut(self, offset: int) -> tuple["Cache", int | None]:
        """Forget what waits from an offset on; the first offset of it."""
        gone = [each for each in self.waiting if each >= offset]
        if not gone:
            return self, None
        waiting = {each: size for each, size in self.waiting.items() if each < offset}
        return replace(self, waiting=waiting, last=min(self.last, min(gone) - 1)), min(gone)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a member caches of one queue at most. A span of None has no limit."""

    count: int
    size: int
    span: int | None


def limits_of(settings: Mapping[str, Any], queues: int) -> Limits:
    """Return the limits of each queue of a member that holds some queues.

    A limit for a topic is divided among them, and replaces the one for a queue. No share of it is below 1.
    """
    count, mib = settings["pull_threshold_for_queue"], settings["pull_threshold_size_for_queue"]
    by_topic = settings["pull_threshold_for_topic"], settings["pull_threshold_size_for_topic"]
    if queues and by_topic[0] != -1:
        count = max(1, by_topic[0] // queues)
    if queues and by_topic[1] != -1:
        mib = max(1, by_topic[1] // queues)
    return Limits(count, mib * _MIB, None if settings["orderly"] else settings["consume_concurrently_max_span"])


def room(cache: Cache, limits: Limits, next_offset: int) -> int:
    """Return how many messages may be pulled from an offset on."""
    if cache.size >= limits.size:
        return 0
    if limits.span is not None and cache.waiting and next_offset - min(cache.waiting) > limits.span:
        return 0
    return max(0, limits.count - cache.count)


def accepted(cache: Cache, limits: Limits, pulled: Mapping[int, int]) -> int:
    """Return how many of the first pulled messages fit. An empty cache takes one of any size."""
    found = 0
    for offset, size in sorted(pulled.items()):
        held = replace(cache, waiting={**cache.waiting, offset: size})
        is_full = held.count > limits.count or held.size > limits.size
        if limits.span is not None:
            is_full = is_full or offset - min(held.waiting) > limits.span
        if is_full and held.count > 1:
            return found
        cache, found = held, found + 1
    return found
