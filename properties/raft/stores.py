"""Run the store of a Raft member by hand, and judge it against the committed entries.

| contract | what is judged after each event in which the visible end, the log or the process of a member has changed |
|---|---|
| 1 | each queue has the messages of the visible entries, byte for byte, in the order of the log |
| 2 | a put that was answered PUT_OK is readable at its number, at each later time and at each member |
| 4 | queues have no gap and no other unit, and each unit points to the record in its entry |
| 5 | the index finds each message by its key, once |
| 8 | a put has the answer of the model: NOT_LEADER, PUT_OK or OUTCOME_UNKNOWN |
| 17 | a number never shows another message than before, at any member |

Contracts 3, 6 and 7 are judged by the restarts: a member that restarts has the messages of a legal log, whatever its
queues and its index had on the disk.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.batch import encode_batch_body
from tornpage.impl.message.codec import queue_of_record
from tornpage.impl.message.message import BatchMember, Message, MessageBatch, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.raft.entry_codec import HEADER_BYTES
from tornpage.impl.raft.messages import Envelope
from tornpage.impl.raft.raft_log import RaftLog
from tornpage.impl.raft.raft_store import Membership, RaftStore
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.model.raft import queues as model
from tornpage.model.raft.state import Entry, Member
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.raft_case import RaftSettings

__all__ = ["PUT_TIMEOUT_MS", "LabClock", "MemberStore", "StoreJudge"]

PUT_TIMEOUT_MS = 3_000
_TOPIC = "T"
_BORN_MS = 1_700_000_000_000
_QUEUE_FILE_BYTES = 400
_READ_MAX = 1 << 12
_TRIES_MAX = 8
_ANSWERS = {"ok": PutStatus.PUT_OK, "unknown": PutStatus.OUTCOME_UNKNOWN}


class LabClock:
    """The time of a run in milliseconds."""

    def __init__(self) -> None:
        self.now_ms = _BORN_MS

    def __call__(self) -> int:
        return self.now_ms


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A put of some messages without an answer. It is late after `deadline_ms`.

    `put` has the last message and its place. `begin` is the place of the first one.
    """

    put: model.Appended
    payloads: tuple[int, ...]
    begin: int
    is_batch: bool
    answer: "Future[PutResult]"
    deadline_ms: int


