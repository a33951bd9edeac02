"""Specify a call of a client, and a pull that the broker holds (contract 16).

1. The first of answer, failure and deadline is the outcome of a call. The deadline counts once the client looks at the
   call at or after it. A later answer changes nothing.
2. A pull that finds nothing waits at the broker, up to the time of the request, if the broker holds pulls at all. Its
   answer follows from the answer of the store: `answer_of`.
3. The end of a connection ends its held pulls: they are unreachable, and the store waits for them no longer. Later
   calls are unreachable at once.
4. A client is woken after each end of a held pull.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tornpage.model.consumers.member.asking import TIMED_OUT

__all__ = ["UNREACHABLE", "Called", "answer_of", "refusal_of"]

UNREACHABLE = ("UNREACHABLE",)
_STATUSES: Mapping[str, str] = {
    "FOUND": "FOUND", "MESSAGE_WAS_REMOVING": "NO_MATCHED_MSG", "NO_MATCHED_MESSAGE": "NO_MATCHED_MSG",
    "OFFSET_FOUND_NULL": "NO_NEW_MSG", "OFFSET_OVERFLOW_ONE": "NO_NEW_MSG", "OFFSET_OVERFLOW_BADLY": "OFFSET_ILLEGAL",
    "OFFSET_TOO_SMALL": "OFFSET_ILLEGAL",
}  # fmt: skip
_REFUSALS = {"StoreClosed": "SHUTTING_DOWN", "NotReadable": "NO_PERMISSION", "TooManyHeldPulls": "BUSY"}


@dataclass(frozen=True, slots=True)
class Called:
    """A call. Times are milliseconds.

    `outcome` has its name first; it is None while the call waits.
    """

    deadline_ms: int
    outcome: tuple[Any, ...] | None = None

    def looked_at(self, now_ms: int) -> "Called":
        """Look at a call at a time."""
        if self.outcome is None and now_ms >= self.deadline_ms:
            return replace(self, outcome=TIMED_OUT)
        return self

    def ended(self, outcome: tuple[Any, ...]) -> "Called":
        """End a call with an answer or a failure, unless it has ended."""
        return self if self.outcome is not None else replace(self, outcome=outcome)


def answer_of(status: str, offset: int, bounds: tuple[int, int, int], messages: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the answer to a pull at an offset.

    `status` is that of the store. `bounds` are the next offset, and minimum and maximum of the queue. A store without
    the queue has other statuses than those in the table: then only offset 0 is legal.
    """
    usual = _STATUSES.get(status, "OFFSET_ILLEGAL" if offset else "NO_NEW_MSG")
    return ("Pulled", usual, *bounds, messages)


def refusal_of(error: str, sentence: str) -> tuple[Any, ...]:
    """Return the refusal after an error of the store, given by its class and its text."""
    return "Refused", _REFUSALS.get(error, "SYSTEM_ERROR"), sentence
