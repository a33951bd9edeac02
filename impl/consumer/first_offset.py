"""Where a group begins in a queue.

1. Stored progress, if there is any. An error of the query is not "none": the query is repeated. RocketMQ takes every
   refusal for "none", and then skips the backlog or repeats it.
2. Without progress: a queue of the retry topic, and a queue that was added after the group began with the topic, begin
   at their first message. `consume_from_where` is for all other queues.
3. This first offset is stored at once for all queues of the topic, when the topic is subscribed. So messages that
   arrive between the subscription and the first pull of a queue are not skipped.

All queues of a topic at one broker are decided together, before one of them is stored. Otherwise the first one would
make the others look like queues that were added later. Source: `RebalancePushImpl.computePullFromWhere`.
"""

from collections.abc import Iterable

from tornpage.impl.consumer.client import NEVER, Client
from tornpage.impl.consumer.connection import Call, CallError
from tornpage.impl.consumer.holding import Holding
from tornpage.impl.consumer.offset_store import OffsetStore
from tornpage.impl.consumer.queues import RETRY_PREFIX, MessageQueue
from tornpage.impl.consumer.requests import (
    Answer,
    Bounds,
    OffsetFound,
    OffsetStatus,
    OffsetUpdated,
    QueryBounds,
    SearchOffset,
)
from tornpage.impl.consumer.settings import ConsumeFromWhere

__all__ = ["FirstOffsets", "first_offset", "is_nothing_stored"]

_AGAIN_MS = 1_000
_Place = tuple[str, str]
"""Topic and broker name."""


def is_nothing_stored(outcome: Answer | CallError) -> bool:
    """Return whether the outcome of a query means that the group has no progress in the queue."""
    return isinstance(outcome, OffsetFound) and outcome.status is not OffsetStatus.FOUND


def first_offset(where: ConsumeFromWhere, *, begins_early: bool, bounds: Bounds, searched: int | None) -> int:
    """Return the first offset of a group without progress.

    `begins_early` is true for a retry queue and for a queue that was added later. `searched` is the offset of the first
    message at or after `consume_timestamp_ms`.
    """
    if begins_early or where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
        return bounds.min_offset
    if where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP and searched is not None:
        return searched
    return bounds.max_offset


class _Decision:
    """The queues of one topic at one broker whose first offset is being decided."""

    def __init__(self, queues: Iterable[MessageQueue], due_ms: int) -> None:
        self.queues = tuple(queues)
        self.due_ms = due_ms
        self.queries: dict[MessageQueue, Call] = {}
        self.bounds: dict[MessageQueue, Call] = {}
        self.searches: dict[MessageQueue, Call] = {}
        self.keeps: dict[MessageQueue, Call] = {}

    @property
    def calls(self) -> list[Call]:
        """All requests so far."""
        groups = self.queries, self.bounds, self.searches, self.keeps
        return [call for group in groups for call in group.values()]


