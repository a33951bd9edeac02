"""What consumers do that wait in the store for messages, as values."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["CancelPull", "PullHeld", "PullWhileDispatching"]


@dataclass(frozen=True, slots=True)
class PullHeld:
    """Pull from `shift` behind the maximum of a queue, which nobody need have written to, and wait for `hold_ms`.

    `tags` are the tags that are wanted, separated by `||`; none is all.
    """

    topic: str = "T"
    queue_id: int = 0
    shift: int = 0
    max_msg_nums: int = 32
    tags: str = ""
    hold_ms: int = 15_000
    op: Literal["pull_held"] = "pull_held"


@dataclass(frozen=True, slots=True)
class CancelPull:
    """Of the consumers that wait, number `number` (counted modulo) gives up."""

    number: int = 0
    op: Literal["cancel_pull"] = "cancel_pull"


@dataclass(frozen=True, slots=True)
class PullWhileDispatching:
    """A consumer pulls at the maximum of a queue and waits, while dispatch takes a step and pulls are looked at.

    `schedule` says who goes on at each yield point (properties/scheduler).
    """

    topic: str = "T"
    queue_id: int = 0
    tags: str = ""
    schedule: tuple[int, ...] = ()
    op: Literal["pull_while_dispatching"] = "pull_while_dispatching"
