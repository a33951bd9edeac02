"""Specify how a failed message goes back to the broker (contract 23).

1. The broker that has the message is asked to copy it. If that is refused or has no answer, a copy is sent to the next
   broker in the order of names, after the last one to the first. Both requests have one key, and the number of tries
   of the pulled record.
2. An orderly member sends its copy at once, with its own number of tries.
3. A message whose copy is refused or has no answer is not sent back. That is a finding, and so is a dead letter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tornpage.model.consumers.member.asking import Ask, Asking, Sent, looked_at

__all__ = ["Back", "Pulled", "Returning"]


@dataclass(frozen=True, slots=True)
class Pulled:
    """A message in a cache, one of its lives.

    `times` is how often it was consumed again, `stored_times` the same in its record.
    `place` is the physical offset of the record, `identity` tells it from others. `copied` are the fields of its copy:
    topic, body, properties, flag, birth, host of birth, and the id of the original message.
    """

    queue: tuple[str, str, int]
    offset: int
    life: int
    place: int
    identity: str
    message_id: str
    copied: tuple[Any, ...]
    times: int
    stored_times: int


@dataclass(frozen=True, slots=True)
class Back:
    """A message on its way back. `is_stored` is None until that is known."""

    message: Pulled
    level: int
    times: int
    sent: Sent
    is_copy: bool
    is_stored: bool | None = None


@dataclass(frozen=True, slots=True)
class Returning:
    """The messages on their way back. `times_max` is how often a message is consumed again."""

    group: str
    brokers: tuple[str, ...]
    times_max: int
    timeout_ms: int
    under_way: tuple[Back, ...] = ()

    def add(self, message: Pulled, level: int, ask: Asking, *, as_copy: bool = False) -> "Returning":
        """Begin to send a message back."""
        times, broker = message.times if as_copy else message.stored_times, message.queue[1]
        sent = self._copy(message, times, level, broker, ask) if as_copy else self._original(message, level, ask)
        return replace(self, under_way=(*self.under_way, Back(message, level, times, sent, as_copy)))

    def _original(self, message: Pulled, level: int, ask: Asking) -> Sent:
        about = self.group, message.place, message.identity, level, self.times_max, self._key(message)
        return ask(Ask(message.queue[1], "SendBack", self.timeout_ms, about))

    def _copy(self, message: Pulled, times: int, level: int, broker: str, ask: Asking) -> Sent:
        about = self.group, *message.copied, times, self.times_max, self._key(message), level
        return ask(Ask(broker, "SendToRetry", self.timeout_ms, about))

    def _key(self, message: Pulled) -> str:
        topic, broker, queue_id = message.queue
        place = f"{broker}/{topic}/{queue_id}/{message.offset}/{message.place}"
        return f"{self.group}/{place}/{message.identity}"

    def finished(self, now_ms: int, ask: Asking) -> tuple["Returning", Sequence[Back], int]:
        """Take answers; the messages whose end is known, and when the next step is due."""
        after = [self._stepped(each, now_ms, ask) for each in self.under_way]
        ended = [each for each in after if each.is_stored is not None]
        waiting = [each for each in after if each.is_stored is None]
        return replace(self, under_way=tuple(waiting)), ended, looked_at((each.sent for each in waiting), now_ms)

    def _stepped(self, each: Back, now_ms: int, ask: Asking) -> Back:
        outcome = each.sent.outcome(now_ms)
        if outcome is None:
            return each
        if outcome[0] == "SentBack":
            if outcome[1] == "DEAD_LETTER":
                ask.finding(f"{each.message.message_id}: sent to the dead letters")
            return replace(each, is_stored=True)
        if each.is_copy:
            ask.finding(f"{each.message.message_id}: not sent back")
            return replace(each, is_stored=False)
        own = each.message.queue[1]
        broker = next((name for name in self.brokers if name > own), self.brokers[0])
        return replace(each, sent=self._copy(each.message, each.times, each.level, broker, ask), is_copy=True)
