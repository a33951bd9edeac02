"""The links of a member to the others: messages out, messages in.

A member has one link to each other member, on which it sends, and accepts one link of each, on which it receives. All
input is checked before it has an effect, and whatever is wrong ends its link with a finding:

1. A link is accepted from the host of a member only, and its first frame has to name two members and the same group.
2. A newer link of a member ends its older one.
3. A link that is silent for `silence_max` ends, at both ends, and one whose frame is incomplete for that long. The
   sender sends a PING every third of that time, and the receiver answers it.
4. A message whose values contradict this member is refused (impl/raft/objections.py).
5. Memory is bounded. A link that receives holds one incomplete frame. A link that sends holds about
   `unsent_bytes_max`; further messages are dropped, which the protocol of the members allows.

An append with entries is sent after the one before it is answered. Until then only its commit and its round are sent.
So a member that does not answer costs no copies of entries.
"""

import logging
from collections.abc import Callable, Iterator, Sequence

from tornpage.impl.raft.messages import AppendAnswer, AppendEntries, Envelope, Message
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.raft.wire import (
    Hello,
    RaftKind,
    encoded,
    frame_bytes_max,
    hello_frame,
    hello_of,
    message_of,
    ping_frame,
)
from tornpage.impl.replication.framing import BadFrame, Frame, Framing, frame_of
from tornpage.impl.replication.link import Link, Network

__all__ = ["READ_BYTES", "Peers"]

_LOG = logging.getLogger("tornpage.raft")

READ_BYTES = 256 << 10
"""Bytes that one step reads from one link."""
_FINDINGS_MAX = 100
_SENTENCE_BYTES_MAX = 1_024

Objection = Callable[[int, Message], str]
"""Returns why a message of a member is impossible now, or an empty text."""


class _Silence:
    """Notices a link that is silent for too long."""

    def __init__(self, limit_ms: int, now_ms: int) -> None:
        self._limit_ms = limit_ms
        self.since_ms = now_ms

    def check(self, now_ms: int, what: str) -> None:
        """Raise BadFrame after the limit."""
        if now_ms - self.since_ms > self._limit_ms:
            raise BadFrame(f"{what} for {now_ms - self.since_ms} ms")


class _Sender:
    """The link on which messages to one member are sent.

    `dropped` counts messages that were not sent, `finding` says why there was no link last, and the next link begins
    at `connect_ms`.
    """

    def __init__(self, to: int, hello: bytes, settings: RaftSettings, network: Network) -> None:
        self.dropped = 0
        self.finding = ""
        self._address = settings.peers[to]
        self._hello = hello
        self._settings = settings
        self._network = network
        self._link: Link | None = None
        self._reader = Framing(RaftKind, _SENTENCE_BYTES_MAX)
        self._unsent = bytearray()
        self._silence = _Silence(settings.silence_max, 0)
        self._ping_ms = 0
        self.connect_ms = 0
        self._unanswered: tuple[int, int, int] | None = None  # term, end and time of the last entries
        self._state: tuple[int, int] | None = None  # the last commit and round

    @property
    def is_connected(self) -> bool:
        """Whether there is a link. It may not be established yet."""
        return self._link is not None

    def step(self, now_ms: int) -> None:
        """Connect if needed, then read a refusal and write."""
        if self._link is None and not self._connect(now_ms):
            return
        assert self._link is not None
        try:
            arrived = self._link.receive(_SENTENCE_BYTES_MAX)
            if arrived is None:
                raise BadFrame("the member has ended the link")
            if arrived:
                self._silence.since_ms = now_ms
            else:
                self._silence.check(now_ms, "no PING was answered")
            for frame in self._reader.feed(arrived):
                _take_answer(frame)
            if now_ms >= self._ping_ms:
                self._ping_ms = now_ms + self._settings.silence_max // 3
                self._unsent += ping_frame()
            self.write()
        except BadFrame as error:
            self.end(str(error))

    def write(self) -> None:
        """Hand bytes to the link until it is full."""
        if self._link is None:
            return
        while self._unsent and (count := self._link.send(bytes(self._unsent[:READ_BYTES]))):
            del self._unsent[:count]

    def _connect(self, now_ms: int) -> bool:
        if now_ms < self.connect_ms:
            return False
        self.connect_ms = now_ms + self._settings.reconnect_interval
        self._link = self._network.connect(self._address)
        if self._link is None:
            self._find("no member answers")
            return False
        self._reader = Framing(RaftKind, _SENTENCE_BYTES_MAX)
        self._unsent = bytearray(self._hello)
        self._silence.since_ms = self._ping_ms = now_ms
        self._unanswered = self._state = None
        return True

    def send(self, message: Message, now_ms: int, *, at_once: bool) -> None:
        """Queue a message, or drop it without a link or without room.

        `at_once` sends an append without entries even if it has no news.
        """
        if self._link is None or len(self._unsent) > self._settings.unsent_bytes_max:
            self.dropped += 1
            return
        if isinstance(message, AppendEntries):
            if message.entries and self._awaits_answer(message.term, now_ms):
                message = message._replace(entries=())
            if not message.entries and not at_once and self._state == (message.term, message.round):
                return
            self._state = message.term, message.round
            if message.entries:
                self._unanswered = message.term, message.begin + len(message.entries), now_ms
        self._unsent += encoded(message)

    def _awaits_answer(self, term: int, now_ms: int) -> bool:
        if self._unanswered is None:
            return False
        sent_term, _, sent_ms = self._unanswered
        return sent_term == term and now_ms - sent_ms <= self._settings.election_timeout_max

    def note(self, answer: AppendAnswer) -> None:
        """Take an answer of the member: more entries may be sent to it."""
        if self._unanswered is not None and (not answer.matches or answer.end >= self._unanswered[1]):
            self._unanswered = None

    def end(self, reason: str) -> None:
        """End the link, and forget what was not sent."""
        if self._link is not None:
            self._link.close()
            self._link = None
        self._unsent.clear()
        self._find(reason)

    def _find(self, reason: str) -> None:
        if reason != self.finding:
            self.finding = reason
            _LOG.info("no_link_to address=%s reason=%r", self._address, reason)


