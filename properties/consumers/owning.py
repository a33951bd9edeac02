"""Use the broker's table of owners, and compare it with the model (contracts 20, 22).

The operations and their arguments are drawn from a seed. Requests are late, repeated, and of former owners.
"""

from functools import partial
from random import Random

from tornpage.impl.consumer.queue_locks import QueueLocks
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import Claim, Lease
from tornpage.impl.parts import Parts
from tornpage.model.consumers.owners import Owners
from tornpage.properties.consumers.host import BROKER, GROUP, TOPIC
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["use_owners"]

_STEPS = 24
_LIVE_MS = 60_000
_PROCESSES = ("a", "b")
_VERBS = ("claim", "claim", "claim", "again", "again", "renew", "unlock", "unlock", "pull", "void", "time", "member")
_TIMES_MS = (1, 999, 30_000, _LIVE_MS - 1, _LIVE_MS, _LIVE_MS + 1)


def use_owners(seed: int, parts: Parts) -> None:
    """Carry out drawn requests on the owners of the store and on those of the model."""
    rng, now_ms = Random(seed), 1_000
    waits_until_ms = rng.choice((0, now_ms + 1_000))
    locks = parts.of(QueueLocks)(live_ms=_LIVE_MS, waits_until_ms=waits_until_ms)
    owners, members = Owners(_LIVE_MS, waits_until_ms), frozenset(_PROCESSES)
    tokens: list[tuple[int, str, str]] = []  # queue, process and token of each claim
    leases: list[tuple[int, str, Lease, int]] = []  # and the granted ones, with the numbers of the model
    for number in range(_STEPS):
        verb, waits = rng.choice(_VERBS), rng.random() < 0.5
        queue, process = rng.randrange(2), rng.choice(_PROCESSES)
        match verb:
            case "claim" | "again":
                if verb == "again" and tokens:
                    queue, process, token = rng.choice(tokens)
                else:
                    token = f"{number:04d}"
                    tokens.append((queue, process, token))
                owners, expected = owners.claim(queue, process, token, now_ms, waits=waits, members=members)
                gone = None if waits else _is_gone(members)
                claim = partial(locks.claim, GROUP, Claim(_queue(queue), token), (process, ""), now_ms, is_gone=gone)
                found = observed("claim", claim)
                _is("a claim", None if expected is None else token, None if found is None else found.token)
                if found is not None and expected is not None:
                    _has_own_epoch(found, expected, leases)
                    leases.append((queue, process, found, expected))
            case "renew" if leases:
                queue, _, lease, granted = rng.choice(leases)
                owners, is_renewed = owners.renew(queue, lease.token, granted, now_ms)
                renewed = observed("renew", partial(locks.renew, GROUP, _queue(queue), lease, now_ms))
                _is("a renewal", is_renewed, renewed)
            case "unlock" if leases:
                queue, process, lease, granted = rng.choice(leases)
                if rng.random() < 0.3:
                    lease, granted = Lease(lease.token, 0), 0
                owners, is_unlocked = owners.unlock(queue, process, lease.token, granted)
                unlock = partial(locks.unlock, GROUP, _queue(queue), lease, (process, ""))
                _is("an unlock", is_unlocked, observed("unlock", unlock))
            case "pull" if queue in owners.owned:
                owners = owners.pulled(queue)
                observed("note_pull", partial(locks.note_pull, GROUP, _queue(queue)))
            case "void":
                owners = owners.void(queue, if_pulled=waits)
                observed("void", partial(locks.void, GROUP, _queue(queue), if_pulled=waits))
            case "time":
                now_ms += rng.choice(_TIMES_MS)
            case "member":
                members ^= {process}
        for queue, _, lease, granted in leases:
            owns = observed("is_owner", partial(locks.is_owner, GROUP, _queue(queue), lease))
            _is(f"the owner after {verb}", owners.owns(queue, lease.token, granted), owns)


def _has_own_epoch(found: Lease, number: int, leases: list[tuple[int, str, Lease, int]]) -> None:
    """Compare the order of epochs with that of the grants."""
    for _, _, lease, granted in leases:
        order = (lease.epoch > found.epoch) - (lease.epoch < found.epoch)
        _is("the order of epochs", (granted > number) - (granted < number), order)


def _is_gone(members: frozenset[str]):  # type: ignore[no-untyped-def]
    return lambda process: process[0] not in members


def _queue(number: int) -> MessageQueue:
    return MessageQueue(TOPIC, BROKER, number)


def _is(what: str, expected: object, found: object) -> None:
    if found != expected:
        raise GuaranteeBroken(22, f"{what} of a queue is not that of the model", str(expected), str(found))
