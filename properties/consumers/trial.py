"""Run operations of a consumer group over a real store, and judge every event.

Members are real push consumers. Events are seen at the broker, in the network and at the listeners; nothing is taken
over from what a member says about itself. The model says what each event means, and the judges look at each of them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial

from tornpage.impl.consumer.messages import Batch, ConcurrentStatus, OrderlyStatus
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Answer,
    Bounds,
    Heartbeat,
    Locked,
    LockQueues,
    Members,
    MembersChanged,
    OffsetFound,
    OffsetStatus,
    OffsetUpdated,
    Pull,
    Pulled,
    QueryBounds,
    QueryOffset,
    Refusal,
    Refused,
    Request,
    Route,
    SendBack,
    SendToRetry,
    UnlockQueues,
    UpdateOffset,
)
from tornpage.impl.consumer.requests import Leave as Leaves
from tornpage.impl.consumer.settings import ConsumeFromWhere, ConsumerSettings
from tornpage.impl.message.message import PutStatus
from tornpage.model.consumers import events as seen
from tornpage.model.consumers.operations import (
    AddQueue,
    Allocate,
    CommitProgress,
    CrashBroker,
    CrashLocal,
    DeleteFiles,
    DeliverAnswer,
    DeliverRequest,
    DropConnection,
    FailRequests,
    FinishBatch,
    FlushBroker,
    GroupOperation,
    HangMember,
    HealMember,
    HoldResults,
    Join,
    KillMember,
    Leave,
    LoseAnswer,
    LoseRequest,
    ParkRequests,
    PartitionMember,
    PassTime,
    Produce,
    ReadBroker,
    RepeatRequest,
    RestartBroker,
    ResumeMember,
    RunDirect,
    RunGroup,
    SlowService,
    StepBroker,
    StepMember,
    Subscribe,
    TakeBatch,
    TryConsumerSettings,
    UseBroker,
    UseCache,
    UseMemberPart,
    UseMembers,
    UseOwners,
    UseStateFiles,
    Verdict,
)
from tornpage.model.consumers.state import Group, Place, Queue, Rules
from tornpage.properties.consumers import judge
from tornpage.properties.consumers.allocation import judge_allocation
from tornpage.properties.consumers.bounded_tables import tables_are_bounded
from tornpage.properties.consumers.caching import use_cache
from tornpage.properties.consumers.closing import close_broker
from tornpage.properties.consumers.direct import DirectGroups
from tornpage.properties.consumers.host import BORN_MS, BROKER, GROUP, TAG, TOPIC, BrokerHost, entry_of
from tornpage.properties.consumers.local_progress import crash_local_progress, judge_local_progress
from tornpage.properties.consumers.member_parts import further_seeds, use_member_part
from tornpage.properties.consumers.membership import use_members
from tornpage.properties.consumers.network import RecordedConnection, Sent
from tornpage.properties.consumers.owning import use_owners
from tornpage.properties.consumers.puller import Puller
from tornpage.properties.consumers.reading import lags_are_right, read_broker
from tornpage.properties.consumers.sending_back import use_send_backs
from tornpage.properties.consumers.serving import use_broker
from tornpage.properties.consumers.settings import consumer_settings_are_checked
from tornpage.properties.consumers.state_files import use_state_files
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.crashing import in_flight_at, killed_journal, lose_power
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.images import InFlightWrite
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.planted.registry import parts_of
from tornpage.properties.program.group_case import GroupSettings

__all__ = ["GroupTrial", "Member"]

_KINDS = {
    "query_offset": QueryOffset, "send_back": SendBack, "send_to_retry": SendToRetry, "pull": Pull, "members": Members,
    "lock": LockQueues, "update_offset": UpdateOffset, "heartbeat": Heartbeat, "route": Route, "bounds": QueryBounds,
    "unlock": UnlockQueues, "leave": Leaves,
}  # fmt: skip
_ROUNDS_MAX = 40
_USES = 4
"""How many seeds one use of a quick part has."""
_EXCHANGES_MAX = 8
_LISTENERS_MAX = 4
_QUEUES_MAX = 8
_UNLIMITED = (1 << 31) - 1
_SOON_LEVEL = 1
"""The delay level that a listener asks for with `soon`: 1 s."""
_OVERDUE_MIN = 1
_SUSPENDED_MS, _TRIED_AGAIN_MS = 1_000, 5_000
"""The pause after a failed message: of an orderly queue, and of a message that could not be sent back."""
_LEAP_MS, _IDLE_LEAP_MS = (20, 2_000), 12_000
"""The time between rounds at the end of a run: while the group is busy, while it is not, and after it has settled."""
_EXPIRY_MS = 215_000
"""How long a lost member may keep its queues: 120 s as a member, 60 s as an owner, and rounds of rebalance."""
_LOSSY = (
    "kill_member", "crash_broker", "partition_member", "hang_member", "lose_request", "lose_answer", "drop_connection",
)  # fmt: skip
_WINDOW_MS = 45_000
"""The time in which each queue of the topic is pulled from at least once."""
_SETTLING_MS = 1_500_000
_DIRECT_MS, _DIRECT_ROUNDS = 400_000, 12
"""The time of members in the process of the broker: a dead one stays a member for 120 s and an owner for 60 s."""
_DEAD_MS, _DEAD_LEAP_MS = 130_000, 5_000
"""The time until a dead member has lost its share for good, and the time between rounds meanwhile."""
_CHANGE_MS, _CHANGE_ROUND_MS = 750, 50
"""The time of a change of members in order. Notices make it fast; a claim without one is repeated after a second."""


@dataclass(slots=True, eq=False)
class Member:
    """One member, with the process of its present life.

    `running` are batches with listeners that have not ended.
    """

    number: int
    life: int = 0
    consumer: PushConsumer | Puller | None = None
    connection: RecordedConnection | None = None
    is_hung: bool = False
    is_leaving: bool = False
    running: list[tuple[int, Batch]] = field(default_factory=list)

    @property
    def client_id(self) -> str:
        """The id of its present life. Later members sort first."""
        return f"10.0.0.{9 - self.number}@{self.life}"


class GroupTrial:
    """One run. Raises GuaranteeBroken if a promise does not hold.

    `performed` are the operations as carried out, `hit` counts operations and effects, `lost_writes` the in-flight
    writes that power losses took. `trace` are all events in their order. With `holds` a round ends no listener.
    It does not step the service `slow`. `failing` counts the requests of each kind that are still to fail.
    """

    def __init__(self, settings: GroupSettings, *, tracker: DirtyTracker, certify: bool = True) -> None:
        self.settings = settings
        self.performed: list[GroupOperation] = []
        self.hit: Counter[str] = Counter()
        self.lost_writes = 0
        self.now_ms = BORN_MS
        self.trace: list[seen.Event] = []
        self._tracker = tracker
        self._certify = certify
        self._parts = parts_of(settings.bug)
        self.host = BrokerHost(settings, clock=lambda: self.now_ms, parts=self._parts, tracker=tracker)
        self.members = [Member(number) for number in range(settings.members)]
        self.group = Group(_rules(settings))
        self.connections: list[RecordedConnection] = []
        self._lives = self._runs = self._identities = 0
        self.holds = False
        self.slow = ""
        self.failing: Counter[str] = Counter()
        self._leases: dict[Queue, str] = {}
        self._pulled_at: dict[tuple[Queue, int], int] = {}
        self._action: tuple[int, int, int] | None = None
        self.direct = DirectGroups(settings, parts=self._parts, tracker=tracker, hit=self.hit)
        self._open()
        self.host.set_queues(settings.queues)

    # ---- operations ----------------------------------------------------------------------------------------------

    def run(self, operation: GroupOperation) -> None:
        """Carry out one operation and judge what it causes."""
        place = len(self.performed)
        self.performed.append(operation)
        self.hit[operation.op] += 1
        match operation:
            case Produce():
                self._on_broker(partial(self._produce, operation))
            case FlushBroker():
                self._on_broker(self._flush)
            case StepBroker(service):
                self._on_broker(partial(self._step_broker, service))
            case SlowService(service):
                self.slow = service
            case DeleteFiles():
                self._on_broker(lambda: observed("delete_expired_files_manually", self.host.delete_files))
            case AddQueue():
                self._on_broker(self._add_queue)
            case ReadBroker():
                self._on_broker(lambda: read_broker(self.host, operation, self.now_ms))
            case CrashBroker():
                if self.host.is_up:
                    self.performed[place] = self._crash(operation)
            case RestartBroker():
                if not self.host.is_up:
                    self._open()
            case FailRequests(kind, count):
                self.failing[kind] = max(0, count)
            case CrashLocal():
                self.performed[place] = self._crash_local(operation)
            case Allocate(strategy, queues, members):
                judge_allocation(strategy, queues % 17 or 1, members % 17 or 1, parts=self._parts)
            case RunDirect():
                if self.host.is_up:
                    self._run_direct(operation)
            case PassTime(by_ms):
                self.now_ms += max(0, by_ms)
            case HoldResults(hold):
                self.holds = hold
            case RunGroup(rounds, by_ms, result):
                for _ in range(min(rounds, _ROUNDS_MAX)):
                    self._round(max(0, by_ms), result)
            case Join(number):
                self._join(self._member(number))
            case _ if not self._use_alone(operation):
                self._on_member(operation)

    def _use_alone(self, operation: GroupOperation) -> bool:
        """Carry out an operation that uses settings or a part alone; return whether it is one."""
        match operation:
            case TryConsumerSettings(part):
                consumer_settings_are_checked(part, self._parts)
            case UseCache(seed):
                for each in further_seeds(seed, _USES):
                    _use(partial(use_cache, each, self._parts))
            case UseBroker(seed):
                for each in further_seeds(seed, _USES):
                    _use(partial(use_send_backs, each, self._parts))
                if self.host.is_up:
                    _use(lambda: use_broker(seed, self.host, self._parts))
                    self._action = None
            case UseMemberPart(part, seed):
                _use(lambda: use_member_part(part, seed, self._parts))
            case UseOwners(seed):
                _use(partial(tables_are_bounded, self._parts))
                for each in further_seeds(seed, _USES):
                    _use(partial(use_owners, each, self._parts))
            case UseStateFiles(seed):
                for each in further_seeds(seed, _USES):
                    _use(partial(use_state_files, each, self._parts, tracker=self._tracker))
            case UseMembers(seed):
                if self.host.is_up:
                    for each in further_seeds(seed, _USES):
                        _use(partial(use_members, each, self.host.store, self._parts))
            case _:
                return False
        return True

    def _on_member(self, operation: GroupOperation) -> None:
        member = self._member(getattr(operation, "member", 0))
        connection, consumer = member.connection, member.consumer
        if connection is None or consumer is None:
            return
        match operation:
            case Leave():
                member.is_leaving = True
                if member.connection is not None:
                    member.connection.refused.clear()  # the last save of a member waits for nothing
                observed("shutdown", lambda: consumer.shutdown(self.now_ms))
            case KillMember(_, silent):
                self._kill(member, silent=silent)
            case HangMember():
                member.is_hung = True
            case ResumeMember():
                member.is_hung = False
            case StepMember():
                self._step_member(member)
            case Subscribe(_, again):
                self._subscribe(consumer, again=again)
            case TakeBatch():
                self._take(member)
            case FinishBatch(_, number, result):
                if member.running:
                    self._finish(member, number % len(member.running), result)
            case CommitProgress():
                if isinstance(consumer, Puller):
                    observed("commit", partial(consumer.commit, self.now_ms))
            case DeliverRequest(_, number):
                connection.deliver_request(number)
            case RepeatRequest(_, number):
                self.hit["repeated"] += connection.deliver_request(number, keeps=True)
            case DeliverAnswer(_, number):
                connection.collect()
                connection.deliver_answer(number)
            case LoseRequest(_, number):
                self.hit["request lost"] += connection.lose_request(number)
            case LoseAnswer(_, number):
                connection.collect()
                self.hit["answer lost"] += connection.lose_answer(number)
            case ParkRequests():
                self.hit["parked"] += connection.park()
            case PartitionMember():
                connection.is_partitioned = True
            case DropConnection():
                connection.drop()
                if self.host.is_up:
                    self.host.broker.disconnect(connection.client_id)
            case HealMember():
                connection.release()

    def _member(self, number: int) -> Member:
        return self.members[number % len(self.members)]

    def _on_broker(self, act: Callable[[], object]) -> None:
        if self.host.is_up:
            self._begin_action()
            act()
            self._note_records()

    # ---- the broker ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        before = self.group
        try:
            self.host.open()
        except GuaranteeBroken:
            raise
        except Exception as error:
            raise GuaranteeBroken(7, f"the store does not open: {type(error).__name__}: {error}") from error
        if self.host.store.read_only_reason is not None:
            raise GuaranteeBroken(7, f"the store opens read-only: {self.host.store.read_only_reason}")
        store = self.host.store
        self._see(seen.Opened(store.max_offset, self.host.all_progress(), store.min_offset))
        self.hit["records lost"] += len(self.group.log) < len(before.log)
        if len(self.group.log) < len(before.log):
            self.direct.records_are_lost(self.host)
        self._action = None

    def _produce(self, produce: Produce) -> None:
        self._identities += 1
        answer = observed("put", lambda: self.host.put(produce, self._identities))
        if answer.status is not PutStatus.PUT_OK:
            raise GuaranteeBroken(8, "a put of a producer fails on a healthy disk", "PUT_OK", answer.status.name)

    def _flush(self) -> None:
        observed("flush", self.host.store.flush)

    def _step_broker(self, service: str = "") -> None:
        observed("step", partial(self.host.step, service, slow=self.slow))

    def _add_queue(self) -> None:
        if self.host.queues < _QUEUES_MAX:
            self.host.set_queues(self.host.queues + 1)

    def _begin_action(self) -> None:
        """Begin an action of the broker in which a crash may fall."""
        self._action = len(self.host.files.events), self.group.durable, self.host.store.max_offset

    def _note_records(self) -> None:
        for record in self.host.new_records():
            self._see(seen.Stored(record))
        self._see_durable()
        if self.host.store.min_offset > self.group.begin:
            self.hit["files deleted"] += 1
            self._see(seen.Expired(self.host.store.min_offset))

    def _see_durable(self) -> None:
        flushed = self.host.store.flushed_offset
        if flushed > self.group.durable:
            self._see(seen.Durable(flushed))

    def _handle(self, connection: RecordedConnection, sent: Sent) -> "Answer | Future[Answer] | None":
        """Have the broker handle a request, and note what it changes."""
        if not self.host.is_up:
            return None
        request = sent.request
        for kind, count in self.failing.items():
            if count and isinstance(request, _KINDS[kind]):
                self.failing[kind] -= 1
                self.hit[f"busy {kind}"] += 1
                return Refused(Refusal.BUSY, "too many requests wait")
        self._begin_action()
        answer = observed(
            type(request).__name__, lambda: self.host.broker.handle(request, connection.client_id, self.now_ms)
        )
        self._note_records()
        self._note_request(connection.life, request, answer)
        return answer

    def _note_request(self, life: int, request: Request, answer: "Answer | Future[Answer]") -> None:
        reason, sentence = getattr(answer, "reason", None), getattr(answer, "sentence", None)
        judge.answer_is_of_its_kind(type(request).__name__, type(answer).__name__, reason, sentence)
        if isinstance(answer, Refused):
            self.hit[f"refused {answer.reason.name}"] += 1
        match request:
            case UpdateOffset(_, queue, offset):
                self._note_progress(life, _queue(queue), offset)
            case Pull(_, queue, offset, commit_offset=commit) if not isinstance(answer, Refused):
                if commit is not None:
                    self._note_progress(life, _queue(queue), commit)
                self._pulled_at[_queue(queue), life] = self.now_ms
                if isinstance(answer, Pulled):
                    count = len(answer.messages)
                    self._see(seen.Pulled(life, _queue(queue), offset, count, self.now_ms))
                    self.hit[observed("the status of a pull", lambda: f"pull {answer.status.name}")] += 1
            case LockQueues() if isinstance(answer, Locked):
                for queue, lease in answer.leases.items():
                    self._leases[_queue(queue)] = lease.token
            case UnlockQueues(_, leases) if not isinstance(answer, Refused):
                for queue, lease in leases:
                    grant = self.group.grants.get(Place(life, _queue(queue)))
                    if grant is not None and grant.lease == lease.token == self._leases.get(_queue(queue)):
                        self.hit["handed over"] += 1
                        self._see(seen.Released(life, _queue(queue), self.now_ms))
            case SendBack() | SendToRetry() if not isinstance(answer, Refused):
                self.hit["sent back"] += 1

    def _note_progress(self, life: int, queue: Queue, asked: int) -> None:
        found = self.host.progress(queue)
        if found != self.group.progress.get(queue):
            self._see(seen.StoredProgress(life, queue, asked, found))

    # ---- crashes -------------------------------------------------------------------------------------------------

    def _crash(self, crash: CrashBroker) -> CrashBroker:
        """Lose the broker at a crash point of its last action; return the crash as it was."""
        files, event = self.host.files, self._crash_point(crash.back)
        back = len(files.events) - event if event else 0
        position = files.events[event - 1] if back else len(files.journal)
        durable, log_end = (self._action[1], self._action[2]) if back and self._action else (None, None)
        self._see(seen.Crashed(not crash.kill, durable, log_end))
        self.hit["kill" if crash.kill else "power"] += 1
        for connection in self.connections:
            connection.broker_is_lost()
        self._leases.clear()
        self.direct.broker_is_lost()
        self.host.die()
        if crash.kill:
            journal = killed_journal(files, position)
            self.host.use_disk(RecordingFiles(files.base, tracker=self._tracker, journal=journal))
            return replace(crash, back=back, survived={}, others="lost")
        lost = lose_power(files, position, crash.survived, crash.others, disk=self.settings.disk, certify=self._certify)
        self.lost_writes += lost.lost_writes
        self.hit["writes lost"] += lost.lost_writes > 0
        self.host.use_disk(RecordingFiles(lost.image, tracker=self._tracker))
        return replace(crash, back=back, survived=lost.survived)

    def _crash_point(self, back: int) -> int:
        """Return the number of events before the crash, 0 for a crash at rest."""
        if back <= 0 or self._action is None:
            return 0
        total, least = len(self.host.files.events), self._action[0]
        return max(least, total - back, 1) if least < total else 0

    def in_flight(self, back: int) -> list[InFlightWrite]:
        """Return the in-flight writes at a crash point of the last action of the broker."""
        files, event = self.host.files, self._crash_point(back)
        position = files.events[event - 1] if event else len(files.journal)
        return in_flight_at(files, position, disk=self.settings.disk)

    def events_of_action(self) -> int:
        """Return the number of crash points of the last action of the broker."""
        return 0 if self._action is None else len(self.host.files.events) - self._action[0]

    # ---- members -------------------------------------------------------------------------------------------------

    def _join(self, member: Member) -> None:
        if member.consumer is not None:
            return
        self._lives += 1
        member.life, member.is_hung, member.is_leaving = self._lives, False, False
        member.connection = RecordedConnection(
            member.life, member.client_id, self._handle, self._arrived, self._notices, self._closed, lambda: self.now_ms
        )
        self.connections.append(member.connection)
        member.consumer = self._puller(member) if self.settings.is_manual else self._push_consumer(member)
        self._see(seen.Started(member.life))

    def _push_consumer(self, member: Member) -> PushConsumer:
        settings = self.settings
        unlimited = settings.is_orderly and settings.retries >= GroupSettings().retries
        assert member.connection is not None
        consumer = self._parts.of(PushConsumer)(
            ConsumerSettings(
                consumer_group=GROUP,
                client_id=member.client_id,
                orderly=settings.is_orderly,
                consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
                if settings.begins == "first"
                else ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
                allocate_message_queue_strategy=settings.strategy,
                pull_batch_size=settings.pull_batch,
                pull_threshold_for_queue=settings.threshold,
                consume_message_batch_max_size=settings.batch,
                max_reconsume_times=-1 if unlimited else settings.retries,
                consume_timeout=_OVERDUE_MIN,
            ),
            {BROKER: member.connection},
            incarnation=str(member.life),
            parts=self._parts,
        )
        consumer.subscribe(TOPIC, TAG)
        return consumer

    def _subscribe(self, consumer: PushConsumer | Puller, *, again: bool) -> None:
        if not isinstance(consumer, PushConsumer):
            return
        if again:
            observed("subscribe", partial(consumer.subscribe, TOPIC, TAG))
        else:
            observed("unsubscribe", partial(consumer.unsubscribe, TOPIC))
        self.hit["unsubscribed"] += not again

    def _puller(self, member: Member) -> Puller:
        assert member.connection is not None
        return Puller(
            GROUP,
            member.connection,
            broker=BROKER,
            topic=TOPIC,
            tag=TAG,
            place=member.number,
            members=len(self.members),
            threshold=self.settings.threshold,
            pull_batch=self.settings.pull_batch,
        )

    def _kill(self, member: Member, *, silent: bool) -> None:
        connection = member.connection
        assert connection is not None
        self._end(member)
        connection.is_closed = True
        if not silent and self.host.is_up:
            self.host.broker.disconnect(connection.client_id)
        self.hit["silent"] += silent

    def _end(self, member: Member) -> None:
        self._action = None
        self._see(seen.Stopped(member.life))
        member.consumer, member.connection, member.running, member.is_hung = None, None, [], False

    def _closed(self, connection: RecordedConnection) -> None:
        """Note that a member has ended its connection at the end of a shutdown."""
        if self.host.is_up and not connection.is_partitioned:
            self.host.broker.disconnect(connection.client_id)

    def _notices(self, client_id: str) -> Sequence[MembersChanged]:
        return self.host.broker.notices(client_id) if self.host.is_up else ()

    def _step_member(self, member: Member) -> None:
        consumer = member.consumer
        if consumer is None or member.is_hung:
            return
        observed("step of a member", lambda: consumer.step(self.now_ms))
        if member.connection is not None:
            judge.no_request_is_hot(member.connection.sent, self.group.rules.requests_max)
        if isinstance(consumer, PushConsumer):
            if member.connection is not None:
                judge.no_refusal_is_ignored(member.connection.hasty)
            for _, batch in member.running:
                is_reported = any(f"batch {batch.number} runs for too long" in each for each in consumer.findings)
                judge.overdue_is_reported(self.now_ms - batch.began_ms, _OVERDUE_MIN, is_reported=is_reported)
        if consumer.is_closed:
            self.hit["left in order"] += 1
            assert member.connection is not None
            member.connection.close()
            self._end(member)

    def _take(self, member: Member) -> bool:
        """Begin a listener on the next batch of a member, if it has one."""
        consumer = member.consumer
        if consumer is None or member.is_hung or len(member.running) >= _LISTENERS_MAX:
            return False
        batch = observed("take", lambda: consumer.take(self.now_ms))
        if batch is None:
            return False
        self._action = None
        self._runs += 1
        member.running.append((self._runs, batch))
        for message in batch.messages:
            judge.topic_is_original(message.topic, TOPIC)
        offsets = tuple(each.queue_offset for each in batch.messages)
        entries = tuple(entry_of(each.stored) for each in batch.messages)
        queue = _queue(batch.queue)
        self.hit["retry consumed"] += queue.topic != TOPIC
        self._see(seen.Began(self._runs, member.life, queue, offsets, entries, self.now_ms))
        return True

    def _finish(self, member: Member, place: int, result: Verdict) -> None:
        run, batch = member.running.pop(place)
        consumer = member.consumer
        assert consumer is not None
        self._action = None
        self.hit[f"listener {result}"] += 1
        if isinstance(consumer, Puller):
            self._see(seen.Finished(run, result == "success", self.now_ms))
            observed("finish", partial(consumer.finish, batch, is_success=result == "success"))
        elif self.settings.is_orderly:
            self._finish_orderly(consumer, run, batch, result)
        else:
            self._finish_concurrent(consumer, run, batch, result)

    def _finish_orderly(self, consumer: PushConsumer, run: int, batch: Batch, result: Verdict) -> None:
        """End an orderly listener.

        Every second success is a manual commit, and `first` is a manual rollback.
        """
        self._see(seen.Finished(run, result == "success", self.now_ms))
        status = {"success": OrderlyStatus.SUCCESS, "first": OrderlyStatus.ROLLBACK}.get(result, OrderlyStatus.SUSPEND)
        is_manual = result == "first" or (result == "success" and run % 2 == 0)
        if is_manual and result == "success":
            status = OrderlyStatus.COMMIT
        finish = partial(consumer.finish, batch, status, self.now_ms, auto_commit=not is_manual)
        observed("finish", finish)

    def _finish_concurrent(self, consumer: PushConsumer, run: int, batch: Batch, result: Verdict) -> None:
        """End a concurrent listener.

        `first` acknowledges the first message, `soon` and `dead` ask for a delay level.
        """
        level = {"soon": _SOON_LEVEL, "dead": -1}.get(result, 0)
        done = {"success": len(batch.messages), "first": 1}.get(result, 0)
        self._see(seen.Finished(run, done == len(batch.messages), self.now_ms, done, level))
        is_success = result in ("success", "first")
        status = ConcurrentStatus.CONSUME_SUCCESS if is_success else ConcurrentStatus.RECONSUME_LATER
        ack_index = 0 if result == "first" else None
        finish = partial(consumer.finish, batch, status, self.now_ms, ack_index=ack_index, delay_level=level)
        observed("finish", finish)

    def _arrived(self, connection: RecordedConnection, sent: Sent) -> None:
        """Note an answer that arrives at a living member."""
        life, now_ms = connection.life, self.now_ms
        if all(each.life != life for each in self.members if each.consumer is not None):
            return
        self._action = None
        match sent.request, sent.answer:
            case LockQueues(), Locked(leases):
                for queue, lease in leases.items():
                    self._see(seen.Granted(life, _queue(queue), lease.token, now_ms, sent.handled_ms))
            case QueryOffset(_, queue), OffsetFound(status, offset) if status is not OffsetStatus.NOT_FOUND:
                self._see(seen.FirstOffset(life, _queue(queue), offset))
            case QueryBounds(queue), Bounds(min_offset) if self.settings.is_manual:
                held = self.group.held.get(Place(life, _queue(queue)))
                if held is None or held.first is None:
                    self._see(seen.FirstOffset(life, _queue(queue), min_offset))
            case UpdateOffset(_, queue, only_if_absent=True), OffsetUpdated(_, offset):
                self._see(seen.FirstOffset(life, _queue(queue), offset))
            case Pull(_, queue), Pulled(messages=messages) if messages:
                offsets = tuple(each.queue_offset for each in messages)
                self._see(seen.Arrived(life, _queue(queue), offsets, now_ms))

    # ---- rounds --------------------------------------------------------------------------------------------------

    def _round(self, by_ms: int, result: Verdict) -> None:
        """Let broker and members do one round; deliver everything; let listeners begin and end.

        A member does another step in the round after it got an answer.
        """
        self.now_ms += by_ms
        if self.host.is_up:
            self._on_broker(self._step_broker)
        answered = {member.life for member in self.members}
        for _ in range(_EXCHANGES_MAX):
            for member in self.members:
                if member.life in answered:
                    self._step_member(member)
            answered = self._deliver()
            if not answered:
                break
        for member in self.members:
            while self._take(member):
                pass
            while member.running and not self.holds:
                self._finish(member, 0, result)
        if self.host.is_up:
            self._see_durable()

    def _deliver(self) -> set[int]:
        """Deliver everything under way that is not parked; return the lives with a settled call."""
        answered = set()
        for connection in tuple(self.connections):
            if connection.deliver_all():
                answered.add(connection.life)
            if connection.is_closed and not connection.requests:
                self.connections.remove(connection)
        return answered

    # ---- members in the process of the broker ------------------------------------------------------------------------

    def _run_direct(self, operation: RunDirect) -> None:
        """Let members in the process of the broker run. A crash cannot fall into their requests."""
        self.direct.begin(operation, self.host, self.now_ms)
        for _ in range(max(1, min(operation.rounds, _ROUNDS_MAX))):
            self._round_direct(max(0, operation.by_ms), operation.result)
        self.direct.end(operation, self.host, self.now_ms)
        self._action = None

    def _round_direct(self, by_ms: int, result: Verdict) -> None:
        self.now_ms += by_ms
        self._on_broker(self._step_broker)
        self.direct.round(self.host, self.group, self.now_ms, result)

    def _finish_direct(self) -> None:
        """Give the members in the process of the broker time, and judge what they have had."""
        self.direct.finish(self.host, self.now_ms)
        expired_ms = self.now_ms + (_DEAD_MS if self.hit["direct kill"] else 0)
        while self.now_ms < expired_ms:
            self._round_direct(_DEAD_LEAP_MS, "success")
        limit_ms = self.now_ms + _DIRECT_MS
        while self.now_ms < limit_ms and not self.direct.is_settled(self.host, self.group):
            self._round_direct(_LEAP_MS[1], "success")
        for _ in range(_DIRECT_ROUNDS):
            self._round_direct(_LEAP_MS[1], "success")
        self.direct.judge(self.host, self.group)
        for joins, members in self.direct.changes():
            self.direct.change(self.host, self.now_ms, joins=joins)
            limit_ms = self.now_ms + _CHANGE_MS
            while self.now_ms < limit_ms and not self.direct.is_divided(self.host, members):
                self._round_direct(_CHANGE_ROUND_MS, "success")
            if not self.direct.is_divided(self.host, members):
                sentence = f"{members} members do not divide the queues after one has {'joined' if joins else 'left'}"
                raise GuaranteeBroken(16, sentence, f"within {_CHANGE_MS} ms")

    # ---- local progress ------------------------------------------------------------------------------------------

    def _crash_local(self, operation: CrashLocal) -> CrashLocal:
        """Crash a save of local progress, and judge what is left; return the crash as it was."""
        crash = crash_local_progress(
            operation,
            self._parts,
            self.now_ms,
            disk=self.settings.disk,
            tracker=self._tracker,
            certify=self._certify,
        )
        self.hit["local crash"] += 1
        self.lost_writes += crash.lost_writes
        judge_local_progress(crash, self._parts)
        return crash.performed

    # ---- what is seen --------------------------------------------------------------------------------------------

    def _see(self, event: seen.Event) -> None:
        """Judge an event, and go on with what it means."""
        self.trace.append(event)
        self.group = judge.judge_event(self.group, event)

    # ---- the end of a run ----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """End all faults, give the group time, and judge the end (J1, J4, J7)."""
        self.failing.clear()
        self.holds = False
        self.slow = ""
        for connection in self.connections:
            connection.release()
        for member in self.members:
            member.is_hung = False
            if member.consumer is not None and not member.is_leaving:
                self._subscribe(member.consumer, again=True)
        if not self.host.is_up:
            self._open()
        settled_ms = self.now_ms + self._expiry_ms()
        limit_ms = self.now_ms + _SETTLING_MS
        is_settled = False
        while self.now_ms < limit_ms and (self.now_ms < settled_ms or not is_settled):
            absent = [member for member in self.members if member.consumer is None]
            if self.settings.is_manual or len(absent) == len(self.members):
                for member in absent if self.settings.is_manual else absent[:1]:
                    self._join(member)
            self._round(self._leap(is_settled=is_settled), "success")
            is_settled = self._has_settled()
        begun_ms = self.now_ms
        while self.now_ms < begun_ms + _WINDOW_MS:
            self._round(self._leap(is_settled=True), "success")
        running = {member.life for member in self.members if member.consumer is not None}
        pullers = {
            Queue(TOPIC, number): frozenset(
                life
                for (queue, life), at_ms in self._pulled_at.items()
                if queue == Queue(TOPIC, number) and at_ms >= begun_ms and life in running
            )
            for number in range(self.host.queues)
        }
        self._see(seen.Quiet(pullers))
        for member in self.members:
            if isinstance(member.consumer, PushConsumer):
                lags_are_right(member.life, member.consumer, self.host, pullers)
        if self.direct.is_used:
            self._finish_direct()
        close_broker(self.host)

    def _expiry_ms(self) -> int:
        """Return how long a queue may have an owner that is gone."""
        return _EXPIRY_MS if any(self.hit[each] for each in _LOSSY) else _WINDOW_MS

    def _leap(self, *, is_settled: bool) -> int:
        """Return the time to the next round: a short one while the group is busy."""
        if self._is_busy():
            return _LEAP_MS[0]
        return _IDLE_LEAP_MS if is_settled else _LEAP_MS[1]

    def _is_busy(self) -> bool:
        return any(connection.requests or connection.answers for connection in self.connections)

    def _has_settled(self) -> bool:
        """Return whether everything is delivered and stored, and some members stay."""
        if any(member.is_leaving for member in self.members if member.consumer is not None):
            return False
        if all(member.consumer is None for member in self.members):
            return False
        quiet = seen.Quiet({})
        try:
            judge.all_is_delivered(self.group, quiet)
            judge.progress_reaches_the_end(self.group, quiet)
        except GuaranteeBroken:
            return False
        delayed = [record for record in self.group.log if record.level and record.end > self.group.begin]
        return all(record.queue in self.group.queues for record in delayed)


def _rules(settings: GroupSettings) -> Rules:
    unlimited = settings.keeps_order and settings.retries >= GroupSettings().retries
    return Rules(
        is_orderly=settings.keeps_order,
        syncs=settings.has_sync_flush,
        times_max=_UNLIMITED if unlimited else settings.retries,
        threshold=settings.threshold,
        pause_ms=0 if settings.is_manual else _SUSPENDED_MS if settings.is_orderly else _TRIED_AGAIN_MS,
    )


def _use(act: Callable[[], None]) -> None:
    """Use a part alone.

    A value of a wrong kind, which no comparison can take, breaks contract 8.
    """
    try:
        act()
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        found = f"{type(error).__name__}: {error}"
        raise GuaranteeBroken(8, "a part that is used alone has a value of a wrong kind", found=found) from error


def _queue(queue: MessageQueue) -> Queue:
    return Queue(queue.topic, queue.queue_id)
