"""A pull consumer: the application drives."""

from collections.abc import Mapping

from tornpage.impl.consumer.connection import Call, Connection
from tornpage.impl.consumer.queues import MessageQueue

__all__ = ["PullConsumer"]


class PullConsumer:
    """Sends single requests for an application that keeps its own place in each queue.

    Nothing is fenced and nothing is rebalanced. Each method returns a call, whose answer arrives later. Source:
    `DefaultMQPullConsumer`.
    """

    def __init__(
        self, group: str, connections: Mapping[str, Connection], *, pull_timeout: int = 30_000, timeout: int = 5_000
    ) -> None:
        raise NotImplementedError

    def routes(self, topic: str, now_ms: int) -> list[Call]:
        """Ask each broker for the queues of a topic."""
        raise NotImplementedError

    def pull(
        self, queue: MessageQueue, offset: int, now_ms: int, *, count: int = 32, expression: str = "*", hold_ms: int = 0
    ) -> Call:
        """Pull from a queue."""
        raise NotImplementedError

    def query_offset(self, queue: MessageQueue, now_ms: int) -> Call:
        """Ask for the stored progress of the group."""
        raise NotImplementedError

    def update_offset(self, queue: MessageQueue, offset: int, now_ms: int) -> Call:
        """Store the progress of the group."""
        raise NotImplementedError

    def bounds(self, queue: MessageQueue, now_ms: int) -> Call:
        """Ask for minimum and maximum of a queue."""
        raise NotImplementedError

    def search_offset(self, queue: MessageQueue, timestamp_ms: int, now_ms: int) -> Call:
        """Ask for the first message at or after a time."""
        raise NotImplementedError
