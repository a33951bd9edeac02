"""One queue in the hands of one client, from the claim to the hand-over.

    CLAIMING -> STARTING -> ACTIVE -> DRAINING -> STORING -> UNLOCKING -> GONE
                              ^__________|

CLAIMING waits for the lease, STARTING for the first offset. DRAINING starts no new message and takes the results of
running batches. STORING has the broker store the last progress, and UNLOCKING gives the lease back. A queue whose lease
was lost becomes LOST: its results are ignored.
"""

from dataclasses import dataclass, field
from enum import Enum

from tornpage.impl.consumer.connection import Call
from tornpage.impl.consumer.process_queue import ProcessQueue
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import Lease, Subscription

__all__ = ["Holding", "HoldingState", "is_over"]


class HoldingState(Enum):
    """Where a queue is between claim and hand-over."""

    CLAIMING = "CLAIMING"
    STARTING = "STARTING"
    ACTIVE = "ACTIVE"
    DRAINING = "DRAINING"
    STORING = "STORING"
    UNLOCKING = "UNLOCKING"
    LOST = "LOST"
    GONE = "GONE"


@dataclass(slots=True, eq=False)
class Holding:
    """One queue of one client. Times are milliseconds.

    `running` counts the batches that a listener has, `returning` the messages that are being sent back. `taken_end` is
    the offset after the last message that was given to a listener. `next_offset` is where the next pull begins.
    """

    queue: MessageQueue
    token: str
    subscription: Subscription
    process_queue: ProcessQueue
    state: HoldingState
    lease: Lease | None = None
    next_offset: int = 0
    taken_end: int = 0
    running: int = 0
    returning: int = 0
    since_ms: int = 0
    """When the present state began."""
    retry_ms: int = 0
    """When the request of the present state may be repeated."""
    call: Call | None = field(default=None, repr=False)
    """The request of the present state."""
    pause_until_ms: int = 0
    """Orderly: until when the queue rests."""
    continuous_since_ms: int | None = None
    """Orderly: since when batches have followed each other without a rest."""
    max_offset: int = 0
    """The maximum of the queue at the last pull."""
    wants_restart: bool = False
    """Whether the numbers of the queue have restarted, so that the queue has to be claimed again."""

    def enter(self, state: HoldingState, now_ms: int) -> None:
        """Begin a state without a request."""
        self.state, self.since_ms, self.retry_ms, self.call = state, now_ms, now_ms, None

    def retry(self, at_ms: int) -> None:
        """Repeat the request of the present state at a time."""
        self.retry_ms, self.call = at_ms, None

    def lose(self, now_ms: int) -> None:
        """Note that another client owns the queue, or may do so."""
        self.process_queue.dropped = True
        self.process_queue.locked = False
        self.enter(HoldingState.LOST, now_ms)

    @property
    def is_idle(self) -> bool:
        """Whether no batch runs and no message is being sent back."""
        return not self.running and not self.returning


def is_over(holding: Holding, *, orderly: bool) -> bool:
    """Return whether a queue can be claimed again by this client.

    An orderly consumer first waits for the last batch of a lost queue, so that two batches of it never overlap here.
    """
    if holding.state is HoldingState.LOST:
        return not (orderly and holding.running)
    return holding.state is HoldingState.GONE
