"""A Raft group in one thread: virtual time, a network in memory, kills and restarts."""

import random
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from tornpage.impl.raft.answers import Answered, RaftStatus
from tornpage.impl.raft.entries import RaftEntries
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.node import RaftNode
from tornpage.impl.raft.recent import RecentEntries
from tornpage.impl.raft.settings import RaftSettings
from tornpage.properties.cluster.network import RecordedNetwork
from tornpage.properties.raft.links import ROOM_BYTES, MemberNetwork, address_of
from tornpage.properties.raft.memory import MemoryHardState, MemoryLog

__all__ = ["ROOM_BYTES", "Group", "Member", "address_of"]

STEP_MS = 10


class Member:
    """One member: what lasts on its disk, and the node if it runs."""

    def __init__(self, batch: int) -> None:
        self.log = MemoryLog([], 0, batch)
        self.hard_state = MemoryHardState(0, None)
        self.node: RaftNode | None = None
        self.entries: RaftEntries | None = None


class Group:
    """Members in virtual time. `cut` has directions (source, receiver) that deliver nothing."""

    def __init__(self, members: int = 3, *, seed: int = 0, **settings: Any) -> None:
        self.settings = RaftSettings(peers=tuple(map(address_of, range(members))), **settings)
        self.now_ms = 0
        self.cut: set[tuple[int, int]] = set()
        self.network = RecordedNetwork()
        self.rng = random.Random(seed)
        self.members = [Member(50) for _ in range(members)]
        for me in range(members):
            self.start(me)

    def start(self, me: int) -> RaftNode:
        """Start a member from what its disk has."""
        each = self.members[me]
        log = RecentEntries(each.log, self.settings.recent_bytes_max)
        member = RaftMember(me, len(self.members), log, each.hard_state, batch_bytes_max=self.settings.batch_bytes_max)
        each.entries = RaftEntries(member, self.settings, lambda: None)
        each.node = RaftNode(
            each.entries,
            self.settings,
            network=MemberNetwork(self.network, me, self.cut),
            rng=random.Random(self.rng.random()),
            now_ms=self.now_ms,
            clients=f"127.0.0.1:{2000 + me}",
        )
        return each.node

    def kill(self, me: int, *, power: bool = False, silently: bool = False) -> None:
        """End the process of a member. A power loss takes the entries that are not durable."""
        each = self.members[me]
        each.node = each.entries = None
        self.network.drop(me, address_of(me), silently=silently)
        kept = each.log.rows[: each.log.synced] if power else each.log.rows
        each.log = MemoryLog(kept, len(kept), 50)
        each.hard_state = MemoryHardState(*each.hard_state.lasting)

    def isolate(self, me: int) -> None:
        """Deliver nothing between a member and the others."""
        others = [each for each in range(len(self.members)) if each != me]
        self.cut |= {(me, each) for each in others} | {(each, me) for each in others}

    # ---- time ----------------------------------------------------------------------------------------------------

    def step(self, count: int = 1) -> None:
        """Let some rounds pass."""
        for _ in range(count):
            self.now_ms += STEP_MS
            for each in self.members:
                if each.node is not None:
                    each.node.step(self.now_ms)

    def until(self, holds: Callable[[], bool], limit_ms: int = 20_000) -> None:
        """Step until something holds."""
        limit = self.now_ms + limit_ms
        while not holds():
            assert self.now_ms < limit, "it did not happen in time"
            self.step()

    # ---- roles and requests --------------------------------------------------------------------------------------

    def leader(self) -> int | None:
        """Return the running leader of the newest term."""
        found = [
            (each.node.status()["term"], me)
            for me, each in enumerate(self.members)
            if each.node is not None and each.node.status()["role"] == "leader" and not each.node.failure
        ]
        return max(found)[1] if found else None

    def elect(self) -> int:
        """Step until a leader has committed an entry of its term, and return it."""

        def has_leader() -> bool:
            leader = self.leader()
            return leader is not None and self.status(leader)["commit_end"] == self.status(leader)["end"]

        self.until(has_leader)
        leader = self.leader()
        assert leader is not None
        return leader

    def node(self, me: int) -> RaftNode:
        """Return the running node of a member."""
        node = self.members[me].node
        assert node is not None
        return node

    def status(self, me: int) -> dict[str, Any]:
        """Return the status of a member."""
        return self.node(me).status()

    def append(self, me: int, body: bytes) -> "Future[Answered]":
        """Ask a member for an entry."""
        entries = self.members[me].entries
        assert entries is not None
        return entries.append(body)

    def read(self, me: int) -> "Future[Answered]":
        """Ask a member for a read."""
        entries = self.members[me].entries
        assert entries is not None
        return entries.read()

    def answered(self, asked: "Future[Answered]") -> Answered:
        """Step until a request is answered, and return the answer."""
        self.until(asked.done)
        return asked.result()

    def appended(self, me: int, body: bytes) -> Answered:
        """Append an entry at a member, which has to be committed."""
        answer = self.answered(self.append(me, body))
        assert answer.status is RaftStatus.OK
        return answer

    def bodies(self, me: int) -> list[bytes]:
        """Return the bodies in the log of a member, without those that begin terms."""
        return [each.body for each in self.members[me].log.rows if each.body]