class FirstOffsets:
    """Decides and stores first offsets; returns where a claimed queue begins."""

    def __init__(self, client: Client, offsets: OffsetStore) -> None:
        self._client = client
        self._offsets = offsets
        self._first_offset = client.parts.of(first_offset)
        self._is_nothing = client.parts.of(is_nothing_stored)
        self._decided: set[MessageQueue] = set()
        self._deciding: dict[_Place, _Decision] = {}
        self._wanted: set[MessageQueue] = set()

    def want(self, queues: Iterable[MessageQueue]) -> None:
        """Decide the first offsets of the queues of subscribed topics."""
        self._wanted.update(queue for queue in queues if queue not in self._decided)

    def decide_again(self, queue: MessageQueue) -> None:
        """Forget that a queue has progress, as its numbers have restarted."""
        self._decided.discard(queue)

    def start_of(self, holding: Holding, now_ms: int) -> int | None:
        """Return the stored progress of a claimed queue; None until it is known."""
        queue = holding.queue
        if queue not in self._decided:
            self._wanted.add(queue)
            return None
        if holding.call is None:
            if now_ms < holding.retry_ms:
                return None
            holding.call = self._offsets.query(queue, now_ms)
        outcome = holding.call.outcome(now_ms)
        if outcome is None:
            return None
        if isinstance(outcome, OffsetFound) and outcome.status is OffsetStatus.FOUND:
            return outcome.offset
        if self._is_nothing(outcome):
            self.decide_again(queue)
            holding.retry(now_ms)
        else:
            holding.retry(now_ms + _AGAIN_MS)
        return None

    def step(self, now_ms: int) -> int:
        """Go on with all decisions; return when the next step is due."""
        self._begin(now_ms)
        due_ms = NEVER
        for place, decision in tuple(self._deciding.items()):
            due_ms = min(due_ms, self._step(place, decision, now_ms))
        return due_ms

    def _begin(self, now_ms: int) -> None:
        places: dict[_Place, list[MessageQueue]] = {}
        for queue in sorted(self._wanted - self._decided):
            places.setdefault((queue.topic, queue.broker_name), []).append(queue)
        self._wanted.clear()
        for place, queues in places.items():
            if place in self._deciding:
                self._wanted.update(queue for queue in queues if queue not in self._deciding[place].queues)
            else:
                self._deciding[place] = _Decision(queues, now_ms)

    def _step(self, place: _Place, decision: _Decision, now_ms: int) -> int:
        if now_ms < decision.due_ms:
            return decision.due_ms
        if not decision.queries:
            decision.queries = {queue: self._offsets.query(queue, now_ms) for queue in decision.queues}
        if (due_ms := _wait(decision.queries, now_ms)) is not None:
            return due_ms
        outcomes = {queue: call.outcome(now_ms) for queue, call in decision.queries.items()}
        known = {each for each, outcome in outcomes.items() if _is_found(outcome)}
        absent = [
            each
            for each, outcome in outcomes.items()
            if each not in known and outcome is not None and self._is_nothing(outcome)
        ]
        if len(known) + len(absent) < len(outcomes):
            return self._again(place, decision, now_ms)
        if not absent:
            return self._done(place, decision, now_ms)
        return self._decide(place, decision, absent, now_ms)

    def _decide(self, place: _Place, decision: _Decision, absent: list[MessageQueue], now_ms: int) -> int:
        """Ask for the bounds of the queues without progress, then store their first offsets."""
        settings = self._client.settings
        if not decision.bounds:
            for queue in absent:
                ask = QueryBounds(queue)
                decision.bounds[queue] = self._client.call(queue.broker_name, ask, now_ms)
                if settings.consume_timestamp_ms is not None:
                    search = SearchOffset(queue, settings.consume_timestamp_ms)
                    decision.searches[queue] = self._client.call(queue.broker_name, search, now_ms)
        for calls in (decision.bounds, decision.searches):
            if (due_ms := _wait(calls, now_ms)) is not None:
                return due_ms
        if not decision.keeps:
            firsts = [(queue, self._first_of(decision, queue, now_ms)) for queue in absent]
            if any(first is None for _, first in firsts):
                return self._again(place, decision, now_ms)
            decision.keeps = {
                queue: self._offsets.keep_first(queue, first, now_ms) for queue, first in firsts if first is not None
            }
        if (due_ms := _wait(decision.keeps, now_ms)) is not None:
            return due_ms
        if all(isinstance(call.outcome(now_ms), OffsetUpdated) for call in decision.keeps.values()):
            return self._done(place, decision, now_ms)
        return self._again(place, decision, now_ms)

    def _first_of(self, decision: _Decision, queue: MessageQueue, now_ms: int) -> int | None:
        """Return the first offset of a queue; None after a failed request."""
        found = [call.outcome(now_ms) for call in decision.queries.values()]
        begins_early = queue.topic.startswith(RETRY_PREFIX) or any(
            isinstance(each, OffsetFound) and (each.status is OffsetStatus.FOUND or each.is_group_known)
            for each in found
        )
        own = decision.queries[queue].outcome(now_ms)
        if isinstance(own, OffsetFound) and own.status is OffsetStatus.NOT_STORED:
            return own.offset
        bounds = decision.bounds[queue].outcome(now_ms)
        search = decision.searches.get(queue)
        searched = None if search is None else search.outcome(now_ms)
        if not isinstance(bounds, Bounds) or not (search is None or isinstance(searched, OffsetFound)):
            return None
        offset = searched.offset if isinstance(searched, OffsetFound) else None
        where = self._client.settings.consume_from_where
        return self._first_offset(where, begins_early=begins_early, bounds=bounds, searched=offset)

    def _done(self, place: _Place, decision: _Decision, now_ms: int) -> int:
        self._decided.update(decision.queues)
        del self._deciding[place]
        return now_ms

    def _again(self, place: _Place, decision: _Decision, now_ms: int) -> int:
        """Begin the decision again in a second: a request has failed."""
        refused = next((each for each in decision.calls if each.error is None and not _is_good(each)), None)
        if refused is not None:
            self._client.findings.add(f"{place[0]} at {place[1]}: no first offset yet: {refused.answer}")
        self._deciding[place] = _Decision(decision.queues, now_ms + _AGAIN_MS)
        return now_ms + _AGAIN_MS


def _wait(calls: dict[MessageQueue, Call], now_ms: int) -> int | None:
    """Return until when to wait for the outcomes of some calls; None if all are known."""
    waits = [call.deadline_ms for call in calls.values() if call.outcome(now_ms) is None]
    return min(waits) if waits else None


def _is_found(outcome: Answer | CallError | None) -> bool:
    return isinstance(outcome, OffsetFound) and outcome.status is OffsetStatus.FOUND


def _is_good(call: Call) -> bool:
    return isinstance(call.answer, OffsetFound | Bounds | OffsetUpdated)
