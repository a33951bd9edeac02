"""A message store for the clients of a group, whose puts are entries.

Puts and pulls are calls of the store, from any thread. Their messages to other members wait for the next step of the
node. `read` is for a client that has to see all puts that were acknowledged before.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.parts import Parts
from tornpage.impl.raft.answers import Answered, RaftStatus, settle
from tornpage.impl.raft.faces import HardStateFace, LogFace
from tornpage.impl.raft.member import RaftMember
from tornpage.impl.raft.messages import Envelope, Message
from tornpage.impl.raft.raft_store import Membership, RaftStore
from tornpage.impl.raft.recent import RecentEntries
from tornpage.impl.raft.settings import RaftSettings
from tornpage.impl.store import MessageStore

__all__ = ["StoreApplication"]

_SAVE_MS = 3_000
"""How often the commit end is saved. `checkPointInterval` in DLedger."""


@dataclass(slots=True)
class _Read:
    """A read that waits for a majority."""

    until_ms: int
    end: "Future[int | None]"
    answer: "Future[Answered]"


class StoreApplication:
    """The store of a member. `wake` makes the node do a step.

    Raises what `RaftStore.open` raises.
    """

    def __init__(
        self,
        directory: str,
        me: int,
        config: MessageStoreConfig,
        settings: RaftSettings,
        *,
        files: Files,
        clock: Clock,
        parts: Parts,
        wake: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._wake = wake
        self._sent: deque[Envelope] = deque()
        self._asked: deque[Future[Answered]] = deque()
        self._reads: list[_Read] = []
        self._save_ms = 0
        self._is_stopped = False
        new_member = parts.of(RaftMember)

        def member_of(me: int, members: int, log: LogFace, hard_state: HardStateFace, **options: int) -> RaftMember:
            recent = RecentEntries(log, settings.recent_bytes_max)
            return new_member(me, members, recent, hard_state, **options)

        self._raft = RaftStore.open(
            directory,
            config,
            Membership(me, len(settings.peers), settings.batch_bytes_max, settings.index_file_bytes),
            files=files,
            clock=clock,
            send=self._send,
            parts=parts.replacing({RaftMember: member_of}),
        )

    @property
    def store(self) -> MessageStore:
        """The store with the puts and the reads."""
        return self._raft.store

    @property
    def member(self) -> RaftMember:
        """The member."""
        return self._raft.member

    def close(self) -> None:
        """Close the store, and release the directory. Raises OSError."""
        self._raft.close()

    # ---- requests of clients -------------------------------------------------------------------------------------

    def read(self) -> "Future[Answered]":
        """Ask for the end of the entries that a read may see.

        After the answer OK a pull sees every message that was acknowledged before this call.
        """
        answer: Future[Answered] = Future()
        self._asked.append(answer)
        self._wake()
        if self._is_stopped:
            self._refuse(RaftStatus.STOPPED)
        return answer

    def _send(self, envelopes: Sequence[Envelope]) -> None:
        """Take the messages of a put."""
        self._sent += envelopes
        self._wake()

    # ---- events of the member ------------------------------------------------------------------------------------

    def election_timeout(self) -> list[Envelope]:
        """Become a candidate of a new term, unless leader."""
        return self._raft.election_timeout()

    def heartbeat(self) -> list[Envelope]:
        """Send every other member what it lacks."""
        return self._raft.heartbeat()

    def sync(self) -> list[Envelope]:
        """Make the log durable, then confirm or count its entries."""
        return self._raft.sync()

    def receive(self, source: int, message: Message) -> list[Envelope]:
        """Take a message of another member."""
        return self._raft.receive(source, message)

    def transfer(self, to: int) -> list[Envelope]:
        """Ask a member with the whole log to lead."""
        return self._raft.transfer(to)

    # ---- the thread of the node ----------------------------------------------------------------------------------

    @property
    def has_requests(self) -> bool:
        """Whether messages of puts or reads wait for the next step."""
        return bool(self._sent or self._asked)

    def begin_requests(self, now_ms: int, refusal: RaftStatus | None) -> Sequence[Envelope]:
        """Return the messages of puts, and begin the reads that clients have asked for."""
        sent = [self._sent.popleft() for _ in range(len(self._sent))]
        if refusal is not None:
            self._refuse(refusal)
        while self._asked:
            begun = self._raft.begin_read()
            if begun is None:
                self._refuse(RaftStatus.NOT_LEADER)
                break
            self._reads.append(_Read(now_ms + self._settings.answer_timeout, begun[0], self._asked.popleft()))
            sent += begun[1]
        return sent

    def answer(self, now_ms: int) -> None:
        """Answer reads that are confirmed, or whose time is over."""
        waiting = []
        for each in self._reads:
            if each.end.done():
                end = each.end.result()
                done = Answered(RaftStatus.NOT_LEADER) if end is None else Answered(RaftStatus.OK, end)
                settle(each.answer, done)
            elif each.until_ms <= now_ms:
                settle(each.answer, Answered(RaftStatus.NO_MAJORITY))
            else:
                waiting.append(each)
        self._reads = waiting
        if now_ms >= self._save_ms:
            self._save_ms = now_ms + _SAVE_MS
            self._raft.save_commit_end()

    def lose_role(self) -> None:
        """Do nothing: the store answers its puts and reads itself."""

    def stop(self) -> None:
        """Answer all reads: the member has ended. The store answers its puts when it is closed."""
        self._is_stopped = True
        for each in self._reads:
            settle(each.answer, Answered(RaftStatus.STOPPED))
        self._reads = []
        self._refuse(RaftStatus.STOPPED)

    def _refuse(self, status: RaftStatus) -> None:
        with suppress(IndexError):  # after the end of the member, two threads may do this
            while self._asked:
                settle(self._asked.popleft(), Answered(status))
