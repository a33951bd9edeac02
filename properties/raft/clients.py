"""Judge the answers that clients of a member get from its node.

| contract | what is judged |
|---|---|
| 8 | OK is answered for a committed entry at its place, and TOO_LARGE above the limit of a body |
| 8 | BUSY is answered at a limit or during a transfer, and NOT_LEADER without the role |
| 8 | UNKNOWN is answered at its time or after a loss of the role, and STOPPED after the end of the member |
| 16 | each request is answered within its time, and at once if the member ends |
| 17 | a read sees all that was committed before it began |
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal

from tornpage.impl.raft.answers import Answered, RaftStatus
from tornpage.impl.raft.settings import RaftSettings
from tornpage.model.raft.promises import read_is_fresh
from tornpage.model.raft.state import Entry
from tornpage.properties.contract import GuaranteeBroken

__all__ = ["Clients", "Now"]

_LATE_MS = 250
"""A node looks at its requests every 100 ms."""


@dataclass(slots=True)
class _Request:
    """A request without an answer.

    `committed` counts the committed entries when it was asked. The process of its member was stopped for `stopped_ms`.
    """

    kind: Literal["append", "read", "transfer"]
    answer: "Future[Answered]"
    asked_ms: int
    committed: int
    size_bytes: int = 0
    payload: int = 0
    was_leader: bool = False
    roles: int = 0
    stopped_ms: int = 0


@dataclass(frozen=True, slots=True)
class Now:
    """What is known when answers are judged.

    `roles` counts the changes of role and term of the member. `is_over` is whether it has ended.
    """

    ms: int
    committed: Sequence[Entry]
    is_leader: bool
    roles: int
    is_over: bool = False


@dataclass
class Clients:
    """The clients of one life of a member."""

    settings: RaftSettings
    requests: list[_Request] = field(default_factory=list)
    may_be_busy_until_ms: int = -1

    def append(self, answer: "Future[Answered]", payload: int, size_bytes: int, now: Now) -> None:
        """Take a new append."""
        self._take(_Request("append", answer, now.ms, len(now.committed), size_bytes, payload), now)

    def read(self, answer: "Future[Answered]", now: Now) -> None:
        """Take a new read."""
        self._take(_Request("read", answer, now.ms, len(now.committed)), now)

    def transfer(self, answer: "Future[Answered]", now: Now) -> None:
        """Take a request to give up the role.

        The member may take no entries until its next heartbeat.
        """
        self._take(_Request("transfer", answer, now.ms, len(now.committed)), now)

    def _take(self, request: _Request, now: Now) -> None:
        request.was_leader, request.roles = now.is_leader, now.roles
        self.requests.append(request)

    def process_was_stopped(self, milliseconds: int) -> None:
        """Let open requests have more time, since a stopped process answers nothing."""
        for each in self.requests:
            each.stopped_ms += milliseconds

    def judge(self, now: Now) -> list[str]:
        """Judge the new answers, and return them as words. Raises GuaranteeBroken."""
        appends = [each for each in self.requests if each.kind == "append"]
        is_full = len(appends) > self.settings.pending_max or (
            sum(each.size_bytes for each in appends) > self.settings.pending_bytes_max
        )
        for each in self.requests:
            if each.kind == "transfer" and each.answer.done() and each.answer.result(0).status is RaftStatus.OK:
                self.may_be_busy_until_ms = now.ms + self.settings.heartbeat_interval + _LATE_MS
        waiting, answered = [], []
        for each in self.requests:
            if each.answer.done():
                found = each.answer.result(0)
                self._judge_answer(each, found, now, is_full=is_full)
                answered.append(f"{each.kind} {found.status}")
                continue
            limit_ms = _LATE_MS if each.kind == "transfer" else self.settings.answer_timeout + _LATE_MS
            if now.is_over or now.ms > each.asked_ms + limit_ms + each.stopped_ms:
                late = "after the end of the member" if now.is_over else f"after {now.ms - each.asked_ms} ms"
                raise GuaranteeBroken(16, f"a request ({each.kind}) has no answer {late}")
            waiting.append(each)
        self.requests = waiting
        return answered

    def _judge_answer(self, asked: _Request, found: Answered, now: Now, *, is_full: bool) -> None:
        status, has_changed = found.status, now.roles != asked.roles
        if asked.kind == "append" and asked.size_bytes > self.settings.entry_body_bytes_max:
            is_legal = status not in (RaftStatus.OK, RaftStatus.BUSY, RaftStatus.UNKNOWN)
        elif status is RaftStatus.OK:
            is_legal = self._is_done(asked, found, now)
        elif status is RaftStatus.BUSY:
            is_legal = asked.kind == "transfer" or is_full or now.ms <= self.may_be_busy_until_ms
        elif status is RaftStatus.NOT_LEADER:
            is_legal = not now.is_leader or has_changed or now.is_over
        elif status is RaftStatus.UNKNOWN:
            is_late = now.ms >= asked.asked_ms + self.settings.answer_timeout
            is_legal = asked.kind == "append" and (has_changed or is_late or now.is_over)
        elif status is RaftStatus.STOPPED:
            is_legal = now.is_over
        else:
            is_legal = status is RaftStatus.NO_MAJORITY
        if not is_legal:
            raise GuaranteeBroken(
                8, f"a request ({asked.kind}) is answered {status} after {now.ms - asked.asked_ms} ms, which is not so",
                found=str(found),
            )  # fmt: skip

    def _is_done(self, asked: _Request, found: Answered, now: Now) -> bool:
        committed = now.committed
        if asked.kind == "read":
            for sentence in read_is_fresh(asked.committed, found.place):
                raise GuaranteeBroken(17, sentence)
            return found.place <= len(committed)
        if asked.kind == "transfer":
            return asked.was_leader or now.roles != asked.roles
        return 0 <= found.place < len(committed) and committed[found.place] == Entry(found.term, asked.payload)
