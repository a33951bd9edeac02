"""Run members in the process of the broker as `RunningConsumer` does, and judge them.

The contracts are 16 and 19 to 22.

A member of group B is broadcasting and has a disk of its own. Members of group D share the queues. A member is stepped
when the time is due that its last step returned, or after a wake-up by its connection or its listener. Nothing else
lets the thread of a `RunningConsumer` run. So a due time that is too late, or a missing wake-up, is found: a message or
a queue comes too late.

What each member has to get follows from the log of the model and from the first offset of its group.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tornpage.impl.consumer.connection import DirectConnection
from tornpage.impl.consumer.lag import QueueLag
from tornpage.impl.consumer.messages import Batch, ConcurrentStatus, OrderlyStatus
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.settings import ConsumeFromWhere, ConsumerSettings, MessageModel
from tornpage.impl.parts import Parts
from tornpage.model.consumers.operations import RunDirect, Verdict
from tornpage.model.consumers.state import Entry, Group, Queue
from tornpage.properties.consumers.host import BORN_MS, BROKER, TAG, TOPIC, BrokerHost
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.program.group_case import GroupSettings

__all__ = ["DIRECT_GROUPS", "DirectGroups"]

DIRECT_GROUPS = ("B", "D")
"""The group that broadcasts, and the one whose members share the queues."""

_MEMBERS = 2
_STEPS_MAX = 200
_SAVED_MS = 10_000
"""After this time a member that was stepped has stored its progress."""
_STALE_MS = 10_000
"""The progress of a member that was not stepped for so long may be old, and its queues may have another owner."""
_WHERE = {
    "first": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    "last": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    "time": ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
}


@dataclass(slots=True, eq=False)
class _Had:
    """What the members of a clustering group, or one broadcasting member, have had.

    `first` is where it began, by queue id. `may_be` are the offsets at which it may begin, by queue id. `ended` are the
    entries with a result that counts, with its time. `again` may be given once more, after a member that did not end in
    order. After a crash that took records a group `begins_anywhere`.
    """

    first: dict[int, int] = field(default_factory=dict)
    may_be: dict[int, set[int]] = field(default_factory=dict)
    ended: dict[tuple[int, int], int] = field(default_factory=dict)
    again: set[tuple[int, int]] = field(default_factory=set)
    begins_anywhere: bool = False


@dataclass(slots=True, eq=False)
class _Direct:
    """One member. `files` outlive its processes. `due_ms` is when its thread runs next."""

    number: int
    is_broadcasting: bool
    files: RecordingFiles
    had: _Had
    lives: int = 0
    consumer: PushConsumer | None = None
    connection: DirectConnection | None = None
    due_ms: int = 0
    stepped_ms: int = 0
    is_paused: bool = False
    ended: dict[tuple[int, int], int] = field(default_factory=dict)
    """The results of this process."""

    @property
    def group(self) -> str:
        """The name of its group."""
        return DIRECT_GROUPS[0 if self.is_broadcasting else 1]

    def wake(self) -> None:
        """Let its thread run at once."""
        self.due_ms = 0


class DirectGroups:
    """The members of both groups.

    The trial owns clock, broker and model, and calls the methods in their order. `hit` counts ends and results.
    """

    def __init__(self, settings: GroupSettings, *, parts: Parts, tracker: DirtyTracker, hit: Counter[str]) -> None:
        self._settings = settings
        self._parts = parts
        self._tracker = tracker
        self._begins: dict[str, tuple[str, int]] = {}
        self._members: dict[tuple[bool, int], _Direct] = {}
        self._shared = _Had()
        self._least: Counter[int] = Counter()
        self._hit = hit

    @property
    def is_used(self) -> bool:
        """Whether a member has ever run."""
        return bool(self._members)

    # ---- what a trial calls --------------------------------------------------------------------------------------

    def begin(self, asked: RunDirect, host: BrokerHost, now_ms: int) -> None:
        """Start the member of an operation unless it runs, and pause it if the operation says so."""
        member = self._member(asked)
        self._begins.setdefault(member.group, (asked.begins, (BORN_MS + now_ms) // 2))
        if member.consumer is None:
            self._start(member, host)
        assert member.consumer is not None
        member.is_paused = asked.paused
        if asked.paused:
            member.consumer.suspend()
        else:
            member.consumer.resume()
            member.wake()

    def round(self, host: BrokerHost, group: Group, now_ms: int, result: Verdict) -> None:
        """Let each running member do what its thread would do now."""
        for queue_id in range(host.queues):
            self._least[queue_id] = max(self._least[queue_id], host.store.min_offset_in_queue(TOPIC, queue_id))
        for member in self._members.values():
            if member.consumer is not None:
                self._run(member, host, group, now_ms, result)

    def end(self, asked: RunDirect, host: BrokerHost, now_ms: int) -> None:
        """End the member of an operation as it says."""
        member = self._member(asked)
        consumer, connection = member.consumer, member.connection
        if consumer is None or connection is None or not asked.end:
            return
        self._hit[f"direct {asked.end}"] += 1
        if asked.end == "leave":
            observed("shutdown", partial(consumer.shutdown, now_ms))
            for _ in range(_STEPS_MAX):
                observed("step of a member", partial(consumer.step, now_ms))
                if consumer.is_closed:
                    break
            if not consumer.is_closed:
                raise GuaranteeBroken(16, "a member with a working connection and no listener does not leave")
            observed("close", connection.close)
            self._progress_is_kept(member, host, before_ms=now_ms + 1)
        else:
            if asked.end == "close":
                observed("close", connection.close)
            self._gone(member)
        member.consumer = member.connection = None

    def broker_is_lost(self) -> None:
        """Forget the processes of all members: they were in that of the broker."""
        for member in self._members.values():
            self._gone(member)
            member.consumer = member.connection = None
        self._shared.again |= set(self._shared.ended)

    def records_are_lost(self, host: BrokerHost) -> None:
        """Forget what was had of records that a crash has taken.

        Broadcasting members begin with an empty disk. Their progress is of messages that the broker has lost, and the
        broker cannot correct it.
        """
        for queue, offset in tuple(self._shared.ended):
            if offset >= host.store.max_offset_in_queue(TOPIC, queue):
                del self._shared.ended[queue, offset]
        self._shared.first.clear()
        self._shared.begins_anywhere = True
        for key in [key for key, member in self._members.items() if member.is_broadcasting]:
            del self._members[key]

    def finish(self, host: BrokerHost, now_ms: int) -> None:
        """Start all members again that have ever run."""
        for member in self._members.values():
            if member.consumer is None:
                self._start(member, host)
            member.wake()
            assert member.consumer is not None
            member.consumer.resume()
            member.is_paused = False

    def is_settled(self, host: BrokerHost, group: Group) -> bool:
        """Return whether every member has had everything, and every queue has an owner."""
        return not any(self._missing(host, group)) and self._is_dealt(host)

    def _is_dealt(self, host: BrokerHost) -> bool:
        is_shared = any(not each.is_broadcasting for each in self._members.values())
        return not is_shared or len(self._dealt()) == host.queues

    def _dealt(self) -> Counter[MessageQueue]:
        """Return how many members of group D have each queue of the topic."""
        assigned = [each.consumer.assigned() for each in self._members.values() if each.consumer is not None
                    if not each.is_broadcasting]  # fmt: skip
        return Counter(queue for share in assigned for queue in share if queue.topic == TOPIC)

    def changes(self) -> Iterator[tuple[bool, int]]:
        """Yield each change of group D that has to be fast.

        A member leaves in order, and joins again.
        """
        shared = [each for each in self._members.values() if not each.is_broadcasting]
        if len(shared) == _MEMBERS:
            yield from ((False, 1), (True, _MEMBERS))

    def change(self, host: BrokerHost, now_ms: int, *, joins: bool) -> None:
        """Let the first member of group D leave, or join again."""
        member = self._members[False, 0]
        if joins:
            self._start(member, host)
        else:
            self.end(RunDirect(0, is_broadcasting=False, end="leave"), host, now_ms)

    def is_divided(self, host: BrokerHost, members: int) -> bool:
        """Return whether each queue has one owner.

        There are `members` members, and their numbers of queues differ by at most 1.
        """
        shares = [
            sum(queue.topic == TOPIC for queue in each.consumer.assigned())
            for each in self._members.values()
            if not each.is_broadcasting and each.consumer is not None
        ]
        return len(shares) == members and sum(shares) == host.queues and max(shares) - min(shares) <= 1

    def judge(self, host: BrokerHost, group: Group) -> None:
        """Contracts 16 and 19: everything was given, and members say so."""
        for sentence in self._missing(host, group):
            raise GuaranteeBroken(19, sentence, "a result of a listener", "none")
        for member in self._members.values():
            assert member.consumer is not None
            assigned = member.consumer.assigned()
            lags = observed("lag", member.consumer.lag)
            if sorted(lags) != assigned:
                raise GuaranteeBroken(16, "a member has the lag of other queues than it has", str(assigned), str(lags))
            for queue, lag in lags.items():
                end = host.store.max_offset_in_queue(queue.topic, queue.queue_id)
                if lag != QueueLag(end, end) or lag.diff:
                    sentence = f"a member at the end of {queue.java_text()} has another lag"
                    raise GuaranteeBroken(16, sentence, str(QueueLag(end, end)), str(lag))
        dealt = self._dealt()
        is_shared = any(not each.is_broadcasting for each in self._members.values())
        if is_shared and sorted(dealt.elements()) != [MessageQueue(TOPIC, BROKER, n) for n in range(host.queues)]:
            sentence = f"the members of group D do not have each queue of {TOPIC} once"
            raise GuaranteeBroken(16, sentence, f"{host.queues} queues", str(sorted(dealt.elements())))

    # ---- processes -----------------------------------------------------------------------------------------------

    def _member(self, asked: RunDirect) -> _Direct:
        key = asked.is_broadcasting, asked.member % _MEMBERS
        if key not in self._members:
            files = RecordingFiles(EMPTY_DISK, tracker=self._tracker)
            had = _Had() if asked.is_broadcasting else self._shared
            self._members[key] = _Direct(key[1], asked.is_broadcasting, files, had)
        return self._members[key]

    def _start(self, member: _Direct, host: BrokerHost) -> None:
        settings, (begins, time_ms) = self._settings, self._begins[member.group]
        member.lives += 1
        member.ended = {}
        client_id = f"10.0.1.{member.number}@{member.group}{'' if member.is_broadcasting else member.lives}"
        member.connection = DirectConnection(host.broker, client_id)
        member.consumer = self._parts.of(PushConsumer)(
            ConsumerSettings(
                consumer_group=member.group,
                client_id=client_id,
                message_model=MessageModel.BROADCASTING if member.is_broadcasting else MessageModel.CLUSTERING,
                orderly=settings.is_orderly,
                consume_from_where=_WHERE[begins],
                consume_timestamp_ms=time_ms if begins == "time" else None,
                pull_batch_size=settings.pull_batch,
                pull_threshold_for_topic=settings.threshold,
                consume_message_batch_max_size=settings.batch,
            ),
            {BROKER: member.connection},
            files=member.files,
            directory="/local",
            parts=self._parts,
        )
        member.connection.watch(member.wake)
        observed("subscribe", partial(member.consumer.subscribe, TOPIC, TAG))
        member.wake()

    def _gone(self, member: _Direct) -> None:
        """Note that a process dies: what it has not stored may come again."""
        if member.consumer is not None:
            member.had.again |= set(member.ended)

    # ---- rounds --------------------------------------------------------------------------------------------------

    def _run(self, member: _Direct, host: BrokerHost, group: Group, now_ms: int, result: Verdict) -> None:
        consumer = member.consumer
        assert consumer is not None
        for _ in range(_STEPS_MAX):
            if member.due_ms > now_ms:
                return
            self._may_begin(member, host)
            if now_ms - member.stepped_ms > _STALE_MS:
                member.had.again |= set(member.ended)
            member.due_ms = observed("step of a member", partial(consumer.step, now_ms))
            member.stepped_ms = now_ms
            self._has_begun(member, host)
            self._cache_is_bounded(consumer, host)
            while (batch := observed("take", partial(consumer.take, now_ms))) is not None:
                if member.is_paused:
                    raise GuaranteeBroken(16, "a member that is paused gives a batch to its listener")
                self._is_right(member, batch, group, now_ms)
                self._finish(member, batch, now_ms, result)
                member.wake()
        raise GuaranteeBroken(16, "a member asks for step after step without a pause", f"at most {_STEPS_MAX}")

    def _finish(self, member: _Direct, batch: Batch, now_ms: int, result: Verdict) -> None:
        """End a batch. A failed message of a concurrent broadcasting member is dropped.

        Members of group D succeed unless they are orderly, so that they send no copies to a retry topic.
        """
        orderly = self._settings.is_orderly
        fails = result != "success" and (orderly or member.is_broadcasting)
        status: OrderlyStatus | ConcurrentStatus
        if orderly:
            status = OrderlyStatus.SUSPEND if fails else OrderlyStatus.SUCCESS
        else:
            status = ConcurrentStatus.RECONSUME_LATER if fails else ConcurrentStatus.CONSUME_SUCCESS
        assert member.consumer is not None
        observed("finish", partial(member.consumer.finish, batch, status, now_ms))
        self._hit["direct failure" if fails else "direct success"] += 1
        if fails and orderly:
            return
        ended = {(batch.queue.queue_id, each.queue_offset): now_ms for each in batch.messages}
        member.ended |= ended
        member.had.ended |= ended
        member.had.again -= set(ended)
        if fails and not any("dropped" in each for each in member.consumer.findings):
            raise GuaranteeBroken(19, "a broadcasting member drops a failed message without a finding")

    # ---- where a group begins ------------------------------------------------------------------------------------

    def _may_begin(self, member: _Direct, host: BrokerHost) -> None:
        """Note where the group may begin in each queue, by what the broker has before a step.

        A queue that was added after the group began with the topic begins at its first message. A clustering group
        begins at 0 in a queue that is young, as RocketMQ does.
        """
        store, had = host.store, member.had
        begins, time_ms = self._begins[member.group]
        for queue_id in range(host.queues):
            if queue_id in had.first:
                continue
            found = had.may_be.setdefault(queue_id, set())
            young = None if member.is_broadcasting else store.query_offset(member.group, TOPIC, queue_id)
            if young is not None:
                found.add(young)
            elif begins == "first" or had.first:
                found.add(store.min_offset_in_queue(TOPIC, queue_id))
            elif begins == "last":
                found.add(store.max_offset_in_queue(TOPIC, queue_id))
            else:
                found.add(store.offset_in_queue_by_time(TOPIC, queue_id, time_ms))

    def _has_begun(self, member: _Direct, host: BrokerHost) -> None:
        """Compare each new first offset with those that are legal (contract 21)."""
        begun = self._progress(member, host)
        for queue_id in begun.keys() - member.had.first.keys():
            legal = member.had.may_be.get(queue_id, set())
            if begun[queue_id] not in legal and not member.had.begins_anywhere:
                sentence = f"group {member.group} begins in queue {queue_id} of {TOPIC} at another offset"
                raise GuaranteeBroken(21, sentence, " or ".join(map(str, sorted(legal))), str(begun[queue_id]))
            member.had.first[queue_id] = begun[queue_id]

    def _progress(self, member: _Direct, host: BrokerHost) -> dict[int, int]:
        """Return the progress of a member by queue id.

        It is stored at the broker. A broadcasting member returns its own.
        """
        if not member.is_broadcasting:
            return host.store.consumer_offsets(TOPIC).get(member.group, {})
        assert member.consumer is not None
        lags = observed("lag", member.consumer.lag)
        return {queue.queue_id: lag.progress for queue, lag in lags.items() if lag.progress is not None}

    # ---- judges --------------------------------------------------------------------------------------------------

    def _is_right(self, member: _Direct, batch: Batch, group: Group, now_ms: int) -> None:
        """Contracts 19 to 22: a batch has subscribed messages that were not consumed.

        Those of an orderly member come in order.
        """
        queue_id, had = batch.queue.queue_id, member.had
        others = [each for each in self._members.values() if each.had is had and each is not member]
        stale = {key for each in others if now_ms - each.stepped_ms > _STALE_MS for key in each.ended}
        entries = group.entries(Queue(TOPIC, queue_id))
        for message in batch.messages:
            offset, text = message.queue_offset, f"offset {message.queue_offset} of queue {queue_id} of {TOPIC}"
            if batch.queue.topic != TOPIC or offset >= len(entries) or not entries[offset].matches:
                raise GuaranteeBroken(19, f"group {member.group} gets what it has not subscribed", TAG, text)
            if offset < had.first.get(queue_id, 0):
                raise GuaranteeBroken(22, f"group {member.group} gets a message before its first offset", found=text)
            if (queue_id, offset) in had.ended and (queue_id, offset) not in had.again | stale:
                raise GuaranteeBroken(22, f"group {member.group} gets a finished message again", "once", text)
            before = self._open(
                had, queue_id, entries, range(had.first.get(queue_id, 0), batch.messages[0].queue_offset)
            )
            if self._settings.is_orderly and before and not group.excused:
                raise GuaranteeBroken(20, f"group {member.group} gets a message too early", str(before[0]), text)

    def _open(self, had: _Had, queue_id: int, entries: tuple[Entry, ...], offsets: Iterable[int]) -> list[int]:
        """Return the offsets that a group has still to get."""
        least = self._least[queue_id]
        return [
            offset
            for offset in offsets
            if offset >= least and offset < len(entries) and entries[offset].matches
            if (queue_id, offset) not in had.ended
        ]

    def _cache_is_bounded(self, consumer: PushConsumer, host: BrokerHost) -> None:
        """Contract 16: the queues of a member share the limit of a topic.

        No lag is outside its queue, or passes over a cached message.
        """
        lags, caches = observed("lag", consumer.lag), consumer.process_queues()
        for queue, lag in lags.items():
            end = host.store.max_offset_in_queue(queue.topic, queue.queue_id)
            if not 0 <= (lag.progress or 0) <= lag.max_offset <= end:
                sentence = f"the lag of a member in {queue.java_text()} is outside the queue"
                raise GuaranteeBroken(16, sentence, f"0 to {end}", str(lag))
            cache = caches[queue]
            first = min([*cache.msg_tree_map, *cache.consuming_msg_orderly_tree_map, lag.max_offset])
            if lag.cached != cache.msg_count or (lag.progress or 0) > first:
                sentence = f"the lag of a member in {queue.java_text()} is not that of its cache"
                raise GuaranteeBroken(16, sentence, f"{cache.msg_count} messages from {first} on", str(lag))
        most = max(1, self._settings.threshold)
        for queue, cache in caches.items():
            if cache.msg_count > most or cache.msg_count < 0 or cache.msg_size < 0:
                raise GuaranteeBroken(
                    16, f"a member caches more of {queue.java_text()}", str(most), str(cache.msg_count)
                )

    def _progress_is_kept(self, member: _Direct, host: BrokerHost, *, before_ms: int) -> None:
        """Contract 22: results that are old enough are stored.

        So the next process does not get their messages again.
        """
        if member.is_broadcasting:
            return  # what the next process gets again is judged
        found = self._progress(member, host)
        for queue_id, first in member.had.first.items():
            least = first
            ended = member.had.ended
            while (queue_id, least) in ended and ended[queue_id, least] < before_ms:
                least += 1
            if found.get(queue_id, 0) < least and not self._stale_others(member):
                sentence = f"a member leaves group {member.group} before its results are stored"
                raise GuaranteeBroken(22, sentence, f"progress {least} of queue {queue_id}", str(found.get(queue_id)))

    def _stale_others(self, member: _Direct) -> bool:
        return any(each.had is member.had and each is not member and each.lives for each in self._members.values())

    def _missing(self, host: BrokerHost, group: Group) -> Iterable[str]:
        """Yield a sentence for each message that a member has still to get."""
        for member in self._members.values():
            for queue_id in range(host.queues):
                entries = group.entries(Queue(TOPIC, queue_id))
                first = member.had.first.get(queue_id)
                if first is None:
                    yield f"group {member.group} never begins in queue {queue_id} of {TOPIC}"
                    continue
                for offset in self._open(member.had, queue_id, entries, range(first, len(entries))):
                    if entries[offset].identity not in group.excused:
                        yield f"a member of group {member.group} never gets offset {offset} of queue {queue_id}"
