"""Define the states of a search over all schedules of a Raft group, and one step of it.

A state has the members, the newest message of each kind between two members, and what is left of the bound. A message
stays after its delivery. So loss, repetition and delay need no events of their own. A crash and the restart after it
are one event: a member that is down is one that no event concerns.

Each step is carried out by the store's member on a log in memory, and by the model. Both have to agree.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise, permutations, product
from typing import NamedTuple

from tornpage.impl.parts import Parts
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import Carried, Envelope
from tornpage.model.raft import member as model
from tornpage.model.raft import promises
from tornpage.model.raft.promises import Seen
from tornpage.model.raft.state import Entry, Member, Message
from tornpage.properties.raft.memory import MemoryHardState, MemoryLog
from tornpage.properties.raft.translation import (
    PLAIN_BODIES,
    entry_of,
    give_state,
    message_of,
    sent_of,
    state_of,
)

__all__ = ["KINDS", "Bound", "Event", "GroupState", "Stepper", "canonical", "independent", "initial"]

KINDS = ("vote", "vote_reply", "append", "append_reply", "transfer_now")

Event = tuple[str, int, int, int]
"""A name, the member that it concerns, and two numbers.

They are source and kind of a delivery, the kept entries of a crash, or the receiver of a transfer.
"""


class Bound(NamedTuple):
    """The number of events of each kind that a schedule may have.

    Heartbeats, syncs and deliveries have no limit.
    """

    elections: int = 2
    proposals: int = 1
    crashes: int = 1
    transfers: int = 0


class GroupState(NamedTuple):
    """A group at one moment. `slots` has a message or None for each source, receiver and kind."""

    members: tuple[Member, ...]
    slots: tuple[Message | None, ...]
    seen: Seen
    left: Bound


def initial(members: int, bound: Bound) -> GroupState:
    """Return a group that has just started."""
    return GroupState((Member(),) * members, (None,) * (members * members * len(KINDS)), Seen(), bound)


def _slot(members: int, source: int, to: int, kind: int) -> int:
    return (source * members + to) * len(KINDS) + kind


def independent(first: Event, second: Event) -> bool:
    """Return whether two events have the same effect in either order.

    They concern different members, neither delivers what the other one may send, and they do not use the same part of
    the bound.
    """
    if first[1] == second[1] or (first[0] == second[0] != "deliver" and first[0] not in ("beat", "sync")):
        return False
    both = (first, second), (second, first)
    return not any(one[0] == "deliver" and one[2] == other[1] for one, other in both)


class Stepper:
    """Carry out events with the parts of a store.

    `batch` is the number of entries of a message.

    Without `compares` only the promises of the group are judged, not each step of a member.
    """

    def __init__(self, members: int, batch: int, parts: Parts, *, compares: bool = True) -> None:
        self._compares = compares
        self._members = members
        self._batch = batch
        self._kind = parts.of(RaftMember)

    def enabled(self, state: GroupState) -> Iterator[Event]:
        """Yield the events that may come next, in an order that depends on the state only."""
        left = state.left
        for me, member in enumerate(state.members):
            if member.synced < member.end:
                yield ("sync", me, 0, 0)
            if member.role == "leader":
                yield ("beat", me, 0, 0)
                if left.proposals and member.transferee is None:
                    yield ("propose", me, 0, 0)
                if left.transfers:
                    for to in range(self._members):
                        if to != me:
                            yield ("transfer", me, to, 0)
            elif left.elections:
                yield ("elect", me, 0, 0)
            if left.crashes:
                for kept in range(member.synced, member.end + 1):
                    yield ("crash", me, kept, 0)
        for source, to, kind in product(range(self._members), range(self._members), range(len(KINDS))):
            if state.slots[_slot(self._members, source, to, kind)] is not None:
                yield ("deliver", to, source, kind)

    def carry_out(self, state: GroupState, event: Event) -> tuple[GroupState, list[str]]:
        """Return the state after an event, and the promises that it breaks."""
        name, me, first, second = event
        before = state.members[me]
        if name == "crash":
            sent: tuple[tuple[int, Message], ...] = ()
            broken: list[str] = []
            after = model.crashed(before, first)
        else:
            after, sent, broken = self._both(state, before, event)
        members = (*state.members[:me], after, *state.members[me + 1 :])
        up = [name != "crash" or each != me for each in range(self._members)]
        seen = state.seen
        for to, message in sent:
            found: list[str] = []
            if message.kind == "vote":
                seen, found = promises.vote(seen, me, message.term, me)
            elif message.kind == "vote_reply" and message.granted:
                seen, found = promises.vote(seen, me, message.term, to)
            broken += found
        seen, found = promises.look(seen, state.members, members, up)
        slots = list(state.slots)
        for to, message in sent:
            slots[_slot(self._members, me, to, KINDS.index(message.kind))] = message
        return GroupState(members, tuple(slots), seen, _less(state.left, name, second)), broken + found

    def _both(
        self, state: GroupState, before: Member, event: Event
    ) -> tuple[Member, tuple[tuple[int, Message], ...], list[str]]:
        name, me, first, second = event
        place = model.Place(me, self._members, self._batch)
        hard = MemoryHardState(before.term, before.vote)
        log = MemoryLog(_rows(before.log), before.synced, self._batch)
        member = self._kind(me, self._members, log, hard)
        give_state(member, before)
        payload = 1 + sum(entry.payload > 0 for entry in before.log) + 10 * before.term
        out: list[Envelope] | None
        match name:
            case "elect":
                expected, out = model.elect(place, before), member.election_timeout()
            case "beat":
                expected, out = model.beat(place, before), member.heartbeat()
            case "propose":
                expected, out = model.propose(place, before, payload), member.propose([PLAIN_BODIES.body_of(payload)])
            case "sync":
                expected, out = model.synced(place, before), member.sync()
            case "transfer":
                expected, out = model.transfer(place, before, first), member.transfer(first)
            case _:
                message = state.slots[_slot(self._members, first, me, second)]
                assert message is not None
                expected = model.receive(place, before, first, message)
                out = member.receive(first, message_of(message))
        after, sent = state_of(member, _entries(tuple(log.rows))), sent_of(out or [])
        if hard.lasting != (after.term, after.vote):
            return after, sent, [f"member {me} sends messages before its term and vote are durable"]
        if after == expected.member and sent == expected.sent:
            return expected.member if expected.member != before else before, sent, []
        return after, sent, [_difference(me, name, expected, after, sent)] if self._compares else []


def _less(left: Bound, name: str, _: int) -> Bound:
    match name:
        case "elect":
            return left._replace(elections=left.elections - 1)
        case "propose":
            return left._replace(proposals=left.proposals - 1)
        case "crash":
            return left._replace(crashes=left.crashes - 1)
        case "transfer":
            return left._replace(transfers=left.transfers - 1)
    return left


@lru_cache(maxsize=1 << 14)
def _rows(log: tuple[Entry, ...]) -> tuple[Carried, ...]:
    return tuple(Carried(entry.term, PLAIN_BODIES.body_of(entry.payload)) for entry in log)


@lru_cache(maxsize=1 << 14)
def _entries(rows: tuple[Carried, ...]) -> tuple[Entry, ...]:
    return tuple(map(entry_of, rows))


def _difference(
    me: int, name: str, expected: model.Result, after: Member, sent: tuple[tuple[int, Message], ...]
) -> str:
    for field, wanted, found in zip(Member._fields, expected.member, after, strict=True):
        if wanted != found:
            return f"after {name} member {me} has {field} {found}, and the model {wanted}"
    return f"after {name} member {me} sends {sent}, and the model {expected.sent}"


# ---- equal states ----------------------------------------------------------------------------------------------------


def canonical(state: GroupState) -> tuple[GroupState, tuple[int, ...]]:
    """Return the representative of all states that behave alike.

    The second value has the new number of each member.
    Members are renumbered. Messages that can change nothing any more are removed, and so is what was seen of terms that
    no member can return to.
    """
    state = _pruned(state)
    keys = [_signature(member) for member in state.members]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    if all(keys[one] != keys[other] for one, other in pairwise(order)):
        return _renumbered(state, order)
    groups: list[list[int]] = []
    for each in order:
        if groups and keys[groups[-1][0]] == keys[each]:
            groups[-1].append(each)
        else:
            groups.append([each])
    orders = ([each for group in chosen for each in group] for chosen in product(*map(permutations, groups)))
    return min((_renumbered(state, each) for each in orders), key=lambda found: repr(found[0]))


def _signature(member: Member) -> tuple[object, ...]:
    return (
        member.term,
        member.role,
        member.log,
        member.synced,
        member.commit,
        member.verified,
        member.owes,
        -1 if member.vote is None else 1,
        len(member.votes),
        tuple(sorted(member.next_begins)),
        tuple(sorted(member.matched)),
    )


def _renumbered(state: GroupState, order: list[int]) -> tuple[GroupState, tuple[int, ...]]:
    """Return a state in which the member `order[i]` has the number i."""
    count = len(order)
    if order == list(range(count)):
        return state, tuple(order)
    new = [0] * count
    for at, old in enumerate(order):
        new[old] = at
    members = tuple(_renumbered_member(state.members[old], new, order) for old in order)
    size = len(KINDS)
    slots: list[Message | None] = []
    for source in order:
        for to in order:
            at = (source * count + to) * size
            slots += state.slots[at : at + size]
    seen = state.seen
    leaders = frozenset((term, new[leader]) for term, leader in seen.leaders)
    votes = frozenset((new[voter], term, new[candidate]) for voter, term, candidate in seen.votes)
    return GroupState(
        members, tuple(slots), Seen(leaders, votes, seen.committed, seen.committed_in), state.left
    ), tuple(new)


def _renumbered_member(member: Member, new: list[int], order: list[int]) -> Member:
    return member._replace(
        vote=None if member.vote is None else new[member.vote],
        leader=None if member.leader is None else new[member.leader],
        votes=frozenset(new[each] for each in member.votes),
        next_begins=tuple(member.next_begins[old] for old in order) if member.next_begins else (),
        matched=tuple(member.matched[old] for old in order) if member.matched else (),
        rounds=tuple(member.rounds[old] for old in order) if member.rounds else (),
        transferee=None if member.transferee is None else new[member.transferee],
    )


def _pruned(state: GroupState) -> GroupState:
    count = len(state.members)
    slots = list(state.slots)
    for at, message in enumerate(slots):
        if message is not None and _is_spent(message, state.members[at // len(KINDS) % count]):
            slots[at] = None
    least = min(member.term for member in state.members)
    leaders = frozenset(each for each in state.seen.leaders if each[0] >= least)
    votes = frozenset(each for each in state.seen.votes if each[1] >= state.members[each[0]].term)
    return state._replace(slots=tuple(slots), seen=state.seen._replace(leaders=leaders, votes=votes))


def _is_spent(message: Message, receiver: Member) -> bool:
    """Return whether a message can change nothing at its receiver, now and later."""
    if message.term > receiver.term:
        return False
    match message.kind:
        case "vote_reply":
            return message.term < receiver.term or receiver.role != "candidate" or not message.granted
        case "append_reply":
            return message.term < receiver.term or receiver.role != "leader"
        case "transfer_now":
            return message.term < receiver.term
    return False
