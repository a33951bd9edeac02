"""Specify where a group begins in a queue (contract 21).

1. Stored progress is asked for. A refusal or no answer is not "none": everything is asked again a second later.
2. All queues of a topic at one broker that are not decided yet are decided together. Those without progress begin at
   an offset that is stored before one of them is used.
3. A young queue begins where the broker says. A queue of the retry topic begins at its first message, and so do all
   queues if the group has progress in one of the topic. Otherwise the setting decides: the first message, the end, or
   the first message at or after a time.
4. A claimed queue begins at its stored progress. If there is none any more, the queue is decided again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tornpage.model.consumers.member.asking import NEVER, Ask, Asking, Sent
from tornpage.model.consumers.member.dividing import QueueName
from tornpage.model.consumers.member.holding import Held

__all__ = ["Starting"]

_AGAIN_MS = 1_000
_Sents = Mapping[QueueName, Sent]


@dataclass(frozen=True, slots=True)
class _Decision:
    """The queues of a topic at a broker, and what was asked about them."""

    queues: tuple[QueueName, ...]
    due_ms: int
    queries: _Sents = field(default_factory=dict)
    bounds: _Sents = field(default_factory=dict)
    searches: _Sents = field(default_factory=dict)
    kept: _Sents = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Starting:
    """First offsets of a member.

    `begins` is FIRST, LAST or TIMESTAMP; `time_ms` is None without a time.
    """

    group: str
    begins: str
    time_ms: int | None
    timeout_ms: int
    decided: frozenset[QueueName] = frozenset()
    wanted: frozenset[QueueName] = frozenset()
    deciding: Mapping[tuple[str, str], _Decision] = field(default_factory=dict)

    def want(self, queues: Iterable[QueueName]) -> "Starting":
        """Wish for the first offsets of some queues."""
        return replace(self, wanted=self.wanted | (frozenset(queues) - self.decided))

    def again(self, queue: QueueName) -> "Starting":
        """Forget that a queue is decided."""
        return replace(self, decided=self.decided - {queue})

    def start_of(self, queue: QueueName, held: Held, now_ms: int, ask: Asking) -> tuple["Starting", Held, int | None]:
        """Return the progress of a claimed queue, None until it is known."""
        if queue not in self.decided:
            return replace(self, wanted=self.wanted | {queue}), held, None
        if held.sent is None:
            if now_ms < held.retry_ms:
                return self, held, None
            held = replace(held, sent=self._query(queue, ask))
        assert held.sent is not None
        match held.sent.outcome(now_ms):
            case None:
                return self, held, None
            case ("OffsetFound", "FOUND", offset, _):
                return self, held, offset
            case ("OffsetFound", _, _, _):
                return self.again(queue), replace(held, retry_ms=now_ms, sent=None), None
        return self, replace(held, retry_ms=now_ms + _AGAIN_MS, sent=None), None

    def _query(self, queue: QueueName, ask: Asking) -> Sent:
        return ask(Ask(queue[1], "QueryOffset", self.timeout_ms, (self.group, queue)))

    def step(self, now_ms: int, ask: Asking) -> tuple["Starting", int]:
        """Go on with all decisions; when the next step is due."""
        now, due_ms = self._with_wanted(now_ms), NEVER
        for place in tuple(now.deciding):
            now, place_ms = now._decide(place, now_ms, ask)
            due_ms = min(due_ms, place_ms)
        return now, due_ms

    def _with_wanted(self, now_ms: int) -> "Starting":
        deciding, later = dict(self.deciding), set()
        for queue in sorted(self.wanted - self.decided):
            place = queue[:2]
            if place not in self.deciding:
                before = deciding[place].queues if place in deciding else ()
                deciding[place] = _Decision((*before, queue), now_ms)
            elif queue not in self.deciding[place].queues:
                later.add(queue)
        return replace(self, deciding=deciding, wanted=frozenset(later))

    def _decide(self, place: tuple[str, str], now_ms: int, ask: Asking) -> tuple["Starting", int]:
        decision = self.deciding[place]
        if now_ms < decision.due_ms:
            return self, decision.due_ms
        if not decision.queries:
            decision = replace(decision, queries={queue: self._query(queue, ask) for queue in decision.queues})
        if (waits_ms := _waits_ms(decision.queries, now_ms)) is not None:
            return self._with(place, decision), waits_ms
        outcomes = {queue: sent.outcome(now_ms) or () for queue, sent in decision.queries.items()}
        if any(outcome[0] != "OffsetFound" for outcome in outcomes.values()):
            return self._failed(place, decision, now_ms, ask)
        absent = [queue for queue, outcome in outcomes.items() if outcome[1] != "FOUND"]
        if absent and not decision.bounds:
            bounds = {}
            searches = {}
            for queue in absent:
                bounds[queue] = ask(Ask(queue[1], "QueryBounds", self.timeout_ms, (queue,)))
                if self.time_ms is not None:
                    about = queue, self.time_ms
                    searches[queue] = ask(Ask(queue[1], "SearchOffset", self.timeout_ms, about))
            decision = replace(decision, bounds=bounds, searches=searches)
        if (waits_ms := _waits_ms(decision.bounds, now_ms)) is not None:
            return self._with(place, decision), waits_ms
        if (waits_ms := _waits_ms(decision.searches, now_ms)) is not None:
            return self._with(place, decision), waits_ms
        if absent and not decision.kept:
            firsts = {queue: self._first(decision, queue, now_ms) for queue in absent}
            if None in firsts.values():
                return self._failed(place, decision, now_ms, ask)
            kept = {
                queue: ask(Ask(queue[1], "UpdateOffset", self.timeout_ms, (self.group, queue, first, None, True)))
                for queue, first in firsts.items()
            }
            decision = replace(decision, kept=kept)
        if (waits_ms := _waits_ms(decision.kept, now_ms)) is not None:
            return self._with(place, decision), waits_ms
        if any((sent.outcome(now_ms) or ("",))[0] != "OffsetUpdated" for sent in decision.kept.values()):
            return self._failed(place, decision, now_ms, ask)
        others = {each: value for each, value in self.deciding.items() if each != place}
        return replace(self, decided=self.decided | set(decision.queues), deciding=others), now_ms

    def _first(self, decision: _Decision, queue: QueueName, now_ms: int) -> int | None:
        """Return the first offset of a queue, None if it cannot be known."""
        outcomes = {each: sent.outcome(now_ms) or () for each, sent in decision.queries.items()}
        _, status, offset, _ = outcomes[queue]
        if status == "NOT_STORED":
            return int(offset)
        bounds = decision.bounds[queue].outcome(now_ms) or ()
        search = decision.searches[queue].outcome(now_ms) if queue in decision.searches else None
        if bounds[0] != "Bounds" or (search is not None and search[0] != "OffsetFound"):
            return None
        is_known = any(status == "FOUND" or known for _, status, _, known in outcomes.values())
        if is_known or queue[0].startswith("%RETRY%") or self.begins == "FIRST":
            return int(bounds[1])
        return int(bounds[2]) if self.begins == "LAST" or search is None else int(search[2])

    def _failed(self, place: tuple[str, str], decision: _Decision, now_ms: int, ask: Asking) -> tuple["Starting", int]:
        """Begin again in a second. A refusal is a finding."""
        sents = [*decision.queries.values(), *decision.bounds.values(), *decision.searches.values(),
                 *decision.kept.values()]  # fmt: skip
        if any((sent.outcome(now_ms) or ("",))[0] == "Refused" for sent in sents):
            ask.finding(f"{place[0]} at {place[1]}")
        again_ms = now_ms + _AGAIN_MS
        return self._with(place, _Decision(decision.queues, again_ms)), again_ms

    def _with(self, place: tuple[str, str], decision: _Decision) -> "Starting":
        return replace(self, deciding={**self.deciding, place: decision})


def _waits_ms(sents: _Sents, now_ms: int) -> int | None:
    """Return the first deadline of the requests that wait, None without any."""
    return min((sent.due_ms(now_ms) for sent in sents.values() if sent.outcome(now_ms) is None), default=None)
