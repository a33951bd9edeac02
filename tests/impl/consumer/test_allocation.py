"""Test the allocation strategies: vectors of 4.9.3, whole and disjoint shares, refusals."""

from collections.abc import Callable
from random import Random

import pytest

from tornpage.impl.consumer.allocation import (
    STRATEGIES,
    Configured,
    ConsistentHash,
    MachineRoom,
    MachineRoomNearby,
    Strategy,
    Unconsumed,
    averagely,
    averagely_by_circle,
    in_java_order,
)
from tornpage.impl.consumer.queues import MessageQueue

ALL = range(1, 17)


def queues_of(count: int, broker: str = "broker-a") -> list[MessageQueue]:
    return [MessageQueue("T", broker, queue_id) for queue_id in range(count)]


def clients_of(count: int) -> list[str]:
    return [f"10.0.0.{octet}@1" for octet in range(1, count + 1)]


def room_of_client(client: str) -> str:
    return f"r{int(client.partition('@')[0].rpartition('.')[2]) % 3}"


def room_of_queue(queue: MessageQueue) -> str:
    return f"r{queue.queue_id % 4}"


EVERY: dict[str, Strategy] = {
    **STRATEGIES,
    "MACHINE_ROOM": MachineRoom(frozenset({"r"})),
    "MACHINE_ROOM_NEARBY-AVG": MachineRoomNearby(averagely, room_of_queue, room_of_client),
    "MACHINE_ROOM_NEARBY-AVG_BY_CIRCLE": MachineRoomNearby(averagely_by_circle, room_of_queue, room_of_client),
}


@pytest.mark.parametrize(("count", "owners"), [(1, "11111111"), (2, "12121121"), (3, "12331321"), (4, "42331321")])
def test_consistent_hash_has_the_vectors_of_java(count: int, owners: str) -> None:
    queues, clients = queues_of(8), clients_of(count)
    shares = {client: ConsistentHash()(client, queues, clients) for client in clients}
    owner = {queue: client for client, share in shares.items() for queue in share}
    assert "".join(owner[queue].partition("@")[0][-1] for queue in queues) == owners


@pytest.mark.parametrize(("queues", "sizes"), [(8, [3, 3, 2]), (8, [2, 2, 2, 1, 1]), (3, [1, 1, 1, 0, 0])])
def test_averagely_has_the_sizes_of_java(queues: int, sizes: list[int]) -> None:
    clients = clients_of(len(sizes))
    assert [len(averagely(client, queues_of(queues), clients)) for client in clients] == sizes


def test_averagely_is_the_formula_of_the_specification() -> None:
    for count in ALL:
        for members in ALL:
            more = count % members
            for k, client in enumerate(sorted(clients_of(members))):
                size = 1 if count <= members else count // members + (k < more)
                start = k * size if more > 0 and k < more else k * size + more
                end = start + max(0, min(size, count - start))
                assert averagely(client, queues_of(count), clients_of(members)) == queues_of(count)[start:end]


@pytest.mark.parametrize("name", EVERY)
def test_members_of_one_view_share_all_queues_without_an_overlap(name: str) -> None:
    random = Random(1)
    for count in ALL:
        queues = queues_of(count, "r@b")
        for members in ALL:
            clients = clients_of(members)
            shares = [EVERY[name](client, queues, clients) for client in clients]
            assert sorted(queue for share in shares for queue in share) == queues
            random.shuffle(clients)
            mixed = random.sample(queues, count)
            assert [EVERY[name](client, mixed, clients) for client in clients_of(members)] == shares


@pytest.mark.parametrize("name", EVERY)
def test_a_client_outside_the_group_gets_nothing(name: str) -> None:
    assert EVERY[name]("10.0.0.9@1", queues_of(4, "r@b"), clients_of(2)) == []


