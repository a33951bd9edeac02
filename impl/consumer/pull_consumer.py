"""A pull consumer: the application drives. Source: `DefaultMQPullConsumer`."""

from collections.abc import Mapping

from tornpage.impl.consumer.connection import Call, CallError, Connection
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Pull,
    QueryBounds,
    QueryOffset,
    Request,
    Route,
    SearchOffset,
    Subscription,
    UpdateOffset,
)
from tornpage.impl.errors import BadConfig

__all__ = ["PullConsumer"]


class PullConsumer:
    """Sends single requests for an application that keeps its own place in each queue.

    Nothing is fenced and nothing is rebalanced. Each method returns a call, whose answer arrives later. Times are
    milliseconds. Raises BadConfig.
    """

    def __init__(
        self, group: str, connections: Mapping[str, Connection], *, pull_timeout: int = 30_000, timeout: int = 5_000
    ) -> None:
        for name, value in (("pull_timeout", pull_timeout), ("timeout", timeout)):
            if value < 1:
                raise BadConfig(name, value, "use a number of at least 1")
        if not group or "@" in group:
            raise BadConfig("group", group, "use a name without @")
        self._group = group
        self._connections = dict(connections)
        self._pull_timeout = pull_timeout
        self._timeout = timeout

    def _call(self, broker_name: str, request: Request, now_ms: int, timeout_ms: int) -> Call:
        connection = self._connections.get(broker_name)
        if connection is not None:
            return connection.call(request, now_ms=now_ms, timeout_ms=timeout_ms)
        call = Call(request, deadline_ms=now_ms + timeout_ms)
        call.fail(CallError.UNREACHABLE)
        return call

    def routes(self, topic: str, now_ms: int) -> list[Call]:
        """Ask each broker for the queues of a topic; the answers are `Routed`."""
        return [self._call(name, Route(topic), now_ms, self._timeout) for name in sorted(self._connections)]

    def pull(
        self,
        queue: MessageQueue,
        offset: int,
        now_ms: int,
        *,
        count: int = 32,
        expression: str = "*",
        kind: str = "TAG",
        hold_ms: int = 0,
    ) -> Call:
        """Pull from a queue; the answer is `Pulled`.

        The broker may hold the request up to `hold_ms`, which has to be below the time-out of a pull.
        """
        subscription = Subscription(queue.topic, expression, kind)
        request = Pull(self._group, queue, offset, subscription, count=count, suspend_ms=hold_ms)
        return self._call(queue.broker_name, request, now_ms, self._pull_timeout)

    def query_offset(self, queue: MessageQueue, now_ms: int) -> Call:
        """Ask for the stored progress of the group; the answer is `OffsetFound`."""
        return self._call(queue.broker_name, QueryOffset(self._group, queue), now_ms, self._timeout)

    def update_offset(self, queue: MessageQueue, offset: int, now_ms: int) -> Call:
        """Store the progress of the group; the answer is `OffsetUpdated`.

        Progress never decreases.
        """
        return self._call(queue.broker_name, UpdateOffset(self._group, queue, offset), now_ms, self._timeout)

    def bounds(self, queue: MessageQueue, now_ms: int) -> Call:
        """Ask for minimum and maximum of a queue; the answer is `Bounds`."""
        return self._call(queue.broker_name, QueryBounds(queue), now_ms, self._timeout)

    def search_offset(self, queue: MessageQueue, timestamp_ms: int, now_ms: int) -> Call:
        """Ask for the first message stored at or after a time; the answer is `OffsetFound`."""
        return self._call(queue.broker_name, SearchOffset(queue, timestamp_ms), now_ms, self._timeout)
