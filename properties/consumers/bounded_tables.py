"""Fill the tables of the broker that are bounded in memory (contracts 16 and 22).

They are filled once in a process.

| table | keeps | what is promised of an entry that is kept |
|---|---|---|
| claims given up | the newest 10,000 of all queues | a late claim with its token, or an older one, gets nothing |
| processes that left | the newest 1,000 of all groups | a late heartbeat does not add the process again |
| compiled filters | at most 256 of all subscriptions | the filter of a pull is compiled once |

An entry that is left out is forgotten whole, so its late request is granted. The expected answers follow from the order
of the calls alone.
"""

from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial
from typing import Any

from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.member_table import MemberTable
from tornpage.impl.consumer.queue_locks import QueueLocks
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Claim,
    Done,
    Heartbeat,
    Lease,
    Leave,
    Pull,
    Refusal,
    Refused,
    Subscription,
)
from tornpage.impl.parts import Parts
from tornpage.properties.consumers.host import BROKER, GROUP, TOPIC
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["filters_hold", "full_tables_hold", "tables_are_bounded"]

_GIVEN_UP_MAX, _LEFT_MAX, _FILTERS_MAX = 10_000, 1_000, 256
_QUEUE = MessageQueue(TOPIC, BROKER, 0)
_MORE = 2
"""Entries that do not fit."""


def tables_are_bounded(parts: Parts) -> None:
    """Judge the tables of a broker once in a process. Raises GuaranteeBroken."""
    full_tables_hold(parts.of(QueueLocks), parts.of(MemberTable))
    filters_hold(parts.of(ConsumerBroker))


@cache
def full_tables_hold(locks: Callable[..., QueueLocks], members: Callable[..., MemberTable]) -> None:
    """Judge both tables. Raises GuaranteeBroken."""
    _claims_given_up_hold(locks(live_ms=60_000, waits_until_ms=0))
    _processes_that_left_hold(members(timeout_ms=120_000))


def _claims_given_up_hold(locks: QueueLocks) -> None:
    """Give up more claims than fit, and a second one of the oldest process."""
    for number in range(_GIVEN_UP_MAX):
        _give_up(locks, number, "5")
    _give_up(locks, 0, "3")  # process 0 is the newest one now, and its higher token counts
    for number in range(_GIVEN_UP_MAX, _GIVEN_UP_MAX + _MORE):
        _give_up(locks, number, "5")
    forgotten = range(1, 1 + _MORE)
    for number in range(_GIVEN_UP_MAX + _MORE):
        if number not in forgotten:
            for token in ("4", "5"):
                found = _is_granted(locks, number, token)
                _is(22, f"a late claim {token} of process {number} is granted", found, False)
    _is(22, "a new claim of the newest process is granted", _is_granted(locks, 0, "6"), True)
    for number in forgotten:
        _is(22, f"the claim of forgotten process {number} is granted", _is_granted(locks, number, "5"), True)


def _give_up(locks: QueueLocks, number: int, token: str) -> None:
    unlock = partial(locks.unlock, GROUP, _QUEUE, Lease(token, 0), (f"p{number}", ""))
    _is(22, "a queue without an owner is unlocked", observed("unlock", unlock), False)


def _is_granted(locks: QueueLocks, number: int, token: str) -> bool:
    claim = partial(locks.claim, GROUP, Claim(_QUEUE, token), (f"p{number}", ""), 1, is_gone=lambda _: True)
    return observed("claim", claim) is not None


def _processes_that_left_hold(table: MemberTable) -> None:
    """Let more processes leave than fit."""
    count = _LEFT_MAX + _MORE
    for number in range(count):
        observed("leave", partial(table.leave, Leave(GROUP, f"i{number}"), f"c{number}"))
    for number in reversed(range(count)):
        heartbeat = Heartbeat(GROUP, f"i{number}", (Subscription(TOPIC),))
        answer = observed("heartbeat", partial(table.heartbeat, heartbeat, f"c{number}", 1))
        found = answer.reason if isinstance(answer, Refused) else answer
        wanted = Done() if number < _MORE else Refusal.SYSTEM_ERROR
        _is(16, f"the answer to a late heartbeat of process {number}", found, wanted)


class _Pulls:
    """A store without messages, which notes the filter of each pull."""

    def __init__(self) -> None:
        self.filters: list[Any] = []

    def subscription_groups(self) -> dict[str, Any]:
        """Return the configurations of groups, none here."""
        return {}

    def pull_async(self, *_: object, message_filter: Any, **__: object) -> Future[Any]:
        """Hold a pull."""
        self.filters.append(message_filter)
        return Future()


@cache
def filters_hold(broker_of: Callable[..., ConsumerBroker]) -> None:
    """Pull with more subscriptions than fit, of both kinds. Raises GuaranteeBroken."""
    store = _Pulls()
    broker = broker_of(store, now_ms=0)
    first = [_filter(broker, store, number) for number in range(_FILTERS_MAX)]
    again = [_filter(broker, store, number) for number in range(_FILTERS_MAX)]
    kept = sum(one is other for one, other in zip(first, again, strict=True))
    _is(16, "the number of filters that are compiled once", kept, _FILTERS_MAX)
    more = _filter(broker, store, _FILTERS_MAX)
    _is(16, "a filter that was just used is compiled again", _filter(broker, store, _FILTERS_MAX) is more, True)
    again = [_filter(broker, store, number) for number in range(_FILTERS_MAX)]
    is_full = all(one is other for one, other in zip(first, again, strict=True))
    _is(16, "more filters than fit are kept", is_full, False)
    for number in range(3):
        wrong = Subscription(TOPIC, f"t{number}", "ANOTHER")
        found = observed("handle", partial(broker.handle, Pull(GROUP, _QUEUE, 0, wrong), "c", 0))
        _is(16, "the answer to a filter of an unknown kind", getattr(found, "reason", found), Refusal.SYSTEM_ERROR)


def _filter(broker: ConsumerBroker, store: _Pulls, number: int) -> Any:
    """Pull with a subscription, and return the filter of the pull."""
    kind = "SQL92" if number % 2 else "TAG"
    subscription = Subscription(TOPIC, f"a = {number}" if number % 2 else f"t{number}", kind)
    observed("handle", partial(broker.handle, Pull(GROUP, _QUEUE, 0, subscription), "c", 0))
    return store.filters[-1]


def _is(contract: int, what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise GuaranteeBroken(contract, f"{what} is another one", str(wanted), str(found))
