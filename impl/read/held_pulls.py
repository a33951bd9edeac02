"""A table of waiting pulls by queue and by deadline.

Its user provides the lock (`pull_hold`). A queue is a pair of topic and queue id. RocketMQ joins them to one text and
splits it at each `@`, so pulls of a topic with `@` in its name are never answered early. Source: `ManyPullRequest`.
"""

import heapq
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from tornpage.impl.read.message_filter import MessageFilter
from tornpage.impl.read.queue_pull import GetMessageResult

__all__ = ["HeldPull", "HeldPulls", "PullRequest", "QueueName"]

QueueName = tuple[str, int]
"""Topic and queue id."""

_FORGOTTEN_MAX = 64


@dataclass(frozen=True, slots=True, eq=False)
class PullRequest:
    """One pull request. `group` is the consumer group, used in statistics only.

    Source: `PullMessageRequestHeader`.
    """

    queue: QueueName
    offset: int
    max_msg_nums: int
    message_filter: MessageFilter | None = None
    group: str = ""


@dataclass(slots=True, eq=False)
class HeldPull:
    """A request that waits until `deadline_ms`, in the time of the runner.

    `checked_to` is the queue offset below which no message matched. Source: `PullRequest` of the broker.
    """

    request: PullRequest
    deadline_ms: int
    checked_to: int = field(init=False)
    answer: Future[GetMessageResult] = field(init=False, default_factory=Future)

    def __post_init__(self) -> None:
        self.checked_to = self.request.offset


class HeldPulls:
    """Waiting pulls, each with a unique number.

    A queue without waiting pulls is not in the table.
    """

    def __init__(self) -> None:
        self._by_number: dict[int, HeldPull] = {}
        self._by_queue: dict[QueueName, dict[int, HeldPull]] = {}
        self._deadlines: list[tuple[int, int]] = []
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._by_number)

    def __contains__(self, queue: QueueName) -> bool:
        """Whether a pull waits for a queue."""
        return queue in self._by_queue

    def add(self, held: HeldPull) -> tuple[int, bool]:
        """Add a pull; return its number, and whether its deadline is now the earliest."""
        number = self._next_number
        self._next_number = number + 1
        first_ms = self.first_deadline_ms
        heapq.heappush(self._deadlines, (held.deadline_ms, number))
        self._by_queue.setdefault(held.request.queue, {})[number] = held
        self._by_number[number] = held  # last: an interrupt before it leaves nothing that is answered
        return number, first_ms is None or held.deadline_ms < first_ms

    def take(self, number: int) -> HeldPull | None:
        """Remove a pull for good; return None if it was removed before."""
        held = self._by_number.pop(number, None)
        if held is None:
            return None
        of_queue = self._by_queue[held.request.queue]
        del of_queue[number]
        if not of_queue:
            del self._by_queue[held.request.queue]
        if len(self._deadlines) > 2 * len(self._by_number) + _FORGOTTEN_MAX:
            self._deadlines = [(each.deadline_ms, left) for left, each in self._by_number.items()]
            heapq.heapify(self._deadlines)
        return held

    def all(self) -> list[tuple[int, HeldPull]]:
        """Return all pulls with their numbers, the oldest first."""
        return list(self._by_number.items())

    def of(self, queues: Iterable[QueueName]) -> list[tuple[int, HeldPull]]:
        """Return the pulls that wait for one of some queues, with their numbers, the oldest first."""
        return sorted((pair for queue in queues for pair in self._by_queue.get(queue, {}).items()), key=_number)

    def late(self, now_ms: int) -> Iterator[tuple[int, HeldPull]]:
        """Yield the pulls whose deadline has come, with their numbers.

        The earliest deadline first.
        """
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            _, number = heapq.heappop(self._deadlines)
            if number in self._by_number:
                yield number, self._by_number[number]

    @property
    def first_deadline_ms(self) -> int | None:
        """The earliest deadline of a waiting pull; None if no pull waits."""
        while self._deadlines and self._deadlines[0][1] not in self._by_number:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None


def _number(pair: tuple[int, HeldPull]) -> int:
    return pair[0]
