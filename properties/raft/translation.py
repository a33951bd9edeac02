"""Translate members and messages of the store into those of the model, and back."""

from collections.abc import Sequence

from tornpage.impl.raft import messages as ours
from tornpage.impl.raft.member import RaftMember
from tornpage.model.raft import state as model

__all__ = [
    "PLAIN_BODIES",
    "Bodies",
    "KnownBodies",
    "entry_of",
    "give_state",
    "message_of",
    "sent_of",
    "state_of",
]

_BODY_BYTES = 8
_TO_MODEL = {
    ours.RequestVote: model.Vote,
    ours.VoteAnswer: model.VoteReply,
    ours.AppendAnswer: model.AppendReply,
    ours.LeadNow: model.TransferNow,
}
_FROM_MODEL = {theirs: kind for kind, theirs in _TO_MODEL.items()}


class Bodies:
    """The bodies that payloads stand for."""

    def body_of(self, payload: int) -> bytes:
        """Return the body of an entry of the store. The entry that begins a term has none."""
        return payload.to_bytes(_BODY_BYTES, "big") * 8 if payload else b""

    def payload_of(self, body: bytes) -> int:
        """Return the payload that a body stands for, -1 for a body of nothing that was put."""
        payload = int.from_bytes(body[:_BODY_BYTES], "big")
        return payload if body == self.body_of(payload) else -1


class KnownBodies(Bodies):
    """The bodies that stores have made of their messages."""

    def __init__(self) -> None:
        self._bodies = {0: b""}
        self._payloads = {b"": 0}

    def learn(self, payload: int, body: bytes) -> None:
        """Take a body for that of a payload."""
        self._bodies[payload], self._payloads[body] = body, payload

    def body_of(self, payload: int) -> bytes:
        """Return the body of a payload."""
        return self._bodies[payload]

    def payload_of(self, body: bytes) -> int:
        """Return the payload of a body, -1 for an unknown body."""
        return self._payloads.get(body, -1)


PLAIN_BODIES = Bodies()
"""Bodies that follow from the payload."""


def entry_of(entry: ours.Carried, bodies: Bodies = PLAIN_BODIES) -> model.Entry:
    """Return an entry of the model."""
    return model.Entry(entry.term, bodies.payload_of(entry.body))


def message_of(message: model.Message, bodies: Bodies = PLAIN_BODIES) -> ours.Message:
    """Return a message of the store."""
    if isinstance(message, model.Append):
        entries = tuple(ours.Carried(each.term, bodies.body_of(each.payload)) for each in message.entries)
        return ours.AppendEntries(
            message.term, message.begin, message.previous_term, entries, message.commit, message.round
        )
    translated: ours.Message = _FROM_MODEL[type(message)](*message[:-1])
    return translated


def sent_of(envelopes: Sequence[ours.Envelope], bodies: Bodies = PLAIN_BODIES) -> tuple[tuple[int, model.Message], ...]:
    """Return messages with their receivers as the model has them."""
    return tuple((each.to, _modelled(each.message, bodies)) for each in envelopes)


def _modelled(message: ours.Message, bodies: Bodies) -> model.Message:
    if isinstance(message, ours.AppendEntries):
        entries = tuple(entry_of(each, bodies) for each in message.entries)
        return model.Append(message.term, message.begin, message.previous_term, entries, message.commit, message.round)
    translated: model.Message = _TO_MODEL[type(message)](*message)
    return translated


def state_of(member: RaftMember, log: tuple[model.Entry, ...]) -> model.Member:
    """Return the state of a member of the store. `log` are its entries."""
    hard = member.hard_state
    return model.Member(
        hard.term,
        hard.vote,
        log,
        member.log.synced,
        member.role,
        member.leader,
        member.commit,
        member.verified,
        member.owes,
        member.round,
        member.votes,
        tuple(member.next_begins),
        tuple(member.matched),
        tuple(member.rounds),
        member.reads,
        member.transferee,
    )


def give_state(member: RaftMember, state: model.Member) -> None:
    """Give a member of the store a state, except for its log, term and vote."""
    member.role, member.leader, member.commit = state.role, state.leader, state.commit
    member.verified, member.owes, member.round = state.verified, state.owes, state.round
    member.votes, member.reads, member.transferee = state.votes, state.reads, state.transferee
    member.next_begins, member.matched, member.rounds = list(state.next_begins), list(state.matched), list(state.rounds)
