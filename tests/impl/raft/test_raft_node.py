"""Test running members in virtual time: fail-over, partitions, limits, failed disks."""

import errno
import random
from itertools import pairwise
from typing import NoReturn

import pytest

from tests.support.impl.raft_groups import ROOM_BYTES, Group
from tornpage.impl.raft.answers import Answered, RaftStatus
from tornpage.properties.raft.memory import MemoryLog


def test_entries_are_committed_by_all_and_read_at_an_index() -> None:
    group = Group()
    leader = group.elect()
    first = group.append(leader, b"a"), group.append(leader, b"b")
    assert [group.answered(each).place for each in first] == [1, 2]
    assert group.answered(group.read(leader)) == Answered(RaftStatus.OK, 3, group.status(leader)["term"])
    group.until(lambda: all(group.status(each)["visible_end"] == 3 for each in range(3)))
    assert [group.bodies(each) for each in range(3)] == [[b"a", b"b"]] * 3


def test_a_follower_names_the_leader() -> None:
    group = Group()
    leader = group.elect()
    follower = (leader + 1) % 3
    assert group.answered(group.append(follower, b"a")).status is RaftStatus.NOT_LEADER
    assert group.answered(group.read(follower)).status is RaftStatus.NOT_LEADER
    assert (group.status(follower)["leader"], group.status(follower)["leader_clients"]) == (
        leader,
        f"127.0.0.1:{2000 + leader}",
    )


@pytest.mark.parametrize("silently", [False, True])
def test_another_member_leads_after_a_kill(silently: bool) -> None:
    group = Group()
    leader = group.elect()
    group.appended(leader, b"a")
    group.kill(leader, silently=silently)
    began = group.now_ms
    group.until(lambda: group.leader() is not None)
    assert group.now_ms - began <= 2 * group.settings.election_timeout_max
    group.appended(group.elect(), b"b")
    group.start(leader)
    group.until(lambda: group.bodies(leader) == [b"a", b"b"])


def test_a_batch_takes_one_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group()
    leader = group.elect()
    syncs: list[int] = []
    sync = MemoryLog.sync

    def counted(log: MemoryLog) -> None:
        syncs.append(log.end)
        sync(log)

    monkeypatch.setattr(MemoryLog, "sync", counted)
    asked = [group.append(leader, bytes([each])) for each in range(1, 40)]
    assert [group.answered(each).status for each in asked] == [RaftStatus.OK] * 39
    assert syncs == [40] * 3


def test_a_leader_without_a_majority_answers_no_read_and_takes_no_entry() -> None:
    group = Group()
    leader = group.elect()
    group.isolate(leader)
    lost, late = group.append(leader, b"lost"), group.read(leader)
    assert group.answered(lost).status is RaftStatus.UNKNOWN
    assert group.answered(late).status is RaftStatus.NO_MAJORITY
    assert group.answered(group.append(leader, b"x")).status is RaftStatus.NO_MAJORITY
    assert group.answered(group.read(leader)).status is RaftStatus.NO_MAJORITY
    new = group.elect()
    assert new != leader
    group.appended(new, b"kept")
    group.cut.clear()
    group.until(lambda: group.bodies(leader) == [b"kept"])
    assert group.status(leader)["role"] == "follower"


def test_a_leader_that_hears_nobody_is_replaced() -> None:
    """Otherwise its heartbeats would keep the others from an election without end."""
    group = Group()
    leader = group.elect()
    group.cut |= {(each, leader) for each in range(3) if each != leader}
    group.until(lambda: group.leader() not in (None, leader))


def test_an_entry_is_unknown_after_its_leader_loses_the_role() -> None:
    group = Group(answer_timeout=60_000)
    leader = group.elect()
    group.isolate(leader)
    asked = group.append(leader, b"x")
    group.step(2)
    read = group.read(leader)
    group.step(2)
    group.until(lambda: group.leader() not in (None, leader))
    assert not asked.done()
    group.cut.clear()
    assert group.answered(asked).status is RaftStatus.UNKNOWN
    assert group.answered(read).status is RaftStatus.NOT_LEADER


def test_limits_of_requests() -> None:
    group = Group(body_bytes_max=100, pending_max=3, pending_bytes_max=150)
    leader = group.elect()
    assert group.answered(group.append(leader, bytes(101))).status is RaftStatus.TOO_LARGE
    many = [group.answered(each).status for each in [group.append(leader, b"x") for _ in range(5)]]
    assert many == [RaftStatus.OK] * 3 + [RaftStatus.BUSY] * 2
    large = [group.answered(each).status for each in [group.append(leader, bytes(99)) for _ in range(2)]]
    assert large == [RaftStatus.OK, RaftStatus.BUSY]
    group.appended(leader, bytes(99))
    with pytest.raises(ValueError, match="at least one byte"):
        group.append(leader, b"")


def test_memory_for_a_member_that_takes_nothing_is_bounded() -> None:
    group = Group(unsent_bytes_max=4_000, recent_bytes_max=4_000, batch_bytes_max=2_000, silence_max=60_000)
    leader = group.elect()
    hung = (leader + 1) % 3
    group.members[hung].node = None  # it does not read; its links stay
    for each in range(400):
        group.appended(leader, bytes([each % 255 + 1]) * 100)
    assert sum(len(way) for link in group.network.links for way in link.waiting) < 2 * ROOM_BYTES
    rows = {row["member"]: row for row in group.status(leader)["peers"]}
    assert (rows[hung]["dropped"] > 0, rows[hung]["finding"]) == (True, "")
    group.kill(hung)
    group.start(hung)
    group.until(lambda: len(group.bodies(hung)) == 400)


