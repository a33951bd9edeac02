"""Use the broker's part of membership alone, and compare it with the model (contract 16).

The requests and their arguments are drawn from a seed. Clients are in several groups, change their subscriptions, have
second processes, and vanish.
"""

from functools import partial
from random import Random
from typing import cast

from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.requests import (
    Answer,
    Done,
    Heartbeat,
    Leave,
    Members,
    MembersFound,
    Refused,
    Request,
    Subscription,
)
from tornpage.impl.consumer.settings import BrokerSettings
from tornpage.impl.parts import Parts
from tornpage.impl.store import MessageStore
from tornpage.model.consumers.membership import Member, Membership
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["use_members"]

_STEPS = 20
_EXPIRES_MS, _SCAN_MS = 120_000, 10_000
_GROUPS, _CLIENTS, _TOPICS = ("g", "h"), ("a", "b", "é"), ("T", "U")
_EXPRESSIONS = ("*", "*", "*", "A")
_VERBS = ("beat", "beat", "beat", "beat", "leave", "end", "time", "notices", "notices", "step")
_TIMES_MS = (1, 10_000, _EXPIRES_MS - 1, _EXPIRES_MS, _EXPIRES_MS + 1)


def use_members(seed: int, store: MessageStore, parts: Parts) -> None:
    """Send drawn requests about members to a new broker over a store, and judge the answers."""
    rng, now_ms = Random(seed), 1_000
    broker = parts.of(ConsumerBroker)(
        store, BrokerSettings(channel_expired_timeout=_EXPIRES_MS), now_ms=now_ms, parts=parts
    )
    model = Membership(_EXPIRES_MS)
    woken: dict[str, int] = {}
    watched: set[str] = set()
    for client in _CLIENTS[: rng.randrange(3)]:
        woken[client] = 0
        watched.add(client)
        broker.watch(client, partial(_count, woken, client))
    for _ in range(_STEPS):
        verb, group, client = rng.choice(_VERBS), rng.choice(_GROUPS), rng.choice(_CLIENTS)
        process, before = f"{client}{rng.choice((1, 1, 1, 2))}", dict(woken)
        known = model.notices
        match verb:
            case "beat":
                topics = rng.sample(_TOPICS, rng.randrange(1, 3))
                subscribed = {topic: rng.choice(_EXPRESSIONS) for topic in topics}
                member = Member(process, subscribed, is_broadcasting := rng.random() < 0.1, now_ms)
                model, refusal = model.heartbeat(group, client, member)
                subscriptions = tuple(Subscription(topic, text) for topic, text in sorted(subscribed.items()))
                request = Heartbeat(group, process, subscriptions, is_broadcasting)
                answer = _asked(broker, request, client, now_ms)
                found = answer.reason.name if isinstance(answer, Refused) else ""
                _is("the answer to a heartbeat", refusal or Done(), found or answer)
            case "leave":
                model = model.expired(now_ms).leave(group, client, process)
                _is("the answer to a leave", Done(), _asked(broker, Leave(group, process), client, now_ms))
            case "end":
                model = model.disconnect(client)
                observed("disconnect", partial(broker.disconnect, client))
                watched.discard(client)
            case "time" | "step":
                now_ms += rng.choice(_TIMES_MS) if verb == "time" else 0
                if verb == "step" or rng.random() < 0.5:
                    model = model.expired(now_ms)
                    _is("the time of the next step", now_ms + _SCAN_MS, observed("step", partial(broker.step, now_ms)))
            case "notices":
                model, notices = model.taken(client)
                found_notices = observed("notices", partial(broker.notices, client))
                _is("the notices of a client", notices, tuple(each.group for each in found_notices))
        if verb != "notices":
            _are_woken(model.notices - known, before, woken, watched)
        for name, topic in ((group, "T"), (group, "U")):
            model = model.expired(now_ms)
            answer = _asked(broker, Members(name, topic), client, now_ms)
            _is("the list of members", MembersFound(model.of(name, topic)), answer)


def _are_woken(
    new: frozenset[tuple[str, str]], before: dict[str, int], woken: dict[str, int], watched: set[str]
) -> None:
    """Each client that watches is woken after a new notice.

    None is woken after the end of its connection.
    """
    for client, count in woken.items():
        has_notice = any(name == client for _, name in new)
        if client in watched and has_notice and count == before[client]:
            raise GuaranteeBroken(16, f"client {client} is not woken by a notice", "a call", "none")
        if client not in watched and count > before[client]:
            raise GuaranteeBroken(16, f"client {client} is woken without a connection", "none", "a call")


def _count(woken: dict[str, int], client: str) -> None:
    woken[client] += 1


def _asked(broker: ConsumerBroker, request: Request, client: str, now_ms: int) -> Answer:
    return cast("Answer", observed("a request about members", partial(broker.handle, request, client, now_ms)))


def _is(what: str, expected: object, found: object) -> None:
    if found != expected:
        raise GuaranteeBroken(16, f"{what} is not that of the model", str(expected), str(found))
