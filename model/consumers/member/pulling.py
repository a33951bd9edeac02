"""Specify how a member pulls one queue (contracts 16, 19, 21).

1. One request at a time is alive, and it carries the progress. It asks for what fits into the cache, `batch` at most.
2. No request is sent while the member is paused (`paused_ms` until the next look), while the cache is full (`full_ms`),
   and while the lease is not usable (`failed_ms`). A cache is full too until it has fewer messages than when a pulled
   message did not fit.
3. Messages that the subscription wants are cached as far as they fit; the next pull begins at the first that did not.
   The cache of an empty queue without a wanted message has its next offset as progress.
4. The next pull follows `interval_ms` after messages, at once after a wait of 50 ms or a higher offset, and otherwise
   after a pause that grows from 50 ms to a second.
5. After an offset outside the queue its bounds are asked for. Below them the pull goes on at the minimum, and that is
   the progress of an empty cache. Above them the numbers of the queue have restarted: it begins again. Both are
   findings.
6. A refusal as the lease of a former owner loses the queue. After another one, and without an answer, the pull is
   repeated after `failed_ms`. Each refusal is a finding.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tornpage.model.consumers.cache import Cache, Limits, accepted, room
from tornpage.model.consumers.member.asking import NEVER, Ask, Asking, Sent, queue_text

__all__ = ["Place", "Pulling"]

_FRUITLESS_MS, _FRUITLESS_MS_MAX = 50, 1_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a member is in a queue.

    `submitted` are offsets and topics of the messages that the last step has given to the listener.
    """

    state: str = "ACTIVE"
    is_usable: bool = True
    is_dropped: bool = False
    lease: tuple[str, int] | None = None
    cache: Cache = field(default_factory=Cache)
    next_offset: int = 0
    max_offset: int = 0
    progress: int | None = None
    pulled_ms: int = 0
    wants_restart: bool = False
    submitted: tuple[tuple[int, str], ...] = ()

    def noted(self, offset: int) -> "Place":
        """Note progress that is not below the present one, unless something is cached."""
        is_higher = self.progress is None or offset > self.progress
        return replace(self, progress=offset) if not self.cache.count and is_higher else self