class MemberStore:
    """The open store of one member. Its services step after each event."""

    def __init__(
        self,
        number: int,
        settings: RaftSettings,
        directory: str,
        *,
        files: RecordingFiles,
        parts: Parts,
        clock: LabClock,
        index_file_bytes: int,
        open_store: "Callable[[MessageStoreConfig, Parts], Any] | None" = None,
    ) -> None:
        """Open the store of a member, or what `open_store` opens for its node."""
        self.waiting: list[_Waiting] = []
        self.looked_at: tuple[object, ...] = ()
        self.found = 0
        self._clock = clock
        self._sent: list[Envelope] = []
        self._reads: deque[Future[int | None]] = deque()
        self._services: list[HandDriven] = []
        self.raft: Any
        config = MessageStoreConfig(
            mapped_file_size_commit_log=settings.data_file_bytes,
            mapped_file_size_consume_queue=_QUEUE_FILE_BYTES,
            slave_timeout=PUT_TIMEOUT_MS,
            max_hash_slot_num=16,
            max_index_num=64,
            max_transfer_count_on_message_in_memory=_READ_MAX,
            max_transfer_count_on_message_in_disk=_READ_MAX,
            time_zone="UTC",
        )
        self._raft_log: RaftLog | None = None
        new_log = parts.of(RaftLog)

        def log_of(*arguments: Any, **options: Any) -> RaftLog:
            self._raft_log = new_log(*arguments, **options)
            return self._raft_log

        parts = parts.replacing({ThreadRunner: self._runner_of, RaftLog: log_of})
        if open_store is not None:
            self.raft = open_store(config, parts)
            return
        membership = Membership(
            number, settings.members, batch_bytes_max=settings.batch_bytes, index_file_bytes=index_file_bytes
        )
        self.raft = RaftStore.open(
            directory, config, membership, files=files, clock=clock, send=self._sent.extend, parts=parts
        )

    def _runner_of(self, service: Service) -> HandDriven:
        driven = HandDriven(service, self._clock)
        self._services.append(driven)
        return driven

    def __getattr__(self, name: str) -> Any:
        """Pass on the events that a store takes as a member does."""
        return getattr(self.raft, name)

    @property
    def now_ms(self) -> int:
        """The time in milliseconds."""
        return self._clock()

    @property
    def log(self) -> RaftLog:
        """The Raft log."""
        assert self._raft_log is not None
        return self._raft_log

    def step_services(self) -> None:
        """Step each service that a thread would step now. Failed dispatch is repeated at once.

        A flush of queues fails for good after a failed sync, until the store is opened again.
        """
        for service in self._services:
            for _ in range(_TRIES_MAX):
                done = service.step() if service.will_step(self._clock()) else None
                if done is None or not done.failed or service.name != "reput":
                    break
                service.wake()

    def put(
        self, payload: int, by_request: "Callable[[str, int, bytes, str], Future[PutResult] | None] | None" = None
    ) -> tuple[list[Envelope], PutResult | None, bytes] | None:
        """Put a message, by a call of the store or by a request of a client.

        Return what is sent, the answer if it is known, and the body of the new entry, empty without one. The result is
        None if the request was refused.
        """
        log, term = self.log, self.raft.member.term
        place = log.end
        if by_request is None:
            answer = self.raft.store.put_async(_message(payload))
        else:
            found = by_request(_TOPIC, model.queue_of(payload), _body_of(payload), _key_of(payload))
            if found is None:
                return None
            answer = found
        body = log.body_at(place) if log.end > place else b""
        if body:
            deadline_ms = self._clock() + PUT_TIMEOUT_MS
            self.waiting.append(
                _Waiting(model.Appended(payload, place, term), (payload,), place, False, answer, deadline_ms)
            )
        sent = self._sent[:]
        self._sent.clear()
        return sent, answer.result(0) if answer.done() else None, body

    def put_batch(self, payloads: Sequence[int]) -> tuple[PutResult | None, list[bytes]]:
        """Put messages of one queue as a batch.

        Return the answer if it is known, and the bodies of the new entries, none without any.
        """
        log, term, begin = self.log, self.raft.member.term, self.log.end
        body = encode_batch_body([BatchMember(_body_of(each), properties=_keys_of(each)) for each in payloads])
        batch = MessageBatch(_TOPIC, body, queue_id=model.queue_of(payloads[0]), born_timestamp=_BORN_MS)
        answer = self.raft.store.put_async(batch)
        bodies = [log.body_at(place) for place in range(begin, log.end)]
        if bodies:
            put = model.Appended(payloads[-1], log.end - 1, term)
            self.waiting.append(_Waiting(put, tuple(payloads), begin, True, answer, self._clock() + PUT_TIMEOUT_MS))
        return answer.result(0) if answer.done() else None, bodies

    def begin_read(self) -> list[Envelope] | None:
        """Begin a read at the leader."""
        begun = self.raft.begin_read()
        if begun is None:
            return None
        self._reads.append(begun[0])
        sent: list[Envelope] = begun[1]
        return sent

    def take_answered(self) -> list[int]:
        """Return the ends that reads may see which finished since the last call."""
        ends = []
        while self._reads and self._reads[0].done():
            end = self._reads.popleft().result(0)
            if end is not None:
                ends.append(end)
        return ends

    def judge_failed(self) -> None:
        """Contract 8: after a failed event all puts are answered, and a new one is refused."""
        if not all(each.answer.done() for each in self.waiting):
            raise GuaranteeBroken(8, "a put waits for a member that has failed")
        refused = self.raft.store.put_async(_message(1))
        if not refused.done() or refused.result(0).status is not PutStatus.SERVICE_NOT_AVAILABLE:
            raise GuaranteeBroken(8, "a member that has failed takes a put", "SERVICE_NOT_AVAILABLE", str(refused))

    def queue(self, queue_id: int) -> "tuple[int, list[_Served]]":
        """Return the end of a queue, and the messages that it serves."""
        store = self.raft.store
        with store.get_message(_TOPIC, queue_id, 0, max_msg_nums=_READ_MAX) as found:
            read = [each.message() for each in found.messages]
        end = store.max_offset_in_queue(_TOPIC, queue_id)
        return end, [_Served(each.queue_offset, _payload_of(each.body), each.offset) for each in read]

    def with_key(self, payload: int) -> list[int]:
        """Return the payloads of the messages that the index finds by the key of a payload."""
        with self.raft.store.query_message(_TOPIC, _key_of(payload)) as found:
            return [_payload_of(each.message().body) for each in found.messages]


class _Served(NamedTuple):
    """A message as a queue serves it."""

    number: int
    payload: int
    offset: int


