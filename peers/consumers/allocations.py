"""Cases of allocation: all numbers of queues and clients up to 16, and drawn names.

Source: `impl/consumer/allocation.py`, breach C23.
"""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from random import Random
from typing import Any

from tornpage.impl.consumer.allocation import (
    STRATEGIES,
    Configured,
    ConsistentHash,
    MachineRoom,
    MachineRoomNearby,
    Strategy,
    Unconsumed,
)
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.peers.consumers.suites import Case, Suite

__all__ = ["DRAWN", "DRAWN_NAMES", "EXHAUSTIVE", "NAMES", "Q_MAX"]

Q_MAX = 16
DRAWN_NAMES = 10_000
_CHUNK = 100
NAMES = (
    "AVG",
    "AVG_BY_CIRCLE",
    "CONSISTENT_HASH",
    "MACHINE_ROOM",
    "CONFIG",
    "MACHINE_ROOM_NEARBY-AVG",
    "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE",
    "MACHINE_ROOM_NEARBY-CONSISTENT_HASH",
)
_ALPHABET = "abzAZ09-_%@.@ \x00é\u07ff中\uffee\U00010000\U0001f600"
_REFUSED = "IllegalArgumentException"


@lru_cache(maxsize=2)
def exhaustive_cases(seed: int, chunk: int) -> tuple[Case, ...]:
    """Return the cases of one strategy: each number of queues and of clients.

    They do not depend on the seed.
    """
    return tuple(
        _case(
            NAMES[chunk],
            [["T", f"r{queue % 3}@b{queue % 2}", queue] for queue in range(queues)],
            [f"r{client % 4}@10.0.0.{client}" for client in range(1, clients + 1)],
            rooms=["r0", "r1", "r2"] if clients % 2 else ["r0", "r2"],
            listed=[["T", f"r{queue % 3}@b{queue % 2}", queue] for queue in range(clients % 5, 20, 2)],
            virtual_nodes=10,
        )
        for queues in range(1, Q_MAX + 1)
        for clients in range(1, Q_MAX + 1)
    )


@lru_cache(maxsize=2)
def drawn_cases(seed: int, chunk: int) -> tuple[Case, ...]:
    """Return cases with drawn names, each strategy in turn."""
    random = Random(f"names {seed} {chunk}")
    return tuple(_drawn(random, NAMES[(chunk * _CHUNK + place) % len(NAMES)]) for place in range(_CHUNK))


def _drawn(random: Random, name: str) -> Case:
    topics = [_text(random)] if random.random() < 0.9 else [_text(random), _text(random)]
    brokers = [_text(random) for _ in range(random.randint(1, 4))]
    if "ROOM" in name:
        brokers = [f"{random.choice('abc')}@{broker}" if random.random() < 0.8 else broker for broker in brokers]
    every = [[random.choice(topics), random.choice(brokers), random.randrange(200)] for _ in range(24)]
    unique = [list(row) for row in dict.fromkeys(tuple(row) for row in every)]
    queues = unique[: random.choice([0, *range(1, Q_MAX + 1)])] if random.random() < 0.3 else unique[:Q_MAX]
    clients = list(dict.fromkeys(_client(random) for _ in range(random.randint(1, Q_MAX))))
    random.shuffle(unique)
    return _case(
        name, queues, clients,
        rooms=random.choice([["a"], ["a", "b"], ["a", "b", "c"], ["c", ""]]),
        listed=unique[: random.randint(0, len(unique))],
        virtual_nodes=random.choice([1, 2, 10, 10, 10, 33]),
    )  # fmt: skip


def _text(random: Random) -> str:
    return "".join(random.choices(_ALPHABET, k=random.randint(1, 12)))


def _client(random: Random) -> str:
    if random.random() < 0.5:
        return f"{random.choice('abcd')}@{random.randrange(1, 99999)}"
    return f"10.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(256)}@{_text(random)}"


