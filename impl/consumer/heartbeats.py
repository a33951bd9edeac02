"""The membership of one client at each broker.

A heartbeat goes to every broker at the start, after a change of subscriptions, and every 30 seconds. A refused or
unanswered one is repeated after a second. Source: `MQClientInstance.sendHeartbeatToAllBroker`, `unregisterClient`.
"""

from tornpage.impl.consumer.client import NEVER, Client, due_of
from tornpage.impl.consumer.connection import Call
from tornpage.impl.consumer.requests import Done, Heartbeat, Leave, Refused, Subscription

__all__ = ["Heartbeats"]

_AGAIN_MS = 1_000
_LEAVE_MS = 3_000
_LEAVE_TRIES = 3


class Heartbeats:
    """Keeps a client in its group.

    `joined` has the brokers that have accepted the last heartbeat.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.joined: set[str] = set()
        self._calls: dict[str, Call] = {}
        self._due_ms = dict.fromkeys(client.connections, 0)
        self._leaves: dict[str, list[Call]] = {}

    def wake(self) -> None:
        """Send the next heartbeat to each broker at once."""
        self._due_ms = dict.fromkeys(self._due_ms, 0)

    def step(self, subscriptions: tuple[Subscription, ...], now_ms: int) -> int:
        """Take answers and send due heartbeats; return when the next step is due."""
        due_ms = NEVER
        for name in self._due_ms:
            call = self._calls.get(name)
            if call is not None and call.outcome(now_ms) is not None:
                self._take(name, call, now_ms)
            if name not in self._calls and now_ms >= self._due_ms[name]:
                settings = self._client.settings
                heartbeat = Heartbeat(
                    settings.consumer_group, self._client.incarnation, subscriptions, settings.is_broadcasting
                )
                self._calls[name] = self._client.call(name, heartbeat, now_ms)
                self._due_ms[name] = now_ms + settings.heartbeat_broker_interval
            call = self._calls.get(name)
            due_ms = min(due_ms, self._due_ms[name] if call is None else due_of(call, now_ms))
        return due_ms

    def _take(self, name: str, call: Call, now_ms: int) -> None:
        del self._calls[name]
        if isinstance(call.answer, Done):
            self.joined.add(name)
            return
        self.joined.discard(name)
        self._due_ms[name] = min(self._due_ms[name], now_ms + _AGAIN_MS)
        if isinstance(call.answer, Refused):
            self._client.findings.add(f"{name} refuses the heartbeat: {call.answer.sentence}")

    def leave(self, now_ms: int) -> int | None:
        """Leave the group at every broker.

        Return when the next step is due, None after the last one. A request without an answer is sent three
        times. Without this the broker keeps the member until its heartbeat is too old.
        """
        if not self._leaves:
            self._leaves = {name: [] for name in self._due_ms}
        due_ms = None
        for name, calls in self._leaves.items():
            is_answered = bool(calls) and calls[-1].answer is not None
            if is_answered or (len(calls) == _LEAVE_TRIES and calls[-1].outcome(now_ms) is not None):
                continue
            if not calls or calls[-1].outcome(now_ms) is not None:
                leave = Leave(self._client.group, self._client.incarnation)
                calls.append(self._client.call(name, leave, now_ms, timeout_ms=_LEAVE_MS))
            due_ms = min(NEVER if due_ms is None else due_ms, due_of(calls[-1], now_ms))
        return due_ms
