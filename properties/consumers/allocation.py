"""Compare the shares that a strategy gives to members with those of the model (J4)."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tornpage.impl.consumer.allocation import (
    STRATEGIES,
    Configured,
    ConsistentHash,
    MachineRoom,
    MachineRoomNearby,
    Strategy,
    Unconsumed,
    averagely,
)
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.parts import Parts
from tornpage.model.consumers.allocation import by_machine_room, by_nearby_room, shares
from tornpage.properties.consumers import judge
from tornpage.properties.consumers.host import BROKER, TOPIC
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["judge_allocation"]


def judge_allocation(strategy: str, queues: int, members: int, *, parts: Parts) -> None:
    """Let each member of a view compute its share, and judge all shares (J4).

    The first half of the queues is in one room, the second half in another. Members are in both rooms in turn.
    """
    names = [f"10.0.0.{members - number}@1" for number in range(members)]
    is_by_room = strategy in ("MACHINE_ROOM", "MACHINE_ROOM_NEARBY")
    rooms = [f"r{2 * number // queues}" if is_by_room else "" for number in range(queues)]
    listed = [MessageQueue(TOPIC, f"{room}@{BROKER}" if room else BROKER, n) for n, room in enumerate(rooms)]
    texts = [f"MessageQueue [topic={TOPIC}, brokerName={BROKER}, queueId={number}]" for number in range(queues)]
    near = {name: f"r{number % 2}" for number, name in enumerate(sorted(names))}
    ways: dict[str, Strategy] = {}
    match strategy:
        case "MACHINE_ROOM":
            ways = dict.fromkeys(names, MachineRoom(frozenset(rooms)))
            expected = by_machine_room(texts, sorted(names))
        case "MACHINE_ROOM_NEARBY":
            ways = dict.fromkeys(names, MachineRoomNearby(averagely, _room_of, near.__getitem__))
            members_in = {f"{near[name]}/{name}": name for name in sorted(names)}
            found_near = by_nearby_room([f"{room}/{n}" for n, room in enumerate(rooms)], list(members_in))
            expected = {members_in[member]: share for member, share in found_near.items()}
        case "CONFIG":
            ways = {name: Configured(tuple(listed[n::members])) for n, name in enumerate(names)}
            expected = {name: list(range(n, queues, members)) for n, name in enumerate(names)}
        case _ if strategy in STRATEGIES:
            ways = dict.fromkeys(names, parts.of(STRATEGIES[strategy]))
            expected = shares(strategy, texts, names)
        case _:
            return
    found = {}
    for place, name in enumerate(names):
        view = names[place:] + names[:place]
        answer = observed("allocate", partial(ways[name], name, listed[::-1], view))
        found[name] = [queue.queue_id for queue in answer]
    judge.shares_are_those_of_the_strategy(found, expected, queues=queues, strategy=strategy)
    _others_get_nothing(strategy, ways[names[0]], listed, names)
    _views_are_checked(ways[names[0]], listed, names)
    _settings_are_checked(listed)
    _order_is_that_of_java(parts)


def _others_get_nothing(strategy: str, way: Strategy, listed: list[MessageQueue], names: list[str]) -> None:
    """Contract 22 (J4): a client that is not in the view gets no queue without configuration."""
    found = observed("allocate", partial(way, "other", listed, names))
    if strategy != "CONFIG" and found:
        raise GuaranteeBroken(22, f"a client that is no member gets queues by {strategy}", "none", str(found))


def _views_are_checked(way: Strategy, listed: list[MessageQueue], names: list[str]) -> None:
    """Contract 8: a view without its parts, or with one of them twice, is refused."""
    me = names[0]
    views: dict[str, tuple[str, list[MessageQueue], list[str]]] = {
        "no client id": ("", listed, names),
        "no queues": (me, [], names),
        "no clients": (me, listed, []),
        "a queue twice": (me, [*listed, listed[-1]], names),
        "a client twice": (me, listed, [*names, names[-1]]),
    }
    for what, view in views.items():
        _is_refused(f"a view with {what}", partial(way, *view), ValueError)


def _settings_are_checked(listed: list[MessageQueue]) -> None:
    """Contract 8: strategies that leave a queue without a reader are refused."""
    _is_refused("a machine room without a name", partial(MachineRoom, frozenset()), ValueError)
    _is_refused("a ring without nodes", partial(ConsistentHash, 0), ValueError)
    _is_refused("a queue that is configured twice", partial(Configured, (listed[0], listed[0])), ValueError)
    nowhere = MachineRoomNearby(averagely, lambda _: "", lambda _: "r0")
    listed_once: Any = iter(listed)
    if observed("allocate", partial(Configured(listed_once), "c", listed, ["c"])) != listed:
        raise GuaranteeBroken(22, "queues that are given by an iterator are not all configured", str(listed))
    _is_refused("a queue without a room", partial(nowhere, "c", listed, ["c"]), ValueError)
    roomless = MachineRoomNearby(averagely, lambda _: "r0", lambda _: "")
    _is_refused("a client without a room", partial(roomless, "c", listed, ["c"]), ValueError)
    for broker, room in (("r0@b", "r0"), ("r0@b@", "r0"), ("r0", ""), ("r0@b@c", ""), ("@b", ""), ("r1@b", "")):
        queue, rooms = MessageQueue(TOPIC, broker, 0), frozenset({"r0", "other"})
        lenient = observed("allocate", partial(MachineRoom(rooms, leaves_others=True), "c", [queue], ["c"]))
        if lenient != ([queue] if room else []):
            raise GuaranteeBroken(22, f"the room of {broker} is wrong", room or "none", str(lenient))
        strict = partial(MachineRoom(rooms), "c", [queue], ["c"])
        if not room:
            _is_refused(f"a queue of {broker} outside the rooms", strict, Unconsumed)
        elif observed("allocate", strict) != [queue]:
            raise GuaranteeBroken(22, f"a queue of {broker} is left without a reader", str(queue))


def _order_is_that_of_java(parts: Parts) -> None:
    """Contract 22 (J4): queues and clients have the order of Java, by UTF-16 code units."""
    names = ["\uffff", "\U0001f600"]
    queues = [MessageQueue(topic, BROKER, number) for topic in names for number in (10, 9)]
    expected = [MessageQueue(names[1], BROKER, 9), MessageQueue(names[1], BROKER, 10)]
    found = observed("allocate", partial(parts.of(averagely), names[1], queues, names))
    if found != expected:
        raise GuaranteeBroken(22, "names are not in the order of Java", str(expected), str(found))


def _is_refused(what: str, act: Callable[[], object], kind: type[ValueError]) -> None:
    try:
        found = act()
    except kind:
        return
    except Exception as error:  # another error is a wrong answer
        found = error
    raise GuaranteeBroken(8, f"{what} is not refused", kind.__name__, repr(found))


def _room_of(queue: MessageQueue) -> str:
    return queue.broker_name.partition("@")[0]