@pytest.mark.parametrize("name", [*EVERY, "CONFIG"])
@pytest.mark.parametrize(
    ("me", "queues", "clients", "message"),
    [
        ("", 1, ["a"], "an allocation needs its client id"),
        ("a", 0, ["a"], "an allocation needs its queues"),
        ("a", 1, [], "an allocation needs its clients"),
        ("a", 1, ["a", "a"], "client 'a' occurs twice"),
    ],
)
def test_impossible_views_are_refused(name: str, me: str, queues: int, clients: list[str], message: str) -> None:
    every: dict[str, Strategy] = {**EVERY, "CONFIG": Configured(())}
    strategy = every[name]
    with pytest.raises(ValueError, match=message):
        strategy(me, queues_of(queues, "r@b"), clients)


def test_a_repeated_queue_is_refused() -> None:
    with pytest.raises(ValueError, match="occurs twice"):
        averagely("a", queues_of(1) * 2, ["a"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConsistentHash(0), "gives no queue to any"),
        (lambda: MachineRoom(frozenset()), "needs the names of its rooms"),
        (lambda: Configured((MessageQueue("T", "b", 0),) * 2), "occurs twice"),
    ],
)
def test_impossible_settings_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_machine_room_refuses_queues_that_no_member_would_consume() -> None:
    queues = [*queues_of(4, "r@b"), *queues_of(2, "other@b")]
    with pytest.raises(Unconsumed, match="other@b"):
        MachineRoom(frozenset({"r"}))("a", queues, ["a"])
    assert MachineRoom(frozenset({"r"}), leaves_others=True)("a", queues, ["a"]) == queues_of(4, "r@b")
    assert MachineRoom(frozenset({"r", "other"}))("a", queues, ["a"]) == in_java_order(queues)


@pytest.mark.parametrize(
    ("broker", "is_in"),
    [("r@b", True), ("r@b@", True), ("r@b@c", False), ("r", False), ("r@", False), ("@r", False), ("", False)],
)
def test_machine_room_reads_names_as_java_splits_them(broker: str, is_in: bool) -> None:
    share = MachineRoom(frozenset({"r"}), leaves_others=True)("a", [MessageQueue("T", broker, 0)], ["a"])
    assert bool(share) == is_in


def test_nearby_gives_a_room_without_clients_to_all() -> None:
    queues = queues_of(8)
    strategy = MachineRoomNearby(averagely, lambda queue: f"r{queue.queue_id // 4}", lambda client: client[:2])
    clients = ["r1-a", "r1-b", "r2-c"]
    assert strategy("r1-a", queues, clients) == [*queues[4:6], *queues[0:2]]
    assert strategy("r1-b", queues, clients) == [*queues[6:8], queues[2]]
    assert strategy("r2-c", queues, clients) == [queues[3]]


def test_nearby_refuses_a_room_without_a_name() -> None:
    with pytest.raises(ValueError, match="is in no room"):
        MachineRoomNearby(averagely, lambda queue: "", lambda client: "r")("a", queues_of(1), ["a"])
    with pytest.raises(ValueError, match="is in no room"):
        MachineRoomNearby(averagely, lambda queue: "r", lambda client: "")("a", queues_of(1), ["a"])


def test_configured_gives_queues_of_the_topic_only() -> None:
    other = MessageQueue("U", "broker-a", 0)
    strategy = Configured((queues_of(3)[2], other, queues_of(1)[0]))
    assert strategy("a", queues_of(3), ["a"]) == [queues_of(3)[2], queues_of(3)[0]]
    assert strategy("a", [other], ["a"]) == [other]


def test_queues_are_sorted_by_utf_16_units() -> None:
    """U+FF5E sorts after U+10000 in Java, because the latter begins with the unit D800."""
    above, below = MessageQueue("T", "\U00010000", 0), MessageQueue("T", "\uff5e", 0)
    assert in_java_order([below, above]) == [above, below]
    assert averagely("a", [below, above], ["a", "b"]) == [above]
    assert averagely("\U00010000", queues_of(1), ["\uff5e", "\U00010000"]) == queues_of(1)
    assert MessageQueue("T", "b", 7).java_text() == "MessageQueue [topic=T, brokerName=b, queueId=7]"