@dataclass(frozen=True, slots=True)
class Pulling:
    """The pulls of a queue. `wanted` are the tags of the subscription, empty for all messages."""

    group: str
    queue: tuple[str, str, int]
    subscription: tuple[str, str, str]
    wanted: frozenset[str]
    is_broadcasting: bool
    batch: int
    hold_ms: int
    timeout_ms: int
    bounds_ms: int
    interval_ms: int
    paused_ms: int
    full_ms: int
    failed_ms: int
    sent: Sent | None = None
    pull_ms: int = 0
    """When the last pull was sent."""
    due_ms: int = 0
    fruitless: int = 0
    full_count: int | None = None

    def step(
        self, place: Place, limits: Limits, now_ms: int, ask: Asking, *, is_paused: bool
    ) -> tuple["Pulling", Place, int]:
        """Take the answer and send the next request; when the next step is due."""
        place = replace(place, submitted=())
        if place.state != "ACTIVE":
            return replace(self, sent=None), place, NEVER
        now = self
        if now.sent is not None:
            outcome = now.sent.outcome(now_ms)
            if outcome is None:
                return now, place, now.sent.due_ms(now_ms)
            before, now = now.sent.ask, replace(now, sent=None)
            if before.kind == "Pull" and before.about[2] != place.next_offset:
                now = replace(now, due_ms=now_ms)  # the offset has moved while the request was under way
            else:
                now, place = now._taken(outcome, place, limits, now_ms, ask)
        if place.state != "ACTIVE" or place.wants_restart:
            return now, place, now_ms
        if now.sent is None and now.due_ms <= now_ms:
            now, place = now._asked(place, limits, now_ms, ask, is_paused=is_paused)
        return now, place, now.due_ms if now.sent is None else now.sent.due_ms(now_ms)

    def _asked(
        self, place: Place, limits: Limits, now_ms: int, ask: Asking, *, is_paused: bool
    ) -> tuple["Pulling", Place]:
        place = replace(place, pulled_ms=now_ms)
        count = room(place.cache, limits, place.next_offset)
        if self.full_count is not None and place.cache.count >= self.full_count:
            count = 0
        waits_ms = self.paused_ms if is_paused else self.full_ms if not count else self.failed_ms
        if is_paused or not count or not place.is_usable:
            return replace(self, due_ms=now_ms + waits_ms), place
        progress = None if self.is_broadcasting else place.progress or None
        about = (
            self.group, self.queue, place.next_offset, self.subscription, min(count, self.batch), self.hold_ms,
            progress, place.lease,
        )  # fmt: skip
        sent = ask(Ask(self.queue[1], "Pull", self.timeout_ms, about))
        return replace(self, sent=sent, pull_ms=now_ms), place

    def _taken(
        self, outcome: Sequence[Any], place: Place, limits: Limits, now_ms: int, ask: Asking
    ) -> tuple["Pulling", Place]:
        name, failed = queue_text(self.queue), replace(self, due_ms=now_ms + self.failed_ms)
        match outcome:
            case ("Pulled", "OFFSET_ILLEGAL", _, _, _, _):
                return replace(self, sent=ask(Ask(self.queue[1], "QueryBounds", self.bounds_ms, (self.queue,)))), place
            case ("Pulled", _, following, _, end, messages):
                return self._found(place, limits, now_ms, messages, following=following, end=end)
            case ("Bounds", least, end):
                if place.next_offset > end:
                    ask.finding(f"{name}: offset {place.next_offset}")
                    return self, replace(place, wants_restart=True)
                if place.next_offset >= least:
                    return failed, place
                ask.finding(f"{name}: offset {place.next_offset}")
                return self, replace(place, next_offset=least).noted(least)
            case ("Refused", "FENCED"):
                ask.finding(name)
                return self, replace(place, state="LOST", is_dropped=True)
            case ("Refused", _):
                ask.finding(name)
        return failed, place

    def _found(
        self,
        place: Place,
        limits: Limits,
        now_ms: int,
        messages: Sequence[tuple[int, int, str, str]],
        *,
        following: int,
        end: int,
    ) -> tuple["Pulling", Place]:
        """Cache what is wanted and fits.

        Messages have their offset, the bytes of their body, their tag, and the topic that a copy is for. A message of a
        retry topic has the latter for the listener.
        """
        asked = place.next_offset
        wanted = {
            offset: size
            for offset, size, tag, _ in messages
            if offset >= asked and (not self.wanted or tag in self.wanted)
        }
        count = accepted(place.cache, limits, wanted)
        fits, others = dict(list(wanted.items())[:count]), list(wanted)[count:]
        cache, _ = place.cache.put(fits) if fits else (place.cache, False)
        is_retry = self.queue[0] == f"%RETRY%{self.group}"
        topics = {offset: original for offset, _, _, original in messages if original and is_retry}
        submitted = tuple((offset, topics.get(offset, self.queue[0])) for offset in fits)
        next_offset = others[0] if others else max(asked, following)
        after = replace(place, cache=cache, max_offset=end, next_offset=next_offset, submitted=submitted)
        if not fits:
            after = after.noted(next_offset)
        full_count = place.cache.count + len(fits) if others else None
        if fits:
            pause_ms, fruitless = self.interval_ms, 0
        elif next_offset > asked or now_ms - self.pull_ms >= _FRUITLESS_MS:
            pause_ms, fruitless = 0, 0
        else:
            fruitless = self.fruitless + 1
            pause_ms = min(_FRUITLESS_MS * 2 ** min(fruitless - 1, 5), _FRUITLESS_MS_MAX)
        return replace(self, full_count=full_count, fruitless=fruitless, due_ms=now_ms + pause_ms), after
