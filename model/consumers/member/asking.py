"""Requests of a member, and what becomes of them.

A request ends with its answer, or with an error: it has timed out, or its broker is unreachable. The first of them
counts. A part of a member looks at a request that waits again at its deadline, or when its answer arrives.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["NEVER", "TIMED_OUT", "Ask", "Asking", "Sent", "looked_at", "queue_text"]

NEVER = 1 << 62
"""The time at which a part without work has to be stepped, in milliseconds."""
TIMED_OUT = ("TIMED_OUT",)
_ERRORS = (TIMED_OUT, ("UNREACHABLE",))


@dataclass(frozen=True, slots=True)
class Ask:
    """A request to a broker, with the values of its fields.

    `timeout_ms` is 0 for a request without an answer.
    """

    broker: str
    kind: str
    timeout_ms: int
    about: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that was sent at a time.

    `answer` arrives `after_ms` later, unless the deadline comes first.
    """

    ask: Ask
    at_ms: int
    after_ms: int
    answer: tuple[Any, ...]

    def outcome(self, now_ms: int) -> tuple[Any, ...] | None:
        """Return the answer or the error, its name first; None while the request waits."""
        waited_ms = now_ms - self.at_ms
        if self.after_ms < self.ask.timeout_ms and waited_ms >= self.after_ms:
            return self.answer
        return TIMED_OUT if waited_ms >= self.ask.timeout_ms else None

    def is_answered(self, now_ms: int) -> bool:
        """Return whether a broker has answered, even with a refusal."""
        return self.outcome(now_ms) not in (None, *_ERRORS)

    def due_ms(self, now_ms: int) -> int:
        """Return when to look at the request: now if its end is known, else at its deadline."""
        return self.at_ms + self.ask.timeout_ms if self.outcome(now_ms) is None else now_ms


class Asking(Protocol):
    """What a part of a member does to the outside."""

    def __call__(self, ask: Ask) -> Sent:
        """Send a request now."""

    def finding(self, about: str) -> None:
        """Tell operators about something; the sentence has the text `about`."""


def looked_at(sent: Iterable[Sent], now_ms: int) -> int:
    """Return when to look at the first of some requests, NEVER without any."""
    return min((each.due_ms(now_ms) for each in sent), default=NEVER)


def queue_text(queue: Sequence[Any]) -> str:
    """Return how findings name a queue, given by topic, broker and id."""
    return f"MessageQueue [topic={queue[0]}, brokerName={queue[1]}, queueId={queue[2]}]"
