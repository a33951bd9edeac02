"""Judge what a store on a Raft log refuses, once in a process.

Members do not share delayed deliveries, deletions and retention, so a store on a Raft log has none of them
(docs/replication/raft.md):

| contract | what is judged |
|---|---|
| 8 | settings that a Raft log does not have are refused, and so is a number outside of the group; no file changes |
| 4 | a message outside of a queue gets number 0, and takes none from the next message of the queue |
| 8 | the answer to a put has its host, and statistics count each message and its bytes |
| 8 | a delayed message is refused, and nothing is appended; a message with a level that delays nothing is taken |
| 8 | a request of a clean-up of topics is refused, and every message stays |
| 10 | no log file is deleted, neither by age nor on a full disk nor on request |
| 14 | a second store in the directory is refused |
| 8 | without room for a data file a put is refused or unknown, appends what it says, and loses nothing before it |
| 8 | an opening in which a call fails keeps no file open, and the next opening succeeds |
| 8 | a leader of three sends the entries of a put and of a batch to both others before it returns |
| 16 | a close answers a put and a read that wait for the others: their outcome is unknown |
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.errors import BadConfig, StoreError, StoreInUse
from tornpage.impl.io.files import DiskUsage
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.message import BatchMember, Message, MessageBatch, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.raft.messages import AppendAnswer, Envelope, VoteAnswer
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.impl.raft.raft_store import Membership, NotReplicated, RaftStore
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.dirty import CompareTracker, DirtyTracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.program.hand_driven import HandDriven

__all__ = ["store_limits_hold"]

_DIRECTORY, _FILE_BYTES = "/s", 1_024
_ENTRY_BYTES = 48 + 300 + 91 + 1
"""Bytes of an entry with a record of 300 bytes, about."""
_PREPARED, _COMMITTED, _ROLLED_BACK = 0x4, 0x8, 0xC
_NUMBER_AT = 20
"""Where a record has the number of its message in the queue, in docs/format.md."""
_BORN_MS, _YEAR_MS = 1_700_000_000_000, 365 * 24 * 3_600_000
_CONFIG = MessageStoreConfig(
    mapped_file_size_commit_log=_FILE_BYTES, mapped_file_size_consume_queue=400, max_hash_slot_num=16,
    max_index_num=64, time_zone="UTC",
)  # fmt: skip
_UNSUPPORTED: tuple[dict[str, Any], ...] = (
    {"broker_role": BrokerRole.SLAVE}, {"store_path_commit_log": ("/other",)},
    {"read_only_commit_log_store_paths": ("/other",)}, {"transient_store_pool_enable": True},
    {"enable_multi_dispatch": True}, {"enable_lmq": True}, {"enable_consume_queue_ext": True},
    {"file_reserved_time": 1}, {"delete_when": "05"}, {"disk_max_used_space_ratio": 50},
)  # fmt: skip
_DELAYS: dict[str, PutStatus | None] = {
    "": None, "DELAY\x010\x02": None, "DELAY\x011\x02": PutStatus.MESSAGE_ILLEGAL,
    "DELAY\x0118\x02": PutStatus.MESSAGE_ILLEGAL, "DELAY\x0199\x02": PutStatus.MESSAGE_ILLEGAL,
    "DELAY\x01x\x02": PutStatus.MESSAGE_ILLEGAL, "DELAYED\x011\x02": None,
}  # fmt: skip
"""Properties of messages, and the status that refuses them. A message that is taken has no answer before a sync."""


class _Member:
    """A group of one with its store, whose services are stepped by hand.

    `sent` are the messages of puts.
    """

    def __init__(self, tracker: DirtyTracker) -> None:
        self.files = RecordingFiles(EMPTY_DISK, tracker=tracker)
        self.now_ms = _BORN_MS
        self.sent: list[Envelope] = []
        self._services: list[HandDriven] = []
        self.store: RaftStore

    def clock(self) -> int:
        """Return the time in milliseconds."""
        return self.now_ms

    def _runner(self, service: Service) -> HandDriven:
        self._services.append(HandDriven(service, self.clock))
        return self._services[-1]

    def opened(self, config: MessageStoreConfig = _CONFIG, *, me: int = 0, members: int = 1) -> RaftStore:
        """Open the store."""
        return RaftStore.open(
            _DIRECTORY, config, Membership(me, members, index_file_bytes=_FILE_BYTES), files=self.files,
            clock=self.clock, send=self.sent.extend, parts=Parts({ThreadRunner: self._runner}),
        )  # fmt: skip

    def lead(self) -> None:
        """Open the store, and become leader."""
        self.store = observed("an opening", self.opened)
        self.store.election_timeout()
        self.store.sync()
        self.step()

    def step(self) -> None:
        """Step each service that a thread would step."""
        for _ in range(6):
            for service in tuple(self._services):
                if not service.is_stopped and service.will_step(self.now_ms):
                    service.step()

    def put(self, properties: str = "") -> PutStatus:
        """Put a message, and return how it is answered."""
        answer = self.store.store.put_async(
            Message("T", b"b" * 300, properties=properties, born_timestamp=_BORN_MS)
        )  # fmt: skip
        if not answer.done():
            self.store.sync()
            self.step()
        return answer.result(0).status

    def put_batch(self, count: int) -> PutStatus:
        """Put messages as a batch, and return how it is answered."""
        body = encode_batch_body([BatchMember(b"b" * 60)] * count)
        answer = self.store.store.put_async(MessageBatch("T", body, born_timestamp=_BORN_MS))
        if not answer.done():
            self.store.sync()
            self.step()
        return answer.result(0).status

    def bodies(self) -> int:
        """Return how many messages are readable."""
        with self.store.store.get_message("T", 0, 0, max_msg_nums=1_000) as found:
            return len(found.messages)

    def log_files(self) -> list[str]:
        """Return the paths of the data files."""
        return sorted(path for path in self.files.paths() if "/data/" in path)


def store_limits_hold() -> None:
    """Judge settings, messages, deletions, and openings. Raises GuaranteeBroken."""
    for judge in (_settings_hold, _numbers_hold, _refusals_hold, _openings_hold, _full_disks_hold, _requests_hold):
        with CompareTracker() as tracker:
            try:
                judge(_Member(tracker))
            except (StoreError, OSError, TypeError, ValueError, AttributeError, LookupError) as error:
                raise GuaranteeBroken(8, f"a store on a Raft log raises {type(error).__name__}: {error}") from error


def _is_refused(what: str, kind: type[Exception], call: Callable[[], object]) -> None:
    try:
        call()
    except kind:
        return
    raise GuaranteeBroken(8, f"{what} is accepted", kind.__name__)


def _settings_hold(member: _Member) -> None:
    for changes in _UNSUPPORTED:
        _is_refused(f"a store on a Raft log with {changes}", BadConfig, lambda changes=changes: member.opened(  # type: ignore[misc]
            replace(_CONFIG, **changes)
        ))  # fmt: skip
    for me, members in ((-1, 1), (1, 1), (3, 3)):
        _is_refused(f"member {me} of {members}", BadConfig, lambda me=me, members=members: member.opened(  # type: ignore[misc]
            me=me, members=members
        ))  # fmt: skip
    if member.files.events:
        raise GuaranteeBroken(8, "a store is refused, and files have changed")
    for me, members in ((0, 1), (2, 3)):
        member.opened(me=me, members=members).close()


def _numbers_hold(member: _Member) -> None:
    """Contract 4: let a transaction begin, commit and end between messages of one queue."""
    member.lead()
    next_number = size_bytes = 0
    for count, flags in enumerate((0, _PREPARED, 0, _COMMITTED, _ROLLED_BACK, _PREPARED, 0), 1):
        store, end = member.store.store, member.store.member.log.end
        host = ("10.0.0.7", 70 + count) if count % 2 else None
        answer = store.put_async(Message("T", b"b", sys_flag=flags, born_timestamp=_BORN_MS, store_host=host))
        member.store.sync()
        member.step()
        counts = flags in (0, _COMMITTED)
        wanted = next_number if counts else 0
        result, body = answer.result(0), cast(RaftLog, member.store.member.log).body_at(end)
        written = int.from_bytes(body[_NUMBER_AT : _NUMBER_AT + 8], "big")
        if (result.status, result.queue_offset, written) != (PutStatus.PUT_OK, wanted, wanted):
            raise GuaranteeBroken(4, f"a message with the flags {flags} gets another number", str(wanted), str(result))
        if (result.store_host, result.message_count) != (host or _CONFIG.store_host, 1):
            raise GuaranteeBroken(8, "the answer to a put has another host or count", str(host), str(result))
        size_bytes += len(body)
        shown = store.statistics()
        topics = [(each.topic, each.message_count, each.size_bytes) for each in shown.topics]
        if (shown.message_count, topics) != (count, [("T", count, size_bytes)]):
            raise GuaranteeBroken(8, "the statistics count other messages", str((count, size_bytes)), str(topics))
        next_number += counts
        if store.max_offset_in_queue("T", 0) != next_number:
            raise GuaranteeBroken(4, f"the queue of a message with the flags {flags} ends elsewhere", str(next_number))
    member.store.close()


def _refusals_hold(member: _Member) -> None:
    member.lead()
    _is_refused("a second store in the directory", StoreInUse, member.opened)
    count = 0
    for properties, wanted in _DELAYS.items():
        end = member.store.member.log.end
        found = member.put(properties)
        if found is not (wanted or PutStatus.PUT_OK):
            raise GuaranteeBroken(8, f"a put with {properties!r} is answered {found}", str(wanted or "PUT_OK"))
        count += wanted is None
        if member.store.member.log.end - end != (wanted is None):
            raise GuaranteeBroken(8, f"a put with {properties!r} appends another number of entries")
    store = member.store.store
    calls: tuple[Callable[[], object], ...] = (
        lambda: store.clean_unused_topics(()), lambda: store.clean_unused_lmq_topic("T"),
        store.clean_expired_consume_queues,
    )  # fmt: skip
    for call in calls:
        _is_refused("a clean-up of topics", NotReplicated, call)
    while len(member.log_files()) < 4:
        count += member.put() is PutStatus.PUT_OK
    before = member.log_files()
    member.files.scripted_usage = DiskUsage(total_bytes=100, free_bytes=3)
    for _ in range(30):
        member.now_ms += _YEAR_MS // 30
        member.step()
        store.delete_expired_files_manually()
        member.step()
    member.files.scripted_usage = None
    if member.log_files() != before:
        raise GuaranteeBroken(10, "files of a Raft log are deleted", str(before), str(member.log_files()))
    if member.bodies() != count or store.min_offset:
        raise GuaranteeBroken(10, f"{member.bodies()} of {count} messages are readable after a clean-up")
    member.store.close()
    member.store.close()


def _openings_hold(member: _Member) -> None:
    """Contract 8: let syncs and allocations of an opening fail, one after the other."""
    member.lead()
    member.put()
    member.store.close()
    for name in ("failing_syncs", "failing_allocations"):
        setattr(member.files, name, 1)
        try:
            member.opened().close()
        except OSError:
            if member.files.leaks():
                raise GuaranteeBroken(8, "a failed opening keeps files open", found=str(member.files.leaks())) from None
        setattr(member.files, name, 0)
    member.lead()
    if member.bodies() != 1:
        raise GuaranteeBroken(2, "a message is lost by openings that failed")
    member.store.close()
    if member.files.leaks():
        raise GuaranteeBroken(8, "a closed store keeps files open", found=str(member.files.leaks()))


def _full_disks_hold(member: _Member) -> None:
    """Contract 8: let a disk have no room for the next data file, also within a batch."""
    member.lead()
    count = 0
    while member.store.member.log.end < 3:
        count += member.put() is PutStatus.PUT_OK
    for size in (1, 5):
        log = member.store.member.log
        while -_end_position(member) % _FILE_BYTES > _ENTRY_BYTES:
            count += member.put() is PutStatus.PUT_OK
        if size > 1:
            count += member.put() is PutStatus.PUT_OK  # a batch begins in a file with room
        end = log.end
        member.files.failing_allocations = 1
        found = member.put() if size == 1 else member.put_batch(size)
        appended = log.end - end
        if found is PutStatus.PUT_OK or member.files.failing_allocations:
            raise GuaranteeBroken(8, f"a put of {size} messages without room is answered {found}")
        if (found is PutStatus.OUTCOME_UNKNOWN) is not (appended > 0) or appended >= size:
            raise GuaranteeBroken(
                8, f"a put of {size} messages without room appends {appended}, and is answered {found}"
            )
        after = member.put()
        wanted = PutStatus.SERVICE_NOT_AVAILABLE if appended else PutStatus.PUT_OK
        count += after is PutStatus.PUT_OK
        if after is not wanted:
            raise GuaranteeBroken(8, f"a put after one without room is answered {after}", str(wanted))
        member.store.close()
        if member.files.leaks():
            raise GuaranteeBroken(8, "a store without room keeps files open", found=str(member.files.leaks()))
        member.lead()
        count += appended
        if member.bodies() != count:
            raise GuaranteeBroken(2, f"{member.bodies()} of {count} messages are readable after a put without room")
    member.store.close()


def _requests_hold(member: _Member) -> None:
    """Contracts 8 and 16: let a leader of three put, read and close."""
    store = member.opened(members=3)
    store.election_timeout()
    store.receive(1, VoteAnswer(store.member.term, True))
    body = encode_batch_body([BatchMember(b"b")] * 2)
    puts: tuple[Message | MessageBatch, ...] = (
        Message("T", b"b", born_timestamp=_BORN_MS), MessageBatch("T", body, born_timestamp=_BORN_MS),
    )  # fmt: skip
    for put in puts:
        for other in (1, 2):
            store.receive(other, AppendAnswer(store.member.term, True, store.member.log.end, store.member.round))
        member.sent.clear()
        answer = store.store.put_async(put)
        receivers = {each.to for each in member.sent}
        if receivers != {1, 2} or answer.done():
            raise GuaranteeBroken(8, f"a {type(put).__name__} is sent to {receivers} before the put returns", "{1, 2}")
    begun = store.begin_read()
    if begun is None:
        raise GuaranteeBroken(8, "a leader takes no read")
    store.close()
    if not answer.done() or answer.result(0).status is not PutStatus.OUTCOME_UNKNOWN:
        raise GuaranteeBroken(16, "a close leaves a put without its answer", "OUTCOME_UNKNOWN", str(answer))
    if not begun[0].done() or begun[0].result(0) is not None:
        raise GuaranteeBroken(16, "a close leaves a read without its answer", "None", str(begun[0]))


def _end_position(member: _Member) -> int:
    """Return the position after the last entry."""
    return sum(
        len(member.files.peek(path, 0, _FILE_BYTES).rstrip(b"\0")) for path in member.log_files()[-1:]
    ) + _FILE_BYTES * (len(member.log_files()) - 1)
