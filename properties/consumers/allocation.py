"""Compare the shares that a strategy gives to members with those of the model (J4)."""

from functools import partial

from tornpage.impl.consumer.allocation import (
    STRATEGIES,
    Configured,
    MachineRoom,
    MachineRoomNearby,
    Strategy,
    averagely,
)
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.parts import Parts
from tornpage.model.consumers.allocation import by_machine_room, by_nearby_room, shares
from tornpage.properties.consumers import judge
from tornpage.properties.consumers.host import BROKER, TOPIC
from tornpage.properties.contract import observed

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


def _room_of(queue: MessageQueue) -> str:
    return queue.broker_name.partition("@")[0]
