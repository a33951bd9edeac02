"""Run a message store whose commit log is the Raft log of one member.

The store is a `MessageStore` with other parts: puts propose entries, readers see committed entries, recovery is that of
the Raft log. Queues and index get committed entries only. No cut reaches them, since committed entries are never cut.

As a member, a `RaftStore` does nothing by itself. The caller calls a method for each event, and sends the messages that
it returns. `send` gets the messages of puts. A put waits for a sync of its leader, which is an event as well.

Source: `DLedgerCommitLog`, `DLedgerRoleChangeHandler`.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn, Self

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole, FlushDiskType
from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.dispatch.dispatch_records import dispatch_records
from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.errors import BadConfig, StoreError
from tornpage.impl.guards import make_guard
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.io.store_lock import StoreLock, make_directories
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.log.loading import examine_log
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.log.put_lock import make_put_lock
from tornpage.impl.message.delay_levels import DelayLevels
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.put.put_answers import PutAnswers
from tornpage.impl.put.rewriting import delayed
from tornpage.impl.raft.appended_puts import Decided
from tornpage.impl.raft.commit_point import CommitPoint
from tornpage.impl.raft.committed_files import CommittedFiles, CommittedRecovery, find_data_files
from tornpage.impl.raft.entry_dispatch import entries_dispatcher
from tornpage.impl.raft.hard_state import HardState
from tornpage.impl.raft.member import BATCH_BYTES_MAX, RaftMember
from tornpage.impl.raft.messages import Envelope
from tornpage.impl.raft.messages import Message as RaftMessage
from tornpage.impl.raft.raft_commit_log import RaftCommitLog, RaftPutAnswers, Send
from tornpage.impl.raft.raft_log import INDEX_FILE_BYTES, RaftLog
from tornpage.impl.recovery.recovery import Recovery
from tornpage.impl.retention.clean_commit_log import CleanCommitLog
from tornpage.impl.retention.topic_cleaning import TopicCleaning
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.impl.store import MessageStore

__all__ = ["Membership", "NotReplicated", "RaftStore"]


class NotReplicated(StoreError):
    """A change that the members of a group would not share, such as the deletion of a topic."""


@dataclass(frozen=True, slots=True)
class Membership:
    """The place of a member in its group, and the settings of its Raft log.

    It is member `me` of `members`, numbered from 0. One message carries about `batch_bytes_max` bytes of records.
    `unsealed` accepts entries without checksums, which DLedger writes.
    """

    me: int
    members: int
    batch_bytes_max: int = BATCH_BYTES_MAX
    index_file_bytes: int = INDEX_FILE_BYTES
    unsealed: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.me < self.members:
            raise BadConfig("me", self.me, f"use 0 to {self.members - 1} in a group of {self.members}")


class RaftStore:
    """One member of a group with its store; `open` creates it.

    `store` has the puts and the reads, `member` the role and the term. All events take the lock of the member, which is
    the put lock of the store.

    After an exception of an event the member is not usable: close it and open it again.
    """

    def __init__(
        self,
        directory: str,
        config: MessageStoreConfig,
        membership: Membership,
        *,
        files: Files,
        clock: Clock,
        parts: Parts,
        send: Send,
    ) -> None:
        """Open a member; call `open` instead."""
        self._lock = threading.RLock()
        self._commit_guard = parts.of(make_guard)()
        self._send = send
        self._parts = parts
        self._failure = ""
        self._is_closing = False
        self._reads: deque[Future[int | None]] = deque()
        raft_directory = f"{directory}/dledger-n{membership.me}"
        make_directories(files, raft_directory)
        self._directory_lock = parts.of(StoreLock)(files, raft_directory)
        self._directory_lock.acquire()
        self._log: RaftLog | None = None
        try:
            self._open_member(raft_directory, config, membership, files)
            self._leading_term: int | None = None
            self._cuts = self._raft_log.cuts
            store_config = replace(config, **_FORCED, store_path_commit_log=(f"{raft_directory}/data",))
            self.store = MessageStore.open(
                directory, store_config, files=files, clock=clock, parts=self._store_parts(parts)
            )
        except BaseException:
            self._close_member()
            raise

    @classmethod
    def open(
        cls,
        directory: str,
        config: MessageStoreConfig,
        membership: Membership,
        *,
        files: Files,
        clock: Clock,
        send: Send,
        parts: Parts | None = None,
    ) -> Self:
        """Open or create the store of a member, as a follower.

        The Raft log lies in the folder `dledger-n0` of the directory, or that with the number of the member.
        `slave_timeout` of the configuration is how long a put waits for the group, in milliseconds.

        Raises what `MessageStore.open` raises, RaftLogDamaged, HardStateDamaged, OSError, and BadConfig for a setting
        that a Raft log does not have.
        """
        _require_supported(config)
        return cls(
            os.path.abspath(directory), config, membership, files=files, clock=clock, parts=parts or Parts(), send=send
        )

    def _open_member(self, directory: str, config: MessageStoreConfig, membership: Membership, files: Files) -> None:
        parts = self._parts
        hard_state = parts.of(HardState)(files, directory)
        self._log = self._raft_log = parts.of(RaftLog)(
            files,
            directory,
            data_file_bytes=config.mapped_file_size_commit_log,
            index_file_bytes=membership.index_file_bytes,
            unsealed=membership.unsealed,
        )
        self._commit_point = parts.of(CommitPoint)(files, directory)
        self.member = parts.of(RaftMember)(
            membership.me,
            membership.members,
            self._raft_log,
            hard_state,
            batch_bytes_max=membership.batch_bytes_max,
        )
        self.member.commit = min(self._commit_point.commit, self._raft_log.end)

    def _store_parts(self, parts: Parts) -> Parts:
        """Return the parts of a store on the Raft log. The store makes them while it opens."""

        def files_of(*arguments: Any, **settings: Any) -> CommittedFiles:
            self._files = parts.of(CommittedFiles)(*arguments, member=self.member, raft_log=self._raft_log, **settings)
            return self._files

        def reput_of(derived: Derived, *arguments: Any, **settings: Any) -> ReputMessages:
            self._derived = derived
            self._reput = parts.of(ReputMessages)(derived, *arguments, **settings)
            return self._reput

        def commit_log_of(*arguments: Any, **settings: Any) -> RaftCommitLog:
            self._commit_log = parts.of(RaftCommitLog)(
                *arguments, member=self.member, raft_log=self._raft_log, send=self._send, fail=self._fail, **settings
            )
            return self._commit_log

        def answers_of(**settings: Any) -> RaftPutAnswers:
            return parts.of(RaftPutAnswers)(commit_log=self._commit_log, **settings)

        return parts.replacing(
            {
                MappedFileQueue: files_of,
                examine_log: find_data_files,
                Recovery: parts.of(CommittedRecovery),
                ReputMessages: reput_of,
                CommitLog: commit_log_of,
                PutAnswers: answers_of,
                make_put_lock: lambda kind: self._lock,
                dispatch_records: entries_dispatcher(parts.of(dispatch_records)),
                delayed: _refuse_delays,
                CleanCommitLog: _KeepsAllFiles,
                TopicCleaning: _KeepsAllTopics,
            }
        )

    # ---- events --------------------------------------------------------------------------------------------------

    def election_timeout(self) -> list[Envelope]:
        """Become a candidate of a new term, unless leader. Raises OSError."""
        return self._event(self.member.election_timeout)

    def heartbeat(self) -> list[Envelope]:
        """Send every other member what it lacks. Raises OSError."""
        return self._event(self.member.heartbeat)

    def sync(self) -> list[Envelope]:
        """Make the log durable, then confirm or count its entries. Raises OSError."""
        return self._event(self.member.sync)

    def receive(self, source: int, message: RaftMessage) -> list[Envelope]:
        """Take a message of another member. Raises OSError."""
        return self._event(lambda: self.member.receive(source, message))

    def transfer(self, to: int) -> list[Envelope]:
        """Ask a member with the whole log to lead. Raises OSError."""
        return self._event(lambda: self.member.transfer(to))

    def begin_read(self) -> "tuple[Future[int | None], list[Envelope]] | None":
        """Begin a read of everything acknowledged, or return None if this member is not leader.

        The future gets the number of visible entries, once a majority has confirmed the leader and queues and index
        have these entries. Reads of the store see all of them then. The future gets None if the member loses its role
        first: ask another member. Raises OSError.
        """
        answer: Future[int | None] = Future()
        is_leader = False

        def begin() -> list[Envelope]:
            nonlocal is_leader
            sent = self.member.read()
            if sent is None:
                return []
            is_leader = True
            self._reads.append(answer)
            return sent

        sent = self._event(begin)
        return (answer, sent) if is_leader else None

    def save_commit_end(self) -> None:
        """Make the end of the visible entries durable.

        They are visible at once after a restart. Call it every few seconds; `close` does it too. Raises OSError, also
        for a member that has failed or is closed.
        """
        with self._commit_guard:
            with self._lock:
                self._require_open()
            self._save_commit_end()

    def _save_commit_end(self) -> None:
        with self._lock:
            visible, end = self.member.visible, self._raft_log.end
        self._commit_point.save(visible, end)

    def close(self) -> None:
        """Answer all waiting puts and reads, close the store, and release the directory.

        Idempotent. If several threads call it, one does the work and the others return at once.
        """
        decided: Decided = []
        reads: _AnsweredReads = []
        with self._lock:
            if self._is_closing:
                return
            self._is_closing = True  # an event from here on would leave requests that are not answered
            self._give_up(decided, reads)
        _tell(decided, reads)
        try:
            self.store.close()
            if not self._failure:
                with self._commit_guard:
                    self._save_commit_end()
        finally:
            with self._commit_guard:  # a save that is under way has the directory until its end
                self._close_member()

    # ---- after an event ------------------------------------------------------------------------------------------

    def _event(self, call: Callable[[], list[Envelope]]) -> list[Envelope]:
        """Carry out an event of the member, then let the store follow it.

        Raises OSError and StoreError.
        """
        decided: Decided = []
        reads: _AnsweredReads = []
        try:
            with self._lock:
                self._require_open()
                try:
                    sent = call()
                    self._follow(decided, reads)
                except BaseException as error:
                    self._fail(error)
                    self._give_up(decided, reads)
                    raise
        finally:
            _tell(decided, reads)
        return sent

    def _require_open(self) -> None:
        """Raise OSError for a member that has failed or is closed."""
        if self._failure or self._is_closing:
            raise OSError(f"this member takes no events: {self._failure or 'it is closed'}")

    def _fail(self, error: BaseException) -> None:
        """Take no more events and no more puts."""
        self._failure = f"{type(error).__name__}: {error}"
        self.store.running_flags.set(RunningFlag.NOT_WRITEABLE)

    def _follow(self, decided: Decided, reads: "_AnsweredReads") -> None:
        """Let puts, counters and reads follow the member.

        The answers to give are added to `decided` and `reads`. They are there also if a later step raises OSError.
        """
        member, commit_log = self.member, self._commit_log
        leading_term = member.term if member.role == "leader" else None
        if self._leading_term not in (None, leading_term):
            self._give_up(decided, reads)
        if (leading_term is not None and leading_term != self._leading_term) or self._raft_log.cuts != self._cuts:
            queues = [(queue.key, queue.max_offset) for queue in self._derived.queues.all()]
            commit_log.rebuild_numbers(self._derived.reput_from_offset, queues)
        self._leading_term, self._cuts = leading_term, self._raft_log.cuts
        self._files.follow()
        decided += commit_log.puts.committed(self._files.readable_end)
        answered = member.take_answered()
        if answered:
            self._reput.drain()
            reads += [(self._reads.popleft(), end) for end in answered]
        self._reput.note_readable()

    def _give_up(self, decided: Decided, reads: "_AnsweredReads") -> None:
        """Add unknown answers for all waiting puts and reads."""
        reads += [(each, None) for each in self._reads]
        self._reads.clear()
        decided += self._commit_log.puts.give_up()

    def _close_member(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None
        self._directory_lock.release()


_AnsweredReads = list[tuple["Future[int | None]", int | None]]


def _tell(decided: Decided, reads: _AnsweredReads) -> None:
    for request, status in decided:
        request.answer(status)
    for answer, end in reads:
        if answer.set_running_or_notify_cancel():
            answer.set_result(end)


_FORCED: dict[str, Any] = {
    "broker_role": BrokerRole.SYNC_MASTER,  # each put waits for the group
    "flush_disk_type": FlushDiskType.ASYNC_FLUSH,  # the member syncs the log
    "populate_ahead_bytes": 0,
    "mapped_files_ahead": 0,
    "first_file_at_open": False,
    "check_whole_log_on_recover": True,  # the opening of the Raft log reads it as well
    "deliver_delayed_messages": False,
}
_UNSUPPORTED = (
    "store_path_commit_log", "read_only_commit_log_store_paths", "transient_store_pool_enable", "enable_multi_dispatch",
    "enable_lmq", "enable_consume_queue_ext", "file_reserved_time", "delete_when", "disk_max_used_space_ratio",
)  # fmt: skip


def _require_supported(config: MessageStoreConfig) -> None:
    """Raise BadConfig for a setting that a Raft log does not have. Files are never deleted."""
    if config.broker_role is BrokerRole.SLAVE:
        raise BadConfig("broker_role", config.broker_role, "the group elects its leader; leave the role out")
    defaults = {each.name: each.default for each in fields(MessageStoreConfig)}
    for name in _UNSUPPORTED:
        value = getattr(config, name)
        if value != defaults[name]:
            raise BadConfig(name, value, "a store on a Raft log does not have this setting; leave it out")


def _refuse_delays(message: Message, text: str, levels: DelayLevels) -> Message | PutStatus:
    """Refuse a delayed message: the members do not share the progress of its delivery (L20)."""
    found = delayed(message, text, levels)
    return found if found is message or not isinstance(found, Message) else PutStatus.MESSAGE_ILLEGAL


class _KeepsAllFiles(CleanCommitLog):
    """Delete no file: the Raft log begins at entry 0."""

    def wants_deletion(self, *, clock_ms: int, urgent: bool) -> bool:
        """Return False."""
        return False

    def delete_first(self, now_ms: int, *, clock_ms: int, urgent: bool) -> bool:
        """Delete nothing."""
        return False


class _KeepsAllTopics(TopicCleaning):
    """Refuse deletions of topics.

    The other members would keep the topic, and its numbers would differ.
    """

    def clean_unused_topics(self, topics_in_use: Collection[bytes]) -> NoReturn:
        """Raise NotReplicated."""
        raise NotReplicated(_NO_DELETION)

    def clean_unused_lmq_topic(self, name: bytes) -> NoReturn:
        """Raise NotReplicated."""
        raise NotReplicated(_NO_DELETION)

    def clean_expired_consume_queues(self) -> NoReturn:
        """Raise NotReplicated."""
        raise NotReplicated(_NO_DELETION)


_NO_DELETION = "topics of a Raft group cannot be deleted: the members do not share deletions"