def _take_answer(frame: Frame) -> None:
    """Take what a receiver sends. Raises BadFrame unless it is the answer to a PING."""
    if frame.kind is RaftKind.REFUSAL:
        raise BadFrame(f"the member refuses: {frame.body.decode(errors='replace')}")
    if frame.kind is not RaftKind.PING:
        raise BadFrame(f"a frame of kind {frame.kind.name} may not come here")


class _Receiver:
    """One accepted link.

    `hello` is None before the first frame, `ended` the reason once the link is closed.
    """

    def __init__(self, link: Link, me: int, settings: RaftSettings, now_ms: int, objection: Objection) -> None:
        self.hello: Hello | None = None
        self._objection = objection
        self.ended = ""
        self._link = link
        self._me = me
        self._settings = settings
        self._reader = Framing(RaftKind, frame_bytes_max(settings.batch_bytes_max, settings.body_bytes_max))
        self._silence = _Silence(settings.silence_max, now_ms)
        self._unsent = b""

    @property
    def peer(self) -> str:
        """The address of the other end, with the number of the member if it is known."""
        return self._link.peer if self.hello is None else f"{self._link.peer} (n{self.hello.sender})"

    def step(self, now_ms: int) -> Iterator[Message]:
        """Yield each message that has arrived."""
        try:
            arrived = self._link.receive(READ_BYTES)
            if arrived is None:
                raise BadFrame("the member has ended the link")
            if arrived:
                self._silence.since_ms = now_ms
            else:
                self._silence.check(now_ms, "nothing was received")
            for frame in self._reader.feed(arrived):
                if self.hello is None:
                    self._greet(frame)
                elif frame.kind is not RaftKind.PING:
                    yield self._possible(message_of(frame), self.hello.sender)
                elif frame.body:
                    raise BadFrame(f"a frame of kind PING has {len(frame.body)} bytes")
                elif not self._unsent:
                    self._unsent = ping_frame()
            self._unsent = self._unsent[self._link.send(self._unsent) :] if self._unsent else b""
            self._reader.check_time(now_ms, self._settings.silence_max)
        except BadFrame as error:
            self.end(str(error))

    def _greet(self, frame: Frame) -> None:
        if frame.kind is not RaftKind.HELLO:
            raise BadFrame(f"a frame of kind {frame.kind.name} may not come here")
        hello, peers, group = hello_of(frame.body), self._settings.peers, self._settings.group
        if hello.group != group:
            self._refuse(f"the group is {group} here, and {hello.group} there")
        if hello.receiver != self._me:
            self._refuse(f"this is member n{self._me}, and n{hello.receiver} was meant")
        if hello.sender == self._me or hello.sender >= len(peers):
            self._refuse(f"a sender calls itself n{hello.sender}, and this is n{self._me} of {len(peers)} members")
        if self._link.peer.rpartition(":")[0] != self._settings.hosts[hello.sender]:
            self._refuse(f"member n{hello.sender} is at {self._settings.peers[hello.sender]}, not here")
        self.hello = hello

    def _possible(self, message: Message, sender: int) -> Message:
        """Return a message that a correct member may have sent. Raises BadFrame."""
        reason = self._objection(sender, message)
        if reason:
            self._refuse(reason)
        return message

    def _refuse(self, sentence: str) -> None:
        """Send the reason, and end the link. The reason is lost if the link has no room for it."""
        self._link.send(frame_of(RaftKind.REFUSAL, sentence.encode()[:_SENTENCE_BYTES_MAX]))
        raise BadFrame(sentence)

    def end(self, reason: str) -> None:
        """End the link."""
        if not self.ended:
            self.ended = reason
            self._link.close()