class StoreJudge:
    """Judges the stores of all members.

    `acknowledged` maps payloads to the numbers of their answers.
    """

    def __init__(self) -> None:
        self.acknowledged: dict[int, int] = {}
        self._shown: dict[tuple[int, int], int] = {}

    def judge_number(self, log: Sequence[Entry], payload: int, body: bytes) -> None:
        """Judge the number of a message that was appended to a log."""
        _, queue_id, number, _ = queue_of_record(memoryview(body), 0)
        wanted = model.number_of(log, payload)
        if (queue_id, number) != (model.queue_of(payload), wanted):
            raise GuaranteeBroken(4, f"a put gets number {number} of queue {queue_id}, and the model gives it {wanted}")

    def judge_answers(self, store: MemberStore, state: Member, now_ms: int) -> list[str]:
        """Judge which puts are answered, and how; return the new answers."""
        answers: list[str] = []
        waiting = []
        for each in store.waiting:
            wanted = model.answer_of(each.put, state, is_late=now_ms >= each.deadline_ms)
            found = each.answer.result(0).status if each.answer.done() else None
            if found is not _ANSWERS.get(wanted):
                raise GuaranteeBroken(8, f"a put is answered {found}, and the model answers {_ANSWERS.get(wanted)}")
            if found is None:
                waiting.append(each)
                continue
            answers.append(wanted)
            if found is PutStatus.PUT_OK:
                result = each.answer.result(0)
                self._judge_result(store, each, result)
                for number, payload in enumerate(each.payloads):
                    self.acknowledged[payload] = result.queue_offset + number
        store.waiting = waiting
        return answers

    @staticmethod
    def _judge_result(store: MemberStore, put: _Waiting, result: PutResult) -> None:
        """Contract 8: the answer to a put tells where its messages are."""
        places = range(put.begin, put.put.place + 1)
        begins = [store.log.position_at(place) + HEADER_BYTES for place in places]
        ends = [begin + len(store.log.body_at(place)) for place, begin in zip(places, begins, strict=True)]
        between = [*begins[1:], ends[-1]] if put.is_batch else []
        wanted = (begins[0], ends[-1] - begins[0], len(places), tuple(begins), [each - begins[0] for each in between])
        found = (
            result.offset, result.size_bytes, result.message_count, result.record_offsets,
            [int(each) for each in result.record_ends],
        )  # fmt: skip
        if found != wanted or not _BORN_MS <= result.store_timestamp <= store.now_ms:
            raise GuaranteeBroken(8, "the answer to a put tells other places", str(wanted), str(result))

    def look(self, store: MemberStore, state: Member, *, is_whole: bool = False) -> None:
        """Judge queues and index of a member against its visible entries."""
        seen = (state.visible, state.log)
        if store.looked_at == seen and not is_whole:
            return
        entries = state.log[: state.visible]
        wanted: list[list[_Served]] = [[] for _ in range(model.QUEUES)]
        for place, entry in enumerate(entries):
            if entry.payload:
                row = wanted[model.queue_of(entry.payload)]
                row.append(_Served(len(row), entry.payload, store.log.position_at(place) + HEADER_BYTES))
        for queue_id, row in enumerate(wanted):
            self._judge_queue(queue_id, row, *store.queue(queue_id))
        new = entries if is_whole else entries[store.found :]
        for payload in (entry.payload for entry in new if entry.payload):
            if store.with_key(payload) != [payload]:
                raise GuaranteeBroken(5, f"the index finds {store.with_key(payload)} by the key of message {payload}")
        hidden = {entry.payload for entry in state.log[state.visible :]} - {0}
        for payload in sorted(hidden):
            if store.with_key(payload):
                raise GuaranteeBroken(5, f"the index finds message {payload}, which is not committed")
        self._judge_acknowledged(wanted, everything=is_whole)
        store.looked_at, store.found = seen, len(entries)

    def _judge_queue(self, queue_id: int, wanted: list[_Served], end: int, found: list[_Served]) -> None:
        if end != len(wanted):
            raise GuaranteeBroken(4, f"queue {queue_id} ends at {end}, and {len(wanted)} messages are committed")
        if found != wanted:
            raise GuaranteeBroken(
                4, f"queue {queue_id} does not serve the committed messages", expected=str(wanted), found=str(found)
            )
        for each in found:
            if self._shown.setdefault((queue_id, each.number), each.payload) != each.payload:
                raise GuaranteeBroken(17, f"number {each.number} of queue {queue_id} has shown another message before")

    def _judge_acknowledged(self, rows: list[list[_Served]], *, everything: bool) -> None:
        """Require acknowledged messages at their numbers.

        With `everything` no such number may be missing.
        """
        for payload, number in self.acknowledged.items():
            row = rows[model.queue_of(payload)]
            if (number < len(row) and row[number].payload != payload) or (everything and number >= len(row)):
                raise GuaranteeBroken(2, f"message {payload} was acknowledged as number {number} and is not there")


def _message(payload: int) -> Message:
    return Message(
        _TOPIC, _body_of(payload), queue_id=model.queue_of(payload),
        properties=_keys_of(payload), born_timestamp=_BORN_MS,
    )  # fmt: skip


def _body_of(payload: int) -> bytes:
    return payload.to_bytes(8, "big") * 4


def _keys_of(payload: int) -> str:
    return f"KEYS\x01{_key_of(payload)}\x02"


def _key_of(payload: int) -> str:
    return f"k{payload}"


def _payload_of(body: bytes) -> int:
    return int.from_bytes(body[:8], "big")