def test_a_link_on_which_nothing_is_answered_ends() -> None:
    group = Group(silence_max=2_000)
    leader = group.elect()
    hung = (leader + 1) % 3
    group.members[hung].node = None
    group.step(250)
    rows = {row["member"]: row for row in group.status(leader)["peers"]}
    assert rows[hung]["finding"] == "no PING was answered for 2010 ms"
    found = [each.partition(": ")[2] for each in group.status(leader)["findings"]]
    assert found == ["nothing was received for 2010 ms"]


@pytest.mark.parametrize("error", [OSError(errno.EIO, "no disk"), ValueError("no disk")])
def test_a_failed_sync_ends_the_member(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group()
    leader = group.elect()

    def fails() -> None:
        raise error

    monkeypatch.setattr(group.members[leader].log, "sync", fails)
    asked = group.append(leader, b"x")
    assert group.answered(asked).status is RaftStatus.UNKNOWN
    assert "no disk" in group.node(leader).failure
    assert group.append(leader, b"y").result().status is RaftStatus.STOPPED
    assert group.node(leader).transfer(0).result().status is RaftStatus.STOPPED
    new = group.elect()
    assert new != leader
    group.appended(new, b"z")


def test_a_process_that_was_stopped_begins_no_election() -> None:
    group = Group()
    leader = group.elect()
    term = group.status(leader)["term"]
    follower = group.members[(leader + 1) % 3]
    node, follower.node = follower.node, None
    group.step(500)
    follower.node = node
    group.step(100)
    assert (group.leader(), group.status(leader)["term"]) == (leader, term)


def test_leadership_is_transferred_on_request_and_at_a_close() -> None:
    group = Group()
    leader = group.elect()
    group.appended(leader, b"a")
    group.step(20)
    to = (leader + 1) % 3
    assert group.answered(group.node(to).transfer(to)).status is RaftStatus.NOT_LEADER
    assert group.answered(group.node(leader).transfer(to)).status is RaftStatus.OK
    group.until(lambda: group.leader() == to, limit_ms=500)
    group.elect()
    group.step(20)
    began = group.now_ms
    group.node(to).close(group.now_ms)
    group.members[to].node = None
    group.until(lambda: group.leader() not in (None, to))
    assert group.now_ms - began < group.settings.election_timeout_min


def test_a_failed_transfer_is_answered() -> None:
    group = Group()
    leader = group.elect()
    group.step(20)
    entries = group.members[leader].entries
    assert entries is not None

    def failing(to: int) -> NoReturn:
        raise OSError(errno.EIO, "a member that takes no events")

    entries.transfer = failing  # type: ignore[method-assign]
    asked = [group.node(leader).transfer(each) for each in range(3)]
    group.node(leader).step(group.now_ms)
    assert [each.result(0).status for each in asked] == [RaftStatus.STOPPED] * 3


def test_a_group_of_one_needs_no_other() -> None:
    group = Group(1)
    leader = group.elect()
    assert group.now_ms < 100
    group.appended(leader, b"a")
    assert group.answered(group.read(leader)).place == 2


@pytest.mark.parametrize("seed", range(12))
def test_no_acknowledged_entry_is_lost_in_drawn_runs(seed: int) -> None:
    """Kills, power losses, partitions and transfers, through frames and links."""
    rng = random.Random(seed)
    members = rng.choice((3, 3, 5))
    group = Group(members, seed=seed, recent_bytes_max=200, batch_bytes_max=300)
    acknowledged: dict[int, bytes] = {}
    asked = []
    for number in range(1, 120):
        me = rng.randrange(members)
        down = [each for each in range(members) if group.members[each].node is None]
        match rng.randrange(8):
            case 0 if len(down) < members // 2:
                if me not in down:
                    group.kill(me, power=rng.random() < 0.5, silently=rng.random() < 0.3)
            case 1 if down:
                group.start(rng.choice(down))
            case 2:
                group.isolate(me)
            case 3 if rng.random() < 0.7:
                group.cut.clear()
            case 4 if me not in down:
                group.node(me).transfer(rng.randrange(members))
            case _:
                leader = group.leader()
                if leader is not None:
                    body = number.to_bytes(2, "big") * rng.randint(1, 40)
                    asked.append((group.append(leader, body), body))
        group.step(rng.choice((1, 1, 2, 5, 80)))
        for answer, body in asked:
            if answer.done() and answer.result().status is RaftStatus.OK:
                acknowledged[answer.result().place] = body
    group.cut.clear()
    for each in range(members):
        if group.members[each].node is None:
            group.start(each)
    group.appended(group.elect(), b"last")
    group.until(
        lambda: len({(group.status(each)["end"], group.status(each)["visible_end"]) for each in range(members)}) == 1
    )
    logs = [each.log.rows for each in group.members]
    assert all(one == other for one, other in pairwise(logs))
    assert {place: logs[0][place].body for place in acknowledged} == acknowledged
