"""Specify the batches of a listener, and its results (contracts 19, 20, 22, 23).

A concurrent member makes batches of what a pull has brought, at most `size` messages each, and gives them in the order
of the pulls. A batch of a queue that may not run now goes to the end. A failed message is sent back; if that fails, it
runs again alone after 5 s, or is sent back again if its queue is handed over meanwhile.

An orderly member takes up to `size` messages that wait, from one queue after another, and from a queue only without a
batch or a return. After a failure the queue pauses, and the messages wait again. A message that has no tries left is
sent back as a copy. After 60 s of batches in a row a queue rests for 10 ms.

Results of a queue that is dropped count for nothing. Progress is the smallest offset that is not finished.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tornpage.model.consumers.cache import NOTHING, Cache
from tornpage.model.consumers.member.asking import NEVER, Asking, queue_text
from tornpage.model.consumers.member.returning import Pulled, Returning

__all__ = ["Concurrent", "Given", "Orderly", "Source"]

_RETRY_MS, _CONTINUOUS_MS, _REST_MS = 5_000, 60_000, 10
_PAUSES_MS = (10, 30_000)
QueueName = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Source:
    """A queue with its cache. `is_usable` tells whether its lease is young enough.

    `messages` has the life of each cached offset.
    """

    state: str = "ACTIVE"
    is_dropped: bool = False
    is_usable: bool = True
    cache: Cache = field(default_factory=Cache)
    messages: Mapping[int, Pulled] = field(default_factory=dict)
    running: int = 0
    returning: int = 0
    taken_end: int = 0
    progress: int | None = None
    pause_until_ms: int = 0
    since_ms: int | None = None
    """Since when batches of an orderly queue follow each other."""

    def noted(self, progress: int, *, only_up: bool) -> "Source":
        """Note progress, unless there is none or the queue is dropped."""
        if progress == NOTHING or self.is_dropped:
            return self
        if only_up and self.progress is not None and progress <= self.progress:
            return self
        return replace(self, progress=progress)


@dataclass(frozen=True, slots=True)
class Given:
    """A batch of a listener."""

    queue: QueueName
    messages: tuple[Pulled, ...]


Sources = Mapping[QueueName, Source]


@dataclass(frozen=True, slots=True)
class Concurrent:
    """Batches that wait, and messages that run again at a time.

    The delay level of a message that runs again is that of its failed return, None for other batches.
    """

    size: int
    is_broadcasting: bool
    returning: Returning
    ready: tuple[tuple[QueueName, tuple[Pulled, ...], int | None], ...] = ()
    retries: tuple[tuple[int, Pulled, int], ...] = ()

    def submit(self, queue: QueueName, messages: Sequence[Pulled]) -> "Concurrent":
        """Make batches of pulled messages."""
        batches = tuple(
            (queue, tuple(messages[begin : begin + self.size]), None) for begin in range(0, len(messages), self.size)
        )
        return replace(self, ready=(*self.ready, *batches))

    def take(self, sources: Sources, ask: Asking) -> tuple["Concurrent", dict[QueueName, Source], Given | None]:
        """Return the next batch."""
        after, now, later = dict(sources), self, []
        waiting = list(self.ready)
        while waiting:
            queue, messages, level = waiting.pop(0)
            source = after[queue]
            if source.is_dropped:
                continue
            if source.state not in ("ACTIVE", "DRAINING") or not source.is_usable:
                later.append((queue, messages, level))
                continue
            cached = tuple(each for each in messages if _is_cached(source, each))
            if level is not None and source.state == "DRAINING":
                for message in cached:
                    now = replace(now, returning=now.returning.add(message, level, ask))
                after[queue] = replace(source, returning=source.returning + len(cached))
            elif cached:
                end = max(source.taken_end, cached[-1].offset + 1)
                after[queue] = replace(source, running=source.running + 1, taken_end=end)
                return replace(now, ready=(*waiting, *later)), after, Given(queue, cached)
        return replace(now, ready=tuple(later)), after, None

    def finish(
        self, source: Source, given: Given, ask: Asking, *, is_success: bool, ack_index: int | None, level: int
    ) -> tuple["Concurrent", Source]:
        """Take the result of a batch."""
        count = len(given.messages) if ack_index is None else min(len(given.messages), max(0, ack_index + 1))
        done = given.messages[: count if is_success else 0]
        failed = given.messages[len(done) :]
        source = replace(source, running=source.running - 1)
        if self.is_broadcasting:
            if failed:
                ask.finding(f"{queue_text(given.queue)}: {len(failed)} failed messages are dropped")
            return self, _removed(source, given.messages)
        source, now = _removed(source, done), self
        if not source.is_dropped:
            for message in failed:
                now = replace(now, returning=now.returning.add(message, level, ask))
            source = replace(source, returning=source.returning + len(failed))
        return now, source

    def step(self, sources: Sources, now_ms: int, ask: Asking) -> tuple["Concurrent", dict[QueueName, Source], int]:
        """Take the ends of returns, and begin due retries; when the next step is due."""
        after = dict(sources)
        returning, ended, due_ms = self.returning.finished(now_ms, ask)
        retries = list(self.retries)
        for each in ended:
            queue = each.message.queue
            source = after[queue] = replace(after[queue], returning=after[queue].returning - 1)
            if source.is_dropped:
                continue
            if each.is_stored:
                after[queue] = _removed(source, [each.message])
            else:
                again = replace(each.message, times=each.message.times + 1)
                retries.append((now_ms + _RETRY_MS, again, each.level))
                after[queue] = _with_lives(source, [again])
        due = [each for each in retries if each[0] <= now_ms]
        later = tuple(each for each in retries if each[0] > now_ms)
        ready = tuple((message.queue, (message,), level) for _, message, level in due)
        now = replace(self, returning=returning, ready=(*self.ready, *ready), retries=later)
        return now, after, min([due_ms, *(at_ms for at_ms, _, _ in later)])


@dataclass(frozen=True, slots=True)
class Orderly:
    """One batch of a queue at a time.

    `times_max` is how often a message is consumed again, `pause_ms` the usual pause.
    """

    size: int
    is_broadcasting: bool
    times_max: int
    pause_ms: int
    returning: Returning
    last: QueueName | None = None

    def take(self, sources: Sources, now_ms: int) -> tuple["Orderly", dict[QueueName, Source], Given | None]:
        """Return the next batch."""
        after = dict(sources)
        for queue in sorted(sources, key=lambda each: (self.last is None or each <= self.last, each)):
            source = after[queue]
            is_free = not source.running and not source.returning and source.is_usable and not source.is_dropped
            if source.state != "ACTIVE" or not is_free or not source.cache.waiting or now_ms < source.pause_until_ms:
                continue
            if source.since_ms is not None and now_ms > source.since_ms + _CONTINUOUS_MS:
                after[queue] = replace(source, since_ms=None, pause_until_ms=now_ms + _REST_MS)
                continue
            cache, offsets = source.cache.take(self.size)
            since_ms = now_ms if source.since_ms is None else source.since_ms
            after[queue] = replace(source, cache=cache, running=1, since_ms=since_ms)
            given = Given(queue, tuple(source.messages[each] for each in offsets))
            return replace(self, last=queue), after, given
        return self, after, None

    def finish(
        self, source: Source, given: Given, result: str, now_ms: int, ask: Asking, *, asked_ms: int | None, auto: bool
    ) -> tuple["Orderly", Source]:
        """Take the result of a batch: SUCCESS, COMMIT, ROLLBACK, or a failure."""
        source = replace(source, running=source.running - 1)
        if source.is_dropped:
            return self, source
        if not source.cache.waiting:
            source = replace(source, since_ms=None)
        usual_ms = self.pause_ms if asked_ms is None or asked_ms < 0 else asked_ms
        until_ms = now_ms + min(max(usual_ms, _PAUSES_MS[0]), _PAUSES_MS[1])
        if result not in ("SUCCESS", "COMMIT", "ROLLBACK"):
            return self._failed(source, given, until_ms, ask)
        if auto or result == "COMMIT":
            cache, progress = source.cache.commit()
            return self, replace(source, cache=cache).noted(progress, only_up=False)
        if result == "ROLLBACK":
            return self, replace(source, cache=source.cache.rollback(), pause_until_ms=until_ms, since_ms=None)
        return self, source

    def _failed(self, source: Source, given: Given, until_ms: int, ask: Asking) -> tuple["Orderly", Source]:
        again = [replace(each, times=each.times + 1) for each in given.messages if each.times < self.times_max]
        exhausted = [each for each in given.messages if each.times >= self.times_max]
        source = _with_lives(source, again)
        source = replace(source, cache=source.cache.rollback([each.offset for each in again]))
        if again:
            source = replace(source, pause_until_ms=until_ms, since_ms=None)
        if self.is_broadcasting:
            if exhausted:
                ask.finding(f"{queue_text(given.queue)}: {len(exhausted)} failed messages are dropped")
                cache, progress = source.cache.finish_taken([each.offset for each in exhausted])
                source = replace(source, cache=cache).noted(progress, only_up=False)
            return self, source
        now = self
        for message in exhausted:
            now = replace(now, returning=now.returning.add(message, 0, ask, as_copy=True))
        return now, replace(source, returning=source.returning + len(exhausted))

    def step(self, sources: Sources, now_ms: int, ask: Asking) -> tuple["Orderly", dict[QueueName, Source], int]:
        """Take the ends of returns; when the next step or batch is due."""
        after = dict(sources)
        returning, ended, due_ms = self.returning.finished(now_ms, ask)
        for each in ended:
            queue = each.message.queue
            source = after[queue] = replace(after[queue], returning=after[queue].returning - 1)
            if source.is_dropped:
                continue
            if each.is_stored:
                cache, progress = source.cache.finish_taken([each.message.offset])
                after[queue] = replace(source, cache=cache).noted(progress, only_up=False)
                continue
            source = _with_lives(source, [replace(each.message, times=each.message.times + 1)])
            pause_ms = min(max(self.pause_ms, _PAUSES_MS[0]), _PAUSES_MS[1])
            after[queue] = replace(source, cache=source.cache.rollback([each.message.offset]),
                                   pause_until_ms=now_ms + pause_ms, since_ms=None)  # fmt: skip
        pauses = [each.pause_until_ms for each in after.values() if each.cache.waiting and each.pause_until_ms > now_ms]
        return replace(self, returning=returning), after, min([due_ms, *pauses, NEVER])


def _is_cached(source: Source, message: Pulled) -> bool:
    is_there = message.offset in source.cache.waiting
    return is_there and source.messages[message.offset].life == message.life


def _removed(source: Source, messages: Sequence[Pulled]) -> Source:
    cache, progress = source.cache.remove([each.offset for each in messages])
    return replace(source, cache=cache).noted(progress, only_up=True)


def _with_lives(source: Source, messages: Sequence[Pulled]) -> Source:
    return replace(source, messages={**source.messages, **{each.offset: each for each in messages}})
