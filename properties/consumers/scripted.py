"""Brokers with drawn answers, for one part of a member that is used alone.

What becomes of a request follows from a seed, the request and the time. So a part of the library and its model get
equal answers to equal requests, and neither sees what the other one has asked. An answer comes at once, later, or
never. In the words of the model a request or an answer is a tuple of values; here they are those of the library.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from random import Random
from typing import Any

from tornpage.impl.consumer import requests
from tornpage.impl.consumer.client import Client
from tornpage.impl.consumer.connection import Call, CallError
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import Answer, Lease, MembersChanged, Request
from tornpage.impl.message.message import StoredMessage
from tornpage.model.consumers.member.asking import NEVER, Ask, Sent
from tornpage.properties.consumers.caching import message_at
from tornpage.properties.contract import GuaranteeBroken

__all__ = ["BROKERS", "Answering", "Script", "differs"]

BROKERS = ("broker-a", "broker-b")
_PULLED = MessageQueue("T", BROKERS[0], 0)
_REFUSALS = ("BUSY", "SYSTEM_ERROR", "NO_PERMISSION", "FENCED", "UNKNOWN_GROUP")
_SHARES = ((0.0, 0.3, 0.0), (0.2, 0.3, 0.1), (0.5, 0.2, 0.2), (0.1, 0.1, 0.7))
_AFTER_MS = (1, 49, 50, 998, 999, 1_000, 1_001, 4_999)
Answering = Callable[[Ask, Random], tuple[Any, ...]]
"""Draws the answer to a request."""


class Script:
    """The brokers of one run.

    The driver sets `now_ms` and calls `arrive` before it steps the part. `refuses`, `is_late` and `is_lost` are the
    shares of refusals, of answers that come later, and of lost ones.
    """

    def __init__(self, seed: int, answering: Answering, *, now_ms: int) -> None:
        rng = Random(seed)
        self.now_ms = now_ms
        self._seed = seed
        self._answering = answering
        self._refuses, self._is_late, self._is_lost = rng.choice(_SHARES)
        self._asked: list[Ask] = []
        self._modelled: list[Ask] = []
        self._told: list[str] = []
        self._calls: list[tuple[Call, Sent]] = []

    # ---- what becomes of a request -----------------------------------------------------------------------------------

    def _sent(self, ask: Ask) -> Sent:
        rng = Random(f"{self._seed} {self.now_ms} {ask}")
        answer = self._answering(ask, rng)
        if rng.random() < self._refuses:
            answer = ("Refused", rng.choice(_REFUSALS))
        after_ms, chance = 0, rng.random()
        if chance < self._is_late:
            after_ms = rng.choice(_AFTER_MS)
        elif chance < self._is_late + self._is_lost:
            after_ms, answer = rng.choice(((NEVER, answer), (0, ("UNREACHABLE",))))
        return Sent(ask, self.now_ms, after_ms, answer)

    def __call__(self, ask: Ask) -> Sent:
        """Send a request of the model."""
        self._modelled.append(ask)
        return self._sent(ask)

    def finding(self, about: str) -> None:
        """Note a finding of the model."""
        self._told.append(about)

    def call(self, broker: str, request: Request, timeout_ms: int) -> Call:
        """Send a request of the library; `timeout_ms` 0 is for one without an answer."""
        ask = Ask(broker, type(request).__name__, timeout_ms, _values(request))
        self._asked.append(ask)
        call, sent = Call(request, deadline_ms=self.now_ms + timeout_ms), self._sent(ask)
        self._settle(call, sent)
        self._calls.append((call, sent))
        return call

    def arrive(self) -> None:
        """Let the answers arrive that are due now."""
        for call, sent in self._calls:
            self._settle(call, sent)
        self._calls = [(call, sent) for call, sent in self._calls if sent.outcome(self.now_ms) is None]

    def _settle(self, call: Call, sent: Sent) -> None:
        match sent.outcome(self.now_ms):
            case None | ("TIMED_OUT",):
                return
            case ("UNREACHABLE",):
                call.fail(CallError.UNREACHABLE)
            case answer:
                call.settle(_made(answer))

    def next_arrival_ms(self) -> int:
        """Return when the next answer arrives, NEVER without any."""
        arrivals = (sent.at_ms + sent.after_ms for _, sent in self._calls if sent.after_ms < sent.ask.timeout_ms)
        return min(arrivals, default=NEVER)

    # ---- what the part sees ------------------------------------------------------------------------------------------

    def connections(self) -> dict[str, "_Connection"]:
        """Return a connection to each broker."""
        return {name: _Connection(self, name) for name in BROKERS}

    @contextmanager
    def step(self, contract: int, what: str, client: Client) -> Iterator[None]:
        """Compare the requests and findings of the library and of the model after a step of both.

        A sentence that repeats the newest one is not kept, so that fewer findings than those of the model are right.
        """
        self._asked, self._modelled, self._told = [], [], []
        before = client.findings.all
        yield
        expected, found = sorted(map(repr, self._modelled)), sorted(map(repr, self._asked))
        differs(contract, f"the requests of {what}", expected, found)
        after = client.findings.all
        for about in self._told:
            if not any(about in each for each in after[-len(self._told) :]):
                raise GuaranteeBroken(contract, f"a finding of {what} is missing", about, str(after[-1:]))
        if not self._told and after != before:
            raise GuaranteeBroken(contract, f"{what} have a finding without a reason", "none", after[-1])


class _Connection:
    """The connection of a part to one broker."""

    def __init__(self, script: Script, name: str) -> None:
        self._script, self._name = script, name

    def call(self, request: Request, *, now_ms: int, timeout_ms: int) -> Call:
        """Send a request."""
        differs(16, "the time of a request", self._script.now_ms, now_ms)
        return self._script.call(self._name, request, timeout_ms)

    def notify(self, request: Request, *, now_ms: int) -> None:
        """Send a request without an answer."""
        differs(16, "the time of a request", self._script.now_ms, now_ms)
        self._script.call(self._name, request, 0)

    def notices(self) -> Sequence[MembersChanged]:
        """Return no notice: no broker sends one."""
        return ()

    def watch(self, wake: Callable[[], None]) -> None:
        """Ignore it: the driver steps the part."""

    def close(self) -> None:
        """Do nothing."""


def differs(contract: int, what: str, expected: object, found: object) -> None:
    """Raise GuaranteeBroken if the library gives something else than its model."""
    if expected != found:
        raise GuaranteeBroken(contract, f"{what} are not those of the model", str(expected), str(found))


def _values(value: Any) -> Any:
    """Return a value of the library in the words of the model."""
    if isinstance(value, Enum):
        return value.name
    if is_dataclass(value):
        return tuple(_values(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, Mapping):
        return tuple(sorted((_values(key), _values(each)) for key, each in value.items()))
    return tuple(map(_values, value)) if isinstance(value, list | tuple) else value


def _stored(offset: int, size: int, tag: str, original: str) -> StoredMessage:
    stored = message_at(_PULLED, offset, size, tag=tag).stored
    return replace(stored, properties={**stored.properties, "RETRY_TOPIC": original}) if original else stored


def _made(answer: tuple[Any, ...]) -> Answer:
    """Return an answer of the model in the values of the library."""
    match answer:
        case ("Done",):
            return requests.Done()
        case ("Refused", reason):
            return requests.Refused(requests.Refusal[reason], "drawn")
        case ("Routed", queues):
            return requests.Routed(tuple(MessageQueue(*queue) for queue in queues))
        case ("MembersFound", clients):
            return requests.MembersFound(tuple(clients))
        case ("Locked", leases):
            return requests.Locked({MessageQueue(*queue): Lease(*lease) for queue, lease in leases})
        case ("OffsetFound", status, offset, is_known):
            return requests.OffsetFound(requests.OffsetStatus[status], offset, is_known)
        case ("OffsetUpdated", status, offset):
            return requests.OffsetUpdated(requests.UpdateStatus[status], offset)
        case ("Bounds", least, most):
            return requests.Bounds(least, most)
        case ("Pulled", status, following, least, most, messages):
            stored = tuple(_stored(*message) for message in messages)
            return requests.Pulled(requests.PullStatus[status], following, least, most, stored)
        case ("SentBack", status):
            return requests.SentBack(requests.SendBackStatus[status])
    raise ValueError(answer)
