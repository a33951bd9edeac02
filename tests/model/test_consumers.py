"""Test the model of consumer groups: shares, what a crash leaves, and what events mean."""

from itertools import product

import pytest

from tornpage.model.consumers.allocation import by_machine_room, by_nearby_room, shares
from tornpage.model.consumers.events import Began, Crashed, Durable, Finished, Opened, Stored, StoredProgress
from tornpage.model.consumers.operations import GROUP_OPERATIONS
from tornpage.model.consumers.state import Entry, Group, Queue, Record
from tornpage.model.consumers.step import after, after_crash, first_unsettled, legal_progress, opened_with

Q, RETRY = Queue("T", 0), Queue("%RETRY%G", 0)


def texts(count: int) -> list[str]:
    """Return the texts that name the queues of topic `T` at `broker-a`."""
    return [f"MessageQueue [topic=T, brokerName=broker-a, queueId={number}]" for number in range(count)]


@pytest.mark.parametrize(("members", "owners"), [(1, "11111111"), (2, "12121121"), (3, "12331321"), (4, "42331321")])
def test_the_ring_is_that_of_java(members: int, owners: str) -> None:
    names = [f"10.0.0.{number}@1" for number in range(1, members + 1)]
    found = shares("CONSISTENT_HASH", texts(8), names)
    assert "".join(next(name[7] for name in names if place in found[name]) for place in range(8)) == owners


@pytest.mark.parametrize(
    ("queues", "members", "sizes"), [(8, 3, [3, 3, 2]), (8, 5, [2, 2, 2, 1, 1]), (3, 5, [1, 1, 1, 0, 0])]
)
def test_shares_on_average(queues: int, members: int, sizes: list[int]) -> None:
    found = shares("AVG", texts(queues), [f"c{number}" for number in range(members)])
    assert [len(share) for share in found.values()] == sizes


@pytest.mark.parametrize("strategy", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
def test_shares_are_disjoint_and_complete(strategy: str) -> None:
    for queues, members in product(range(1, 13), repeat=2):
        found = shares(strategy, texts(queues), [f"c{number}" for number in range(members)])
        assert sorted(place for share in found.values() for place in share) == list(range(queues))


def message(place: int, *, queue: Queue = Q, identity: int = -1, times: int = 0, level: int = 0) -> Stored:
    """Store a message of 100 bytes."""
    entry = Entry(place if identity < 0 else identity, times)
    return Stored(Record(100 * place, 100 * (place + 1), queue, entry, level))


def test_a_power_loss_leaves_every_prefix_from_the_durable_part_on() -> None:
    group = Group()
    for event in (message(0), message(1), Durable(100), message(2)):
        group = after(group, event)
    lost, killed = (after(group, Crashed(is_power_loss)) for is_power_loss in (True, False))
    assert [len(each.log) for each in after_crash(lost)] == [1, 2, 3]
    assert [len(each.log) for each in after_crash(killed)] == [3]
    inside = after(group, Crashed(is_power_loss=False, durable=0, log_end=200))
    assert [len(each.log) for each in after_crash(inside)] == [2, 3]


def test_progress_after_a_crash_is_one_that_it_had_within_the_queue() -> None:
    group = Group()
    for event in (message(0), message(1), StoredProgress(1, Q, 1, 1), StoredProgress(1, Q, 2, 2)):
        group = after(group, event)
    assert legal_progress(group, Q) == {0, 1, 2}
    lost = after(group, Crashed(is_power_loss=True))
    [kept] = [each for each in after_crash(lost) if len(each.log) == 1]
    assert legal_progress(kept, Q) == {0, 1}


def test_a_copy_settles_its_message_until_it_is_lost() -> None:
    group = Group()
    for event in (
        message(0), Began(1, 1, Q, (0,), (Entry(0),), 0), Finished(1, False, 0),
        message(1, queue=RETRY, identity=0, times=1, level=3),
    ):  # fmt: skip
        group = after(group, event)
    assert first_unsettled(group, Q) == 1
    assert group.entries(RETRY) == ()
    group = after(group, Crashed(is_power_loss=True))
    assert group.excused == {0}
    assert first_unsettled(opened_with(group, 200, {}), Q) == 1
    assert first_unsettled(opened_with(group, 100, {}), Q) == 0
    assert after(group, Opened(100, {Q: 0})) == opened_with(group, 100, {Q: 0})


def test_a_crash_inside_an_action_excuses_no_copy_of_that_action() -> None:
    group = after(after(Group(), message(0)), message(1, queue=RETRY, identity=0, times=1, level=3))
    assert after(group, Crashed(is_power_loss=True, durable=0, log_end=100)).excused == frozenset()


def test_each_operation_has_defaults() -> None:
    assert all(kind().op == name for name, kind in GROUP_OPERATIONS.items())


def test_queues_left_over_go_to_the_first_members_of_a_machine_room() -> None:
    found = by_machine_room([str(number) for number in range(8)], ["a", "b", "c"])
    assert found == {"a": [0, 1, 6], "b": [2, 3, 7], "c": [4, 5]}


def test_members_share_the_queues_of_their_room_and_all_share_those_of_an_empty_room() -> None:
    queues = ["one/0", "one/1", "two/2", "two/3", "two/4"]
    assert by_nearby_room(queues, ["one/a", "one/b"]) == {"one/a": [0, 2, 3], "one/b": [1, 4]}
    assert by_nearby_room(queues, ["one/a", "two/b"]) == {"one/a": [0, 1], "two/b": [2, 3, 4]}