def _case(
    name: str, queues: list[Any], clients: list[str], *, rooms: list[str], listed: list[Any], virtual_nodes: int
) -> Case:
    outsider = "outside@" + clients[0]
    settings = {"rooms": rooms, "listed": listed, "virtualNodes": virtual_nodes}
    return {"strategy": name, "queues": queues, "clients": clients, "ask": [*clients, outsider], **settings}


def _strategy(case: Case, name: str, *, leaves_others: bool) -> Strategy:
    if name.startswith("MACHINE_ROOM_NEARBY-"):
        inner = _strategy(case, name.removeprefix("MACHINE_ROOM_NEARBY-"), leaves_others=leaves_others)
        return MachineRoomNearby(inner, lambda queue: _room(queue.broker_name), _room)
    if name == "CONSISTENT_HASH":
        return ConsistentHash(case["virtualNodes"])
    if name == "MACHINE_ROOM":
        return MachineRoom(frozenset(case["rooms"]), leaves_others=leaves_others)
    if name == "CONFIG":
        return Configured(tuple(MessageQueue(*row) for row in case["listed"]))
    return STRATEGIES[name]


def _room(name: str) -> str:
    return name.partition("@")[0]


def _ours(case: Case) -> dict[str, Any]:
    shares = _shares(case, leaves_others=True)
    if case["strategy"] == "MACHINE_ROOM":
        return {"shares": shares, "checked": _shares(case, leaves_others=False)}
    return {"shares": shares}


def _shares(case: Case, *, leaves_others: bool) -> list[Any]:
    """Return the share of each asking client, as places in the queues, or its refusal."""
    strategy = _strategy(case, case["strategy"], leaves_others=leaves_others)
    queues = [MessageQueue(*row) for row in case["queues"]]
    shares: list[Any] = []
    for client in case["ask"]:
        try:
            shares.append([queues.index(queue) for queue in strategy(client, queues, case["clients"])])
        except Unconsumed:
            shares.append("Unconsumed")
        except ValueError:
            shares.append(_REFUSED)
    return shares


def _mended(case: Case, java: dict[str, Any], applied: Counter[str]) -> dict[str, Any]:
    """Return the answer that ours has to give, and count the rules that changed it."""
    if java["name"] != case["strategy"]:
        raise ValueError(f"{case['strategy']} is {java['name']} in Java")
    shares = java["shares"]
    if case["strategy"] == "CONFIG":
        own = [[place for place in share if isinstance(place, int)] for share in shares]
        applied["CONFIG"] += own != shares
        shares = own
    if not case["queues"]:
        refused = [_REFUSED for _ in shares]
        applied["empty"] += refused != shares
        shares = refused
    if case["strategy"] != "MACHINE_ROOM":
        return {"shares": shares}
    consumed = {place for share in shares for place in share}
    is_whole = not case["queues"] or len(consumed) == len(case["queues"])
    applied["MACHINE_ROOM"] += not is_whole
    return {"shares": shares, "checked": shares if is_whole else ["Unconsumed" for _ in shares]}


CHECKS: Mapping[str, str] = {
    "MACHINE_ROOM": "ours raises for each member if a queue would be consumed by no member; with that check off it is "
    "equal, and each case is asked in both ways",
    "CONFIG": "Java returns the whole list, ours the queues of it that the topic has",
}
RULES: Mapping[str, str] = {
    **CHECKS,
    "empty": "Java's MACHINE_ROOM and CONFIG accept an empty list of queues; ours refuses it, as other strategies do",
}


def _asks(case: Case) -> int:
    return len(case["ask"])


EXHAUSTIVE = Suite("allocation", "allocate", len(NAMES), exhaustive_cases, _ours, _mended, CHECKS, _asks)
DRAWN = Suite("names", "allocate", DRAWN_NAMES // _CHUNK, drawn_cases, _ours, _mended, RULES, _asks)
