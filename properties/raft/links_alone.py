"""Run the links of a Raft member alone, and compare them with a reference.

Other members, strangers and time are drawn, and each link has a room of its own. The reference is written from the
head of impl/raft/peers.py, and knows every byte:

| contract | what is judged |
|---|---|
| 8 | what a link sends: a greeting, messages, a PING each third of the silence, an answer to a PING, a refusal |
| 8 | which links end, when and why: silence, a frame that stays incomplete, wrong frames, older links, strangers |
| 8 | which messages are dropped, and what is sent of an append while an older one has no answer |
| 8 | when a member without a link is connected to, and what operators are shown of each link |
| 15 | which messages arrive, in which order, and of which member |
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from tornpage.impl.raft.messages import AppendAnswer, AppendEntries, Carried, Envelope, LeadNow, Message, RequestVote
from tornpage.impl.raft.peers import Peers
from tornpage.impl.raft.settings import RaftSettings
from tornpage.properties.cluster.client_lines import ClientLink
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.raft.frames import HELLO, PING, REFUSAL, VOTE, frame, frame_of_message, hello

__all__ = ["LINK_SETTINGS", "LonelyLink", "LonelyNetwork", "link_programs_hold", "links_alone_hold"]

_ME, _MEMBERS = 1, 4
_EVENTS = 220
_PROGRAMS = 20
_FINDINGS_MAX, _SENTENCE_BYTES_MAX, _READ_BYTES = 100, 1_024, 256 << 10
_IMPOSSIBLE_TERM = 666
_CLIENTS = "10.0.0.1:7"
_STRANGE_HOST = "10.0.0.99"
_TIMES_MS = (0, 1, 1, 5, 5, 14, 15, 16, 29, 30, 31, 40, 41, 90, 91)
_UNSENT_BYTES_MAX = (60, 80, 100, 120, 300)
"""Most of them are the sizes of some messages, so that a link often has exactly so many unsent bytes."""
_ROOM_BYTES = (0, 1, 7, 20, 40, 200)
_NEVER = 1 << 40
_SHARE_OF_FLOODS, _SHARE_OF_UNREACHABLE = 0.2, 0.2
_SHARE_OF_UNUSED = 0.1
LINK_SETTINGS = RaftSettings(
    tuple(f"10.0.0.{1 + member}:{9_000 + member}" for member in range(_MEMBERS)),
    heartbeat_interval=10, election_timeout_min=20, election_timeout_max=40, reconnect_interval=15, silence_max=90,
    connections_max=5, unsent_bytes_max=300, batch_bytes_max=1, body_bytes_max=100,
)  # fmt: skip


class LonelyLink(ClientLink):
    """A link in memory. A closed one delivers nothing."""

    def close(self) -> None:
        """End the link."""
        super().close()
        self.inbox.clear()


class LonelyNetwork:
    """The network of one member: its listener, and the links that it makes."""

    def __init__(self) -> None:
        self.address = ""
        self.backlog: list[LonelyLink] = []
        self.made: list[LonelyLink] = []
        self.unreachable: set[str] = set()
        self.is_listening = False

    def listen(self, address: str) -> "LonelyNetwork":
        """Listen at an address."""
        self.address, self.is_listening = address, True
        return self

    def accept(self) -> LonelyLink | None:
        """Return the next new link."""
        return self.backlog.pop(0) if self.backlog else None

    def connect(self, address: str) -> LonelyLink | None:
        """Return a link to an address that can be reached."""
        if address in self.unreachable:
            return None
        self.made.append(LonelyLink(0))
        self.made[-1].peer = address
        return self.made[-1]

    def close(self) -> None:
        """Stop listening."""
        self.is_listening = False


# ---- the reference ---------------------------------------------------------------------------------------------------


@dataclass
class _Way:
    """Hold both directions of a link: what the member has to send, and what is on the way.

    `frames` has for each frame that is not whole yet the number of bytes with which it acts, that after it, and what it
    is. `room` is how many bytes the link still accepts. `held_ms` is the last time without a part of a frame, or at
    which a frame became whole.
    """

    link: LonelyLink
    sent: bytearray = field(default_factory=bytearray)
    room: int | None = None
    waits: bytearray = field(default_factory=bytearray)
    frames: list[tuple[int, int, object]] = field(default_factory=list)
    put = taken = whole = 0
    inbox = 0
    has_left = is_over = is_slow = False

    def give(self, data: bytes | bytearray) -> int:
        """Send bytes while there is room; return how many."""
        count = len(data) if self.room is None else min(self.room, len(data))
        self.sent += data[:count]
        if self.room is not None:
            self.room -= count
        return count

    def add(self, data: bytes, what: object, acts_after: int | None = None) -> None:
        """Put a frame on the way. It is acted on after all its bytes, or earlier."""
        acts = self.put + (len(data) if acts_after is None else acts_after)
        self.put += len(data)
        self.frames.append((acts, self.put, what))
        self.waits += data

    def arrive(self, count: int) -> None:
        """Let bytes arrive."""
        self.link.inbox += self.waits[:count]
        self.inbox += len(self.waits[:count])
        del self.waits[:count]

    def take(self, most: int) -> "tuple[int, list[object]] | None":
        """Return how many bytes are taken now and what becomes whole, None after the end."""
        count = min(self.inbox, most)
        if not count and self.has_left:
            return None
        self.inbox -= count
        self.taken += count
        found: list[object] = []
        while self.frames and self.frames[0][0] <= self.taken:
            _, self.whole, what = self.frames.pop(0)
            found.append(what)
        return count, found


class _EndsError(Exception):
    """The end of a link. The text is a part of the reason."""


@dataclass
class _Outgoing:
    """What has to be so on the links to one member."""

    to: int
    unsent_bytes_max: int
    way: _Way | None = None
    unsent: bytearray = field(default_factory=bytearray)
    connect_ms = ping_ms = since_ms = dropped = 0
    finding = ""
    unanswered: tuple[int, int, int] | None = None
    newest: tuple[int, int] | None = None

    def end(self, reason: str) -> None:
        if self.way is not None:
            self.way.is_over = True
        self.way, self.finding = None, reason

    def step(self, now_ms: int, connect: Callable[[], _Way | None], group: str) -> None:
        settings = LINK_SETTINGS
        if self.way is None:
            if now_ms < self.connect_ms:
                return
            self.connect_ms = now_ms + settings.reconnect_interval
            self.way = connect()
            if self.way is None:
                self.finding = "no member answers"
                return
            self.unsent = bytearray(hello(_ME, self.to, group, _CLIENTS))
            self.since_ms = self.ping_ms = now_ms
            self.unanswered = self.newest = None
        try:
            self._take(self.way, now_ms)
        except _EndsError as ends:
            self.end(str(ends))
            return
        if now_ms >= self.ping_ms:
            self.ping_ms = now_ms + settings.silence_max // 3
            self.unsent += frame(PING)
        self.write()

    def _take(self, way: _Way, now_ms: int) -> None:
        taken = way.take(_SENTENCE_BYTES_MAX)
        if taken is None:
            raise _EndsError("the member has ended the link")
        if taken[0]:
            self.since_ms = now_ms
        elif now_ms - self.since_ms > LINK_SETTINGS.silence_max:
            raise _EndsError(f"no PING was answered for {now_ms - self.since_ms} ms")
        for what in taken[1]:
            if what != PING:
                raise _EndsError(str(what))

    def write(self) -> None:
        if self.way is not None:
            del self.unsent[: self.way.give(self.unsent)]

    def send(self, message: Message, now_ms: int, *, at_once: bool) -> None:
        if self.way is None or len(self.unsent) > self.unsent_bytes_max:
            self.dropped += 1
            return
        if isinstance(message, AppendEntries):
            waits = self.unanswered is not None and (
                self.unanswered[0] == message.term and now_ms - self.unanswered[2] <= LINK_SETTINGS.election_timeout_max
            )
            entries = () if waits else message.entries
            is_news = (message.term, message.round) != self.newest
            if not entries and not at_once and not is_news:
                return
            self.newest = message.term, message.round
            if entries:
                self.unanswered = message.term, message.begin + len(entries), now_ms
            message = message._replace(entries=entries)
        self.unsent += frame_of_message(message)

    def note(self, answer: AppendAnswer) -> None:
        if self.unanswered is not None and (not answer.matches or self.unanswered[1] <= answer.end):
            self.unanswered = None


@dataclass
class _Incoming:
    """What has to be so on one accepted link."""

    way: _Way
    since_ms: int
    held_ms: int = 0
    sender: int | None = None
    clients = ended = ""
    owes: bytes = b""

    @property
    def peer(self) -> str:
        return self.way.link.peer + ("" if self.sender is None else f" (n{self.sender})")

    def end(self, reason: str) -> None:
        if not self.ended:
            self.ended, self.way.is_over = reason, True

    def step(self, now_ms: int) -> Iterator[Message]:
        try:
            yield from self._step(now_ms)
        except _EndsError as ends:
            self.end(str(ends))

    def _step(self, now_ms: int) -> Iterator[Message]:
        way, silence_ms = self.way, LINK_SETTINGS.silence_max
        was_within = way.taken > way.whole
        taken = way.take(_READ_BYTES)
        if taken is None:
            raise _EndsError("the member has ended the link")
        if taken[0]:
            self.since_ms = now_ms
        elif now_ms - self.since_ms > silence_ms:
            raise _EndsError(f"nothing was received for {now_ms - self.since_ms} ms")
        for what in taken[1]:
            if isinstance(what, _Greeting):
                self._greet(what)
            elif isinstance(what, _Wrong):
                raise _EndsError(what.first if self.sender is None else what.later)
            elif self.sender is None:
                raise _EndsError("may not come here")
            elif what == PING:
                self.owes = self.owes or frame(PING)
            else:
                assert isinstance(what, RequestVote | AppendEntries | AppendAnswer | LeadNow)
                if what.term == _IMPOSSIBLE_TERM:
                    self._refuse(_impossible(self.sender, what))
                yield what
        self.owes = self.owes[way.give(self.owes) :]
        if not was_within or taken[1]:
            self.held_ms = now_ms
        elif now_ms - self.held_ms > silence_ms:
            raise _EndsError(f"a frame has been incomplete for {now_ms - self.held_ms} ms")

    def _greet(self, greeting: "_Greeting") -> None:
        if self.sender is not None:
            raise _EndsError("may not come here")
        if greeting.refusal:
            self._refuse(greeting.refusal)
        self.sender, self.clients = greeting.sender, greeting.clients

    def _refuse(self, sentence: str) -> None:
        self.way.give(frame(REFUSAL, sentence.encode()[:_SENTENCE_BYTES_MAX]))
        raise _EndsError(sentence)


@dataclass(frozen=True, slots=True)
class _Greeting:
    """A greeting, and why it is refused."""

    sender: int
    clients: str
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class _Wrong:
    """Why a wrong frame ends its link, as the first one and later."""

    first: str
    later: str


def _impossible(sender: int, message: Message) -> str:
    return f"n{sender} sends {message}" + " and more" * 200 * (message[-1] == 1)


# ---- the program -----------------------------------------------------------------------------------------------------


def links_alone_hold() -> None:
    """Judge some drawn programs. Raises GuaranteeBroken."""
    for seed in range(_PROGRAMS):
        link_programs_hold(seed)


def link_programs_hold(seed: int) -> None:
    """Judge one drawn program. Raises GuaranteeBroken."""
    observed("a look at links", _Program(random.Random(f"links {seed}")).run)


class _Program:
    """One drawn program beside the reference."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._now_ms = rng.choice((0, 1_000))
        self._network = LonelyNetwork()
        self._network.unreachable = {each for each in LINK_SETTINGS.peers if rng.random() < _SHARE_OF_UNREACHABLE}
        most = rng.choice(_UNSENT_BYTES_MAX)
        self._peers = Peers(
            _ME, replace(LINK_SETTINGS, unsent_bytes_max=most), self._network, clients=_CLIENTS,
            objection=lambda sender, message: _impossible(sender, message) if message.term == _IMPOSSIBLE_TERM else "",
        )  # fmt: skip
        self._group = f"{','.join(LINK_SETTINGS.peers)} with entries in data files of {1 << 30} bytes"
        self._others = [each for each in range(_MEMBERS) if each != _ME]
        self._outgoing = {each: _Outgoing(each, most) for each in self._others}
        self._incoming: list[_Incoming] = []
        self._calls: list[_Way] = []
        self._ways: list[_Way] = []
        self._findings: list[str] = []
        self._made = 0
        self._links = 0
        _is("the address of a member", (self._network.address, self._peers.address), (LINK_SETTINGS.peers[_ME],) * 2)

    def run(self) -> None:
        """Draw events, then let the member end."""
        events: tuple[tuple[int, Callable[[], None]], ...] = (
            (30, self._step), (8, self._be_well), (12, self._send), (4, self._write), (6, self._call), (10, self._tell),
            (3, self._tell_wrong), (2, self._answer), (8, self._arrive), (3, self._narrow), (4, self._widen),
            (2, self._leave), (2, self._cut), (1, self._slow), (1, self._crowd), (8, self._exchange),
        )  # fmt: skip
        weights = [weight for weight, _ in events]
        for _ in range(0 if self._rng.random() < _SHARE_OF_UNUSED else _EVENTS):
            (event,) = self._rng.choices([each for _, each in events], weights)
            event()
        if self._rng.random() < _SHARE_OF_FLOODS:
            self._flood()
        self._peers.close()
        self._peers.close()
        for outgoing in self._outgoing.values():
            outgoing.end("this member is closing")
        for incoming in self._incoming:
            incoming.end("this member is closing")
        self._incoming.clear()
        self._judge()
        _is("whether a closed member listens", self._network.is_listening, False)

    # ---- events --------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        """Let time pass, and let the member step."""
        self._step_after(self._rng.choice(_TIMES_MS[: self._rng.choice((7, 12, 15))]))

    def _step_after(self, milliseconds: int) -> None:
        self._now_ms += milliseconds
        for way in self._ways:
            if way.is_slow and not way.is_over:
                way.arrive(1)
        found = list(self._peers.step(self._now_ms))
        _is("what arrives", found, list(self._stated_step()))
        self._judge()

    def _stated_step(self) -> Iterator[tuple[int, Message]]:
        for way in self._calls:
            self._accept(way)
        self._calls.clear()
        for outgoing in self._outgoing.values():
            outgoing.step(self._now_ms, lambda to=outgoing.to: self._connected(to), self._group)  # type: ignore[misc]
        for incoming in self._incoming:
            if incoming.ended:
                continue
            was_known = incoming.sender is not None
            for message in incoming.step(self._now_ms):
                assert incoming.sender is not None
                if isinstance(message, AppendAnswer):
                    self._outgoing[incoming.sender].note(message)
                yield incoming.sender, message
            if not was_known and incoming.sender is not None and not incoming.ended:
                for other in self._incoming:
                    if other is not incoming and other.sender == incoming.sender:
                        other.end("the member has a newer connection")
        for ended in (each for each in self._incoming if each.ended):
            self._findings.append(f"{ended.peer}: {ended.ended}")
        self._incoming = [each for each in self._incoming if not each.ended]

    def _accept(self, way: _Way) -> None:
        host = way.link.peer.partition(":")[0]
        if len(self._incoming) >= LINK_SETTINGS.connections_max:
            reason = f"there are {LINK_SETTINGS.connections_max} connections already"
        elif host == _STRANGE_HOST:
            reason = "no member of the group has this address"
        else:
            self._incoming.append(_Incoming(way, self._now_ms, self._now_ms))
            return
        way.is_over = True
        self._findings.append(f"{way.link.peer}: {reason}")

    def _connected(self, to: int) -> _Way | None:
        """Return the link that the member has to have made now."""
        address = LINK_SETTINGS.peers[to]
        if address in self._network.unreachable:
            return None
        if self._made == len(self._network.made) or self._network.made[self._made].peer != address:
            raise GuaranteeBroken(8, f"a member does not connect to {address} at {self._now_ms} ms")
        self._made += 1
        return self._added(self._network.made[self._made - 1])

    def _added(self, link: LonelyLink) -> _Way:
        self._ways.append(_Way(link))
        return self._ways[-1]

    def _send(self) -> None:
        at_once = self._rng.random() < 0.3
        self._sends(
            [Envelope(self._rng.choice(self._others), self._message()) for _ in range(self._rng.randint(1, 3))], at_once
        )

    def _sends(self, envelopes: list[Envelope], at_once: bool = False) -> None:
        self._peers.send(envelopes, self._now_ms, at_once=at_once)
        for to, message in envelopes:
            self._outgoing[to].send(message, self._now_ms, at_once=at_once)
        self._judge()

    def _exchange(self) -> None:
        """Send entries to a member, let it answer or not, and send entries again.

        The second time is about when entries may be sent without an answer to the first ones.
        """
        rng, limit_ms = self._rng, LINK_SETTINGS.election_timeout_max
        to = rng.choice(self._others)
        term, begin, count = rng.randint(3, 4), rng.randint(1, 4), rng.randint(1, 2)
        entries = tuple(Carried(2, b"e") for _ in range(count))
        self._widen()
        self._sends([Envelope(to, AppendEntries(term, begin, 1, entries, 0, 0))])
        incoming = next((each for each in self._incoming if each.sender == to and not each.way.is_slow), None)
        if incoming is not None and rng.random() < 0.7:
            answer = AppendAnswer(term, rng.random() < 0.7, begin + count + rng.choice((-2, -1, 0, 0, 1)), 0)
            incoming.way.add(frame_of_message(answer), answer)
            incoming.way.arrive(_NEVER)
            self._step_after(0)
        else:
            self._be_well()
            self._step_after(rng.choice((0, limit_ms - 1, limit_ms, limit_ms + 1)))
        self._sends([Envelope(to, AppendEntries(rng.choice((term, term, 5)), begin, 1, entries, 0, rng.randrange(2)))])

    def _message(self) -> Message:
        term, number = self._rng.randint(3, 4), self._rng.randrange(3)
        kind: Literal["append", "answer", "vote", "lead"] = self._rng.choice(("append", "append", "answer", "vote"))
        if kind == "append":
            entries = tuple(Carried(2, b"e" * 20) for _ in range(self._rng.randrange(3)))
            return AppendEntries(term, self._rng.randint(1, 4), 1, entries, number, self._rng.randrange(2))
        if kind == "answer":
            return AppendAnswer(term, self._rng.random() < 0.7, self._rng.randint(0, 6), number)
        return RequestVote(term, 1, number) if self._rng.random() < 0.7 else LeadNow(term)

    def _write(self) -> None:
        self._peers.write()
        for outgoing in self._outgoing.values():
            outgoing.write()
        self._judge()

    def _call(self) -> None:
        """Let a member or a stranger connect, and greet."""
        rng, sender = self._rng, self._rng.choice(self._others)
        is_wrong = rng.random() < 0.35
        host = _STRANGE_HOST if rng.random() < 0.1 else f"10.0.0.{1 + sender}"
        link = LonelyLink(0)
        link.peer = f"{host}:{4_000 + self._links}"
        self._links += 1
        way = self._added(link)
        self._network.backlog.append(link)
        self._calls.append(way)
        named, receiver, group = sender, _ME, self._group
        refusal = ""
        match rng.randrange(6) if is_wrong else -1:
            case 0:
                group = self._group.replace("entries", "messages")
                refusal = f"the group is {self._group} here, and {group} there"
            case 1:
                receiver = rng.choice((0, _ME + 1))
                refusal = f"this is member n{_ME}, and n{receiver} was meant"
            case 2:
                named = rng.choice((_ME, _MEMBERS, _MEMBERS + 1))
                refusal = f"a sender calls itself n{named}, and this is n{_ME} of {_MEMBERS} members"
            case 3:
                named = next(each for each in self._others if each != sender)
                refusal = f"member n{named} is at {LINK_SETTINGS.peers[named]}, not here"
            case 4:
                return  # it says nothing
            case 5:
                way.add(frame_of_message(RequestVote(3, 1, 1)), RequestVote(3, 1, 1))
        clients = f"clients-{self._links}"
        way.add(hello(named, receiver, group, clients), _Greeting(named, clients, refusal))
        if rng.random() < 0.7:
            way.arrive(_NEVER)

    def _crowd(self) -> None:
        for _ in range(LINK_SETTINGS.connections_max):
            self._call()

    def _flood(self) -> None:
        """Let many strangers connect. The newest findings are kept."""
        for _ in range(_FINDINGS_MAX + 2):
            link = LonelyLink(0)
            link.peer = f"{_STRANGE_HOST}:{4_000 + self._links}"
            self._links += 1
            self._network.backlog.append(link)
            self._calls.append(self._added(link))
        self._step_after(0)

    def _tell(self) -> None:
        """Let a member send messages and a PING."""
        for way in self._some(self._incoming):
            for _ in range(self._rng.randint(1, 3)):
                if self._rng.random() < 0.4:
                    way.add(frame(PING), PING)
                else:
                    message = self._message()
                    way.add(frame_of_message(message), message)
            if self._rng.random() < 0.7:
                way.arrive(_NEVER)

    def _tell_wrong(self) -> None:
        """Let a member send what no correct one sends."""
        impossible = RequestVote(_IMPOSSIBLE_TERM, 1, self._rng.randrange(2))
        first = "may not come here"
        wrong: tuple[tuple[bytes, object, int | None], ...] = (
            (frame(PING, b"x"), _Wrong(first, "a frame of kind PING has 1 bytes"), None),
            (frame(REFUSAL, b"no"), _Wrong(first, first), None),
            (frame(HELLO), _Wrong("a greeting has 0 bytes", first), None),
            (frame(99, b"xy"), _Wrong(*["no frame has the kind 99"] * 2), 16),
            (frame(VOTE, b"x" * 24)[:-1] + b"y", _Wrong(*["the checksum of a frame"] * 2), None),
            (frame(VOTE, size=4_097), _Wrong(*["a frame states 4097 bytes"] * 2), 16),
            (frame(VOTE, b"short"), _Wrong(first, "a frame of kind VOTE has 5 bytes"), None),
            (frame_of_message(impossible), impossible, None),
            (frame_of_message(impossible), impossible, None),
        )
        for way in self._some(self._incoming):
            if not way.is_slow:
                way.add(*self._rng.choice(wrong))
                way.arrive(_NEVER)

    def _answer(self) -> None:
        """Let a member answer wrongly."""
        sentence = b"no" if self._rng.random() < 0.5 else "é".encode() * 300
        wrong: tuple[tuple[bytes, object, int | None], ...] = (
            (frame(REFUSAL, sentence), f"the member refuses: {sentence.decode()}", None),
            (frame(VOTE, b"x" * 24), "a frame of kind VOTE may not come here", None),
            (frame(98), "no frame has the kind 98", None),
            (frame(PING)[:-1] + b"z", "the checksum of a frame", None),
            (frame(REFUSAL, size=_SENTENCE_BYTES_MAX + 1), "a frame states 1025 bytes", None),
        )
        for way in self._some(each for each in self._outgoing.values()):
            way.add(*self._rng.choice(wrong))
            way.arrive(_NEVER)

    def _be_well(self) -> None:
        """Let all members answer, and send a PING."""
        for outgoing in self._outgoing.values():
            if outgoing.way is not None:
                outgoing.way.add(frame(PING), PING)
                outgoing.way.arrive(_NEVER)
        for incoming in self._incoming:
            if incoming.sender is not None and not incoming.way.is_slow:
                incoming.way.add(frame(PING), PING)
                incoming.way.arrive(_NEVER)

    def _slow(self) -> None:
        """Let a member begin a frame whose bytes arrive one by one."""
        for way in self._some(self._incoming):
            way.arrive(_NEVER)
            way.add(frame(VOTE, b"\0" * _SENTENCE_BYTES_MAX, size=4_096), "never", _NEVER)
            way.is_slow = True

    def _some(self, all_of: "Iterator[_Outgoing] | list[_Incoming]") -> list[_Way]:
        """Draw one of the links that the member has."""
        ways = [each.way for each in all_of if each.way is not None and not each.way.is_slow]
        return [self._rng.choice(ways)] if ways else []

    def _open_ways(self) -> list[_Way]:
        return [each for each in self._ways if not each.is_over]

    def _arrive(self) -> None:
        for way in self._open_ways():
            if not way.is_slow and self._rng.random() < 0.6:
                way.arrive(self._rng.choice((1, 10, 16, 17, 60, _NEVER)))

    def _narrow(self) -> None:
        for way in self._open_ways():
            if self._rng.random() < 0.4:
                way.room = way.link.room = self._rng.choice(_ROOM_BYTES)

    def _widen(self) -> None:
        for way in self._open_ways():
            way.room = way.link.room = None

    def _leave(self) -> None:
        ways = self._open_ways()
        if ways:
            way = self._rng.choice(ways)
            way.has_left = way.link.has_left = True

    def _cut(self) -> None:
        """Let an address be reachable, or not."""
        self._network.unreachable ^= {LINK_SETTINGS.peers[self._rng.choice(self._others)]}

    # ---- judges --------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        _is("the number of links that were made", len(self._network.made), self._made)
        for way in self._ways:
            _is(f"what was sent to {way.link.peer}", bytes(way.link.outbox), bytes(way.sent))
            _is(f"whether the link to {way.link.peer} has ended", way.link.is_closed, way.is_over)
            if way.link.asked_bytes > (_SENTENCE_BYTES_MAX if way.link in self._network.made else _READ_BYTES):
                raise GuaranteeBroken(8, f"{way.link.asked_bytes} bytes are read at once")
        known = {each.sender for each in self._incoming}
        rows = self._peers.rows()
        for row, (number, outgoing) in zip(rows, self._outgoing.items(), strict=True):
            wanted = {
                "member": number, "address": LINK_SETTINGS.peers[number], "sends": outgoing.way is not None,
                "receives": number in known, "dropped": outgoing.dropped,
            }  # fmt: skip
            finding = row.pop("finding")
            _is(f"what is shown of the links of {number}", row, wanted)
            _is_part("the reason for the end of a link", str(finding), outgoing.finding)
            clients = [each.clients for each in self._incoming if each.sender == number][-1:]
            _is("the address of clients", self._peers.clients_of(number), "".join(clients))
        wanted_findings = self._findings[-_FINDINGS_MAX:]
        _is("the number of findings", len(self._peers.findings), len(wanted_findings))
        for found, stated in zip(self._peers.findings, wanted_findings, strict=True):
            _is_part("a finding", found, stated)
        due = [each.connect_ms for each in self._outgoing.values() if each.way is None]
        _is("the time of the next connection", self._peers.next_ms, min(due, default=None))


def _is(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise GuaranteeBroken(8, f"{what} is another one", str(wanted)[:200], str(found)[:200])


def _is_part(what: str, found: str, stated: str) -> None:
    """Require the peer of a sentence, and a part of its reason."""
    peer, colon, reason = stated.rpartition(": ") if stated.startswith("10.") else ("", "", stated)
    if not found.startswith(peer + colon) or reason not in found or bool(found) != bool(stated):
        raise GuaranteeBroken(8, f"{what} is another one", stated[:200], found[:200])
