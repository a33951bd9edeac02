"""What all parts of one consumer share: settings, connections, parts, findings."""

import logging
from collections.abc import Mapping

from tornpage.impl.consumer.connection import Call, CallError, Connection
from tornpage.impl.consumer.requests import Request
from tornpage.impl.consumer.settings import ConsumerSettings
from tornpage.impl.parts import Parts

__all__ = ["NEVER", "Client", "Findings", "due_of"]

_LOG = logging.getLogger("tornpage.consumer")

NEVER = 1 << 62
"""The time at which a part without work is due."""
_FINDINGS_MAX = 100


class Findings:
    """Sentences for operators, the newest last; at most 100.

    A repetition of the newest one is not kept.
    """

    def __init__(self) -> None:
        self._sentences: list[str] = []

    def add(self, sentence: str) -> None:
        """Add a sentence."""
        if not self._sentences or self._sentences[-1] != sentence:
            _LOG.info("consumer_finding %s", sentence)
            self._sentences = [*self._sentences[1 - _FINDINGS_MAX :], sentence]

    @property
    def all(self) -> tuple[str, ...]:
        """All sentences."""
        return tuple(self._sentences)


class Client:
    """The shared state of one consumer. `findings` collects what an operator may want to know."""

    def __init__(
        self, settings: ConsumerSettings, connections: Mapping[str, Connection], *, incarnation: str, parts: Parts
    ) -> None:
        self.settings = settings
        self.connections = connections
        self.incarnation = incarnation
        self.parts = parts
        self.findings = Findings()
        self._tokens = 0

    @property
    def group(self) -> str:
        """The consumer group."""
        return self.settings.consumer_group

    def next_token(self) -> str:
        """Return a token for a claim. The tokens of one process rise as texts."""
        self._tokens += 1
        return f"{self.incarnation}-{self._tokens:012d}"

    def call(self, broker_name: str, request: Request, now_ms: int, *, timeout_ms: int | None = None) -> Call:
        """Send a request to a broker. A broker without a connection is unreachable."""
        timeout_ms = self.settings.request_timeout if timeout_ms is None else timeout_ms
        connection = self.connections.get(broker_name)
        if connection is None:
            call = Call(request, deadline_ms=now_ms + timeout_ms)
            call.fail(CallError.UNREACHABLE)
            return call
        return connection.call(request, now_ms=now_ms, timeout_ms=timeout_ms)

    def notify(self, broker_name: str, request: Request, now_ms: int) -> None:
        """Send a request without an answer."""
        connection = self.connections.get(broker_name)
        if connection is not None:
            connection.notify(request, now_ms=now_ms)

    def broker_after(self, broker_name: str) -> str:
        """Return the next broker in the order of names, or the same one if there is no other."""
        names = sorted(self.connections)
        later = [name for name in names if name > broker_name]
        return (later or names or [broker_name])[0]


def due_of(call: Call, now_ms: int) -> int:
    """Return when to look at a call: now if its outcome is known, else at its deadline."""
    return call.deadline_ms if call.outcome(now_ms) is None else now_ms
