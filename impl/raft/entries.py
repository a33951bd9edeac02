"""Entries for the clients of a group: appends, and reads of what was acknowledged.

Every thread may call `append` and `read`. The other methods are those of the thread of the node. Appends that have
arrived since the last step are one batch of the log.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from tornpage.impl.raft.answers import UNKNOWN, Answered, RaftStatus, settle
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import Envelope, Message
from tornpage.impl.raft.settings import RaftSettings

__all__ = ["RaftEntries"]

_ENTRIES_PER_STEP = 1_024


@dataclass(slots=True)
class _Appended:
    """An appended entry whose client waits."""

    place: int
    term: int
    until_ms: int
    size_bytes: int
    answer: "Future[Answered]"


@dataclass(slots=True)
class _Reads:
    """The reads of one round."""

    until_ms: int
    answers: "list[Future[Answered]]"


class RaftEntries:
    """The entries of a member. `wake` makes the node do a step."""

    def __init__(self, member: RaftMember, settings: RaftSettings, wake: Callable[[], None]) -> None:
        self.member = member
        self._settings = settings
        self._wake = wake
        self._appends: deque[tuple[bytes, Future[Answered]]] = deque()
        self._reads: deque[Future[Answered]] = deque()
        self._appended: deque[_Appended] = deque()
        self._appended_bytes = 0
        self._rounds: deque[_Reads] = deque()
        self._is_stopped = False

    # ---- requests of clients -------------------------------------------------------------------------------------

    def append(self, body: bytes) -> "Future[Answered]":
        """Ask for an entry.

        The answer comes after it is committed, or after `answer_timeout`. Raises ValueError for an empty body, which
        begins a term.
        """
        if not body:
            raise ValueError("an entry of a client has at least one byte")
        answer: Future[Answered] = Future()
        self._appends.append((body, answer))
        self._asked()
        return answer

    def read(self) -> "Future[Answered]":
        """Ask for the end of the entries that a read may see.

        It has all entries that were acknowledged before this call.
        """
        answer: Future[Answered] = Future()
        self._reads.append(answer)
        self._asked()
        return answer

    def _asked(self) -> None:
        self._wake()
        if self._is_stopped:
            self._refuse(RaftStatus.STOPPED)

    @property
    def waiting(self) -> int:
        """The number of appended entries whose clients wait."""
        return len(self._appended)

    # ---- events of the member ------------------------------------------------------------------------------------

    def election_timeout(self) -> list[Envelope]:
        """Become a candidate of a new term, unless leader."""
        return self.member.election_timeout()

    def heartbeat(self) -> list[Envelope]:
        """Send every other member what it lacks."""
        return self.member.heartbeat()

    def sync(self) -> list[Envelope]:
        """Make the log durable, then confirm or count its entries."""
        return self.member.sync()

    def receive(self, source: int, message: Message) -> list[Envelope]:
        """Take a message of another member."""
        return self.member.receive(source, message)

    def transfer(self, to: int) -> list[Envelope]:
        """Ask a member with the whole log to lead."""
        return self.member.transfer(to)

    # ---- the thread of the node ----------------------------------------------------------------------------------

    @property
    def has_requests(self) -> bool:
        """Whether requests of clients wait for the next step."""
        return bool(self._appends or self._reads)

    def begin_requests(self, now_ms: int, refusal: RaftStatus | None) -> Sequence[Envelope]:
        """Begin what clients have asked for since the last call, or refuse it with a status."""
        if refusal is not None:
            self._refuse(refusal)
            return []
        sent = self._begin_appends(now_ms)
        if self._reads:
            answers = [self._reads.popleft() for _ in range(len(self._reads))]
            self._rounds.append(_Reads(now_ms + self._settings.answer_timeout, answers))
            sent += self.member.read() or []
        return sent

    def _begin_appends(self, now_ms: int) -> list[Envelope]:
        settings = self._settings
        begun: list[tuple[bytes, Future[Answered]]] = []
        size_bytes = 0
        while self._appends and len(begun) < _ENTRIES_PER_STEP and size_bytes < settings.batch_bytes_max:
            body, answer = self._appends.popleft()
            if len(body) > settings.entry_body_bytes_max:
                settle(answer, Answered(RaftStatus.TOO_LARGE))
            elif self._is_full(len(begun), size_bytes + len(body)):
                settle(answer, Answered(RaftStatus.BUSY))
            else:
                begun.append((body, answer))
                size_bytes += len(body)
        if not begun:
            return []
        place, term, until_ms = self.member.log.end, self.member.term, now_ms + settings.answer_timeout
        for at, (body, answer) in enumerate(begun):
            self._appended.append(_Appended(place + at, term, until_ms, len(body), answer))
        self._appended_bytes += size_bytes
        return self.member.propose([body for body, _ in begun]) or []

    def _is_full(self, count: int, size_bytes: int) -> bool:
        """Whether the leader takes no further entry after some of this step."""
        settings = self._settings
        return (
            self.member.transferee is not None
            or len(self._appended) + count >= settings.pending_max
            or self._appended_bytes + size_bytes > settings.pending_bytes_max
        )

    def answer(self, now_ms: int) -> None:
        """Answer requests that are done, or whose time is over."""
        commit, appended = self.member.commit, self._appended
        while appended and (appended[0].place < commit or appended[0].until_ms <= now_ms):
            first = appended.popleft()
            self._appended_bytes -= first.size_bytes
            is_committed = first.place < commit
            settle(first.answer, Answered(RaftStatus.OK, first.place, first.term) if is_committed else UNKNOWN)
        for end in self.member.take_answered():
            for answer in self._rounds.popleft().answers:
                settle(answer, Answered(RaftStatus.OK, end, self.member.term))
        for late in self._rounds:
            while late.answers and late.until_ms <= now_ms:
                settle(late.answers.pop(), Answered(RaftStatus.NO_MAJORITY))

    def lose_role(self) -> None:
        """Answer the requests that a leader has begun: it leads no more.

        Reads that a majority has confirmed in this step are answered here too, so that `answer` does not find them.
        """
        self.member.take_answered()
        while self._appended:
            settle(self._appended.popleft().answer, UNKNOWN)
        self._appended_bytes = 0
        while self._rounds:
            for answer in self._rounds.popleft().answers:
                settle(answer, Answered(RaftStatus.NOT_LEADER))

    def stop(self) -> None:
        """Answer all requests: the member has ended."""
        self._is_stopped = True
        self.lose_role()
        self._refuse(RaftStatus.STOPPED)

    def _refuse(self, status: RaftStatus) -> None:
        """Answer all requests that were not begun."""
        with suppress(IndexError):  # after the end of the member, two threads may do this
            while self._appends:
                settle(self._appends.popleft()[1], Answered(status))
            while self._reads:
                settle(self._reads.popleft(), Answered(status))