class Peers:
    """All links of a member.

    `findings` are sentences about accepted links that ended, the newest last. `objection` is called for each message
    before it is yielded, after the ones before it were taken.

    Raises OSError if the member cannot listen at its address.
    """

    def __init__(
        self, me: int, settings: RaftSettings, network: Network, *, clients: str, objection: Objection
    ) -> None:
        self.findings: list[str] = []
        self._objection = objection
        self._me = me
        self._settings = settings
        self._listener = network.listen(settings.peers[me])
        self._hosts = frozenset(settings.hosts)
        self._senders = {
            each: _Sender(each, hello_frame(Hello(me, each, settings.group, clients)), settings, network)
            for each in range(len(settings.peers))
            if each != me
        }
        self._receivers: list[_Receiver] = []

    # ---- receiving -----------------------------------------------------------------------------------------------

    def step(self, now_ms: int) -> Iterator[tuple[int, Message]]:
        """Accept and make links, and yield each message that has arrived with its sender."""
        while (link := self._listener.accept()) is not None:
            self._accept(link, now_ms)
        for each in self._senders.values():
            each.step(now_ms)
        for receiver in tuple(self._receivers):
            was_known = receiver.hello is not None
            for message in receiver.step(now_ms):
                assert receiver.hello is not None
                sender = receiver.hello.sender
                if isinstance(message, AppendAnswer):
                    self._senders[sender].note(message)
                yield sender, message
            if not was_known and receiver.hello is not None and not receiver.ended:
                self._end_others(receiver, receiver.hello.sender)
        for receiver in [each for each in self._receivers if each.ended]:
            self._receivers.remove(receiver)
            self._find(receiver.peer, receiver.ended)

    def _accept(self, link: Link, now_ms: int) -> None:
        if len(self._receivers) >= self._settings.connections_max:
            link.close()
            self._find(link.peer, f"there are {self._settings.connections_max} connections already")
        elif link.peer.rpartition(":")[0] not in self._hosts:
            link.close()
            self._find(link.peer, "no member of the group has this address")
        else:
            self._receivers.append(_Receiver(link, self._me, self._settings, now_ms, self._objection))

    def _end_others(self, newest: _Receiver, sender: int) -> None:
        for older in self._receivers:
            if older is not newest and older.hello is not None and older.hello.sender == sender:
                older.end("the member has a newer connection")

    def _find(self, peer: str, reason: str) -> None:
        _LOG.info("connection_ended peer=%s reason=%r", peer, reason)
        self.findings = [*self.findings[1 - _FINDINGS_MAX :], f"{peer}: {reason}"]

    # ---- sending -------------------------------------------------------------------------------------------------

    @property
    def next_ms(self) -> int | None:
        """The earliest time at which a member without a link is to be connected to."""
        return min((each.connect_ms for each in self._senders.values() if not each.is_connected), default=None)

    def send(self, envelopes: Sequence[Envelope], now_ms: int, *, at_once: bool = False) -> None:
        """Queue messages. `at_once` also sends appends that have no news, as heartbeats."""
        for to, message in envelopes:
            self._senders[to].send(message, now_ms, at_once=at_once)

    def write(self) -> None:
        """Hand queued bytes to the links."""
        for each in self._senders.values():
            each.write()

    # ---- for operators -------------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """The address at which it listens."""
        return self._listener.address

    def clients_of(self, member: int) -> str:
        """Return the address at which a member serves clients, or an empty text."""
        for each in reversed(self._receivers):
            if each.hello is not None and each.hello.sender == member:
                return each.hello.clients
        return ""

    def rows(self) -> list[dict[str, object]]:
        """Return the state of the links with each other member."""
        known = {each.hello.sender for each in tuple(self._receivers) if each.hello is not None}
        return [
            {
                "member": number,
                "address": self._settings.peers[number],
                "sends": each.is_connected,
                "receives": number in known,
                "dropped": each.dropped,
                "finding": each.finding,
            }
            for number, each in self._senders.items()
        ]

    def close(self) -> None:
        """End all links and stop listening. Idempotent."""
        self._listener.close()
        for sender in self._senders.values():
            sender.end("this member is closing")
        for receiver in self._receivers:
            receiver.end("this member is closing")
        self._receivers = []
