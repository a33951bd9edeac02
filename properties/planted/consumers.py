"""Define bugs of consumers: progress, hand-overs, locks, retries, shares.

The ids CB are those of the list that each consumer library is tested with (docs/consumers/tested.md). CC numbers are
breaches of RocketMQ 4.9.3 that the list does not have.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from tornpage.impl.consumer.allocation import STRATEGIES, averagely, averagely_by_circle, ring_hash
from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.client import NEVER
from tornpage.impl.consumer.concurrent import Concurrent
from tornpage.impl.consumer.connection import Call, CallError
from tornpage.impl.consumer.first_offset import is_nothing_stored
from tornpage.impl.consumer.flow_control import FlowControl
from tornpage.impl.consumer.hand_over import HandOver
from tornpage.impl.consumer.holding import Holding, HoldingState, is_over
from tornpage.impl.consumer.leases import Leases
from tornpage.impl.consumer.member_table import MemberTable
from tornpage.impl.consumer.messages import Batch, ConsumerMessage
from tornpage.impl.consumer.offset_store import LocalOffsets
from tornpage.impl.consumer.orderly import is_free
from tornpage.impl.consumer.process_queue import ProcessQueue
from tornpage.impl.consumer.pull_loop import PullLoop, corrected_offset, is_subscribed
from tornpage.impl.consumer.push_consumer import subscriptions_of
from tornpage.impl.consumer.queue_locks import QueueLocks
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.rebalance import Rebalance
from tornpage.impl.consumer.requests import (
    Answer,
    Bounds,
    MembersFound,
    OffsetUpdated,
    Pull,
    Pulled,
    Refused,
    SendBackStatus,
    SentBack,
    Subscription,
    UpdateOffset,
    UpdateStatus,
)
from tornpage.impl.consumer.returns import Return, Returns
from tornpage.impl.consumer.send_back import (
    SendBacks,
    copy_properties,
    is_dead,
    is_same_record,
    retry_delay_level,
)
from tornpage.impl.consumer.settings import ConsumerSettings
from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.fastjson import written
from tornpage.impl.parts import Parts
from tornpage.model.consumers.operations import (
    Allocate,
    CrashBroker,
    CrashLocal,
    DeleteFiles,
    DeliverAnswer,
    DeliverRequest,
    FailRequests,
    FinishBatch,
    FlushBroker,
    HangMember,
    HealMember,
    HoldResults,
    Join,
    Leave,
    ParkRequests,
    PassTime,
    Produce,
    RestartBroker,
    ResumeMember,
    RunDirect,
    RunGroup,
    StepBroker,
    StepMember,
    TakeBatch,
    UseMembers,
    UseStateFiles,
)
from tornpage.properties.planted.record import Origin, PlantedBug
from tornpage.properties.program.group_case import GroupSettings

__all__ = ["BUGS"]


# ---- progress --------------------------------------------------------------------------------------------------------


class _LargestFinished(ProcessQueue):
    """Call everything below the last finished message finished."""

    def remove_message(self, messages: Any, now_ms: int) -> int:
        messages = list(messages)
        highest: int = max((each.queue_offset + 1 for each in messages), default=0)
        return max(super().remove_message(messages, now_ms), highest)


class _ForgottenFinished(ProcessQueue):
    """Keep the highest offset when messages are forgotten at the begin of a hand-over."""

    def cut(self, offset: int) -> int | None:
        highest = self.queue_offset_max
        first = super().cut(offset)
        self.queue_offset_max = highest
        return first


class _FirstIsHighest(ProcessQueue):
    """Take the first message of a pull for the highest one."""

    def put_message(self, messages: Sequence[ConsumerMessage]) -> bool:
        starts = super().put_message(messages)
        self.queue_offset_max = messages[0].queue_offset
        return starts


class _FirstNotSaved(LocalOffsets):
    """Note a first offset, and save it with the first progress."""

    def keep_first(self, queue: MessageQueue, offset: int, now_ms: int) -> Call:
        offset = self._offsets.setdefault(queue, offset)
        call = Call(UpdateOffset("", queue, offset), deadline_ms=now_ms)
        call.settle(OffsetUpdated(UpdateStatus.STORED, offset))
        return call


class _VanishesUnseen(MemberTable):
    """Remove members whose heartbeat is too old without a notice to the others."""

    def expire(self, now_ms: int) -> None:
        before = set(self.changed)
        super().expire(now_ms)
        self.changed = before


class _BackupForgotten(ConfigFile):
    """Keep no backup of the last version of a state file."""

    def save(self, document: object) -> None:
        self._last = self._in_backup
        super().save(document)


def _any_error_is_nothing(outcome: Any) -> bool:
    """Take every refusal for "no progress" (C1)."""
    return isinstance(outcome, Refused) or is_nothing_stored(outcome)


def _jump_to_end(offset: int, bounds: Bounds) -> int | None:
    return bounds.max_offset if offset > bounds.max_offset else corrected_offset(offset, bounds)


def _jump_to_begin(offset: int, bounds: Bounds) -> int | None:
    return bounds.min_offset if offset > bounds.max_offset else corrected_offset(offset, bounds)


def _past_the_expired(offset: int, bounds: Bounds) -> int | None:
    """Go on at the end of a queue whose first messages have expired."""
    return bounds.max_offset if offset < bounds.min_offset else corrected_offset(offset, bounds)


class _TailIgnored(PullLoop):
    """Note no progress for messages that the broker has left out."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._note_progress = lambda *_, **__: None


class _TailNoted(PullLoop):
    """Note progress past messages that the broker has left out, whatever is cached."""

    def _found(self, answer: Pulled, now_ms: int) -> None:
        super()._found(answer, now_ms)
        if not answer.messages:
            self._note_progress(self._offsets, self._holding, self._holding.next_offset, increase_only=True)


class _LastWriterWins(ConsumerBroker):
    """Store what each request says, also if it is lower."""

    def _raise(
        self, request: UpdateOffset | Pull, stored: int | None, offset: int, *, only_if_absent: bool
    ) -> OffsetUpdated:
        if only_if_absent and stored is not None:
            return OffsetUpdated(UpdateStatus.NOT_ABOVE, stored)
        found = self.store.commit_offset(request.group, request.queue.topic, request.queue.queue_id, offset)
        return OffsetUpdated(UpdateStatus.STORED, found)


class _WrittenInPlace(ConfigFile):
    """Write the file as RocketMQ does: in place and without a sync."""

    def save(self, document: object) -> None:
        if self._files.stat(self.path) is not None:
            self._files.unlink(self.path)
        file = self._files.create(self.path)
        try:
            self._files.pwrite(file, written(document).encode(), 0)
        finally:
            self._files.close(file)


# ---- hand-overs and locks --------------------------------------------------------------------------------------------


class _Unfenced(ConsumerBroker):
    """Accept requests with any lease (C3)."""

    def _fenced(self, *arguments: Any) -> Refused | None:
        return None


class _UnfencedLocks(QueueLocks):
    """Note pulls of queues without an owner, and void no lease."""

    def note_pull(self, group: str, queue: MessageQueue) -> None:
        if (group, queue) in self._owners:
            super().note_pull(group, queue)

    def void(self, group: str, queue: MessageQueue, *, if_pulled: bool = False) -> None:
        """Void nothing."""


class _GrantedTwice(QueueLocks):
    """Grant a queue that another member owns (C5)."""

    def _is_free(self, *arguments: Any) -> bool:
        return True


class _ForgetsLocks(QueueLocks):
    """Grant each queue at once after a restart (C7)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"waits_until_ms": 0})


def _never_busy(holding: Holding) -> bool:
    """Let two batches of a queue run at a time."""
    return True


class _ExpiryIgnored(Leases):
    """Consume under a lease of any age (C6)."""

    def is_usable(self, holding: Holding, now_ms: int) -> bool:
        return holding.process_queue.locked


class _NotDrained(HandOver):
    """Give a queue back while its batches run."""

    def is_drained(self, holding: Holding) -> bool:
        return True


class _StaleMembers(Rebalance):
    """Divide queues by the first list of members without end."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        first: list[tuple[str, ...]] = []

        def members_of(me: str, found: MembersFound) -> tuple[str, ...] | None:
            if not first and me in found.client_ids:
                first.append(found.client_ids)
            return first[0] if first else None

        self._members_of = members_of


def _lost_for_ever(holding: Holding, *, orderly: bool) -> bool:
    """Keep a lost queue in the table, so that it is never claimed again (C16)."""
    return holding.state is not HoldingState.LOST and is_over(holding, orderly=orderly)


# ---- pulls -----------------------------------------------------------------------------------------------------------


class _PullLost(PullLoop):
    """Pull no more after a request that failed (C13)."""

    def _take(self, outcome: Answer | CallError, now_ms: int) -> None:
        super()._take(outcome, now_ms)
        if isinstance(outcome, Refused | CallError):
            self._due_ms = NEVER


class _NeverIdle(ProcessQueue):
    """Never call a pull idle."""

    def is_pull_expired(self, now_ms: int, idle_ms: int = 120_000) -> bool:
        return False


class _CountKept(Returns):
    """Do not lower the count for a message that was sent back."""

    def finished(self, now_ms: int) -> tuple[list[Return], int]:
        found, due_ms = super().finished(now_ms)
        for each in found:
            each.holding.process_queue.msg_count += bool(each.is_stored)
        return found, due_ms


class _WholePulls(PullLoop):
    """Ask for whole pulls up to the threshold, and keep what does not fit (C24)."""

    def _send(self, count: int, now_ms: int) -> None:
        super()._send(self._client.settings.pull_batch_size, now_ms)

    def _found(self, answer: Pulled, now_ms: int) -> None:
        exact, self.flow_control = self.flow_control, FlowControl(1 << 30, 1 << 40, None)
        super()._found(answer, now_ms)
        self.flow_control = exact


class _NeverHeld(ConsumerBroker):
    """Answer each pull at once."""

    def _pull(self, request: Pull) -> Answer | Future[Answer]:
        return super()._pull(replace(request, suspend_ms=0))


class _NoPause(PullLoop):
    """Pull on at once after an answer without a message (C21)."""

    def _pause_ms(self, *arguments: Any) -> int:
        return 0


def _every_tag(subscription: Subscription, message: Any) -> bool:
    """Trust the hashes that the broker compares (C20)."""
    return True


def _without_retries(settings: ConsumerSettings, subscribed: Any) -> tuple[Subscription, ...]:
    """Subscribe no retry topic."""
    return tuple(sorted(subscribed, key=lambda each: each.topic))


# ---- messages sent back ----------------------------------------------------------------------------------------------


class _FailedIsStored(Returns):
    """Count a message as sent back although that failed."""

    def _step(self, each: Return, now_ms: int) -> None:
        super()._step(each, now_ms)
        each.is_stored = None if each.is_stored is None else True


def _in_page_cache(properties: Mapping[str, str], **options: Any) -> dict[str, str]:
    """Put the copy with WAIT=false (C4)."""
    return {**copy_properties(properties, **options), "WAIT": "false"}


def _dead_too_late(reconsume_times: int, times_max: int, delay_level: int) -> bool:
    return is_dead(reconsume_times, times_max + 1, delay_level)


def _next_level(reconsume_times: int, delay_level: int) -> int:
    return retry_delay_level(reconsume_times, delay_level) + 1


class _StoredNowhere(SendBacks):
    """Answer success and store nothing (C10)."""

    def send_to_retry(self, request: Any, group: Any) -> Answer:
        return SentBack(SendBackStatus.RETRY)


def _whatever_is_there(*_: Any) -> bool:
    """Copy the record at the physical offset, whatever message it is (C29)."""
    return True


class _Forgetful(SendBacks):
    """Remember no key of a request (C26)."""

    def _remember(self, key: str) -> None:
        """Forget it."""


class _OverdueSentBack(Concurrent):
    """Send a message back while its listener runs for a minute (C17)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._begun: list[Batch] = []

    def take(self, now_ms: int) -> Batch | None:
        batch = super().take(now_ms)
        if batch is not None:
            self._begun.append(batch)
        return batch

    def finish(self, batch: Batch, *arguments: Any, **options: Any) -> None:
        self._begun = [each for each in self._begun if each is not batch]
        super().finish(batch, *arguments, **options)

    def step(self, now_ms: int) -> int:
        overdue = [each for each in self._begun if now_ms - each.began_ms > 60_000]
        self._begun = [each for each in self._begun if each not in overdue]
        for batch in overdue:
            assert isinstance(batch.holding, Holding)
            for message in batch.messages:
                self._returns.add(batch.holding, message, now_ms)
        return super().step(now_ms)


# ---- shares ----------------------------------------------------------------------------------------------------------


def _overlapping(me: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
    """Begin the shares of later members too early."""
    ordered, ids = sorted(queues), sorted(clients)
    if me not in ids:
        return []
    place, (least, more) = ids.index(me), divmod(len(ordered), len(ids))
    begin = place * (least + 1) if place < more else place * least
    return ordered[begin : begin + least + (place < more)]


def _unsorted_circle(me: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
    """Deal queues to members in the order of arrival."""
    ids = list(clients)
    return sorted(queues)[ids.index(me) :: len(ids)] if me in ids else []


def _ring_without_wrap(me: str, queues: Sequence[MessageQueue], clients: Sequence[str]) -> list[MessageQueue]:
    """Give a queue past the last point of the ring to no member."""
    points = sorted((ring_hash(f"{client}-{number}"), client) for client in clients for number in range(10))

    def owner(queue: MessageQueue) -> str:
        found = ring_hash(queue.java_text())
        return next((client for point, client in points if point >= found), "")

    return [queue for queue in sorted(queues) if owner(queue) == me]


# ---- the bugs, each with its minimal reproducer ----------------------------------------------------------------------

_PLAIN = GroupSettings()
_ORDERLY = GroupSettings(is_orderly=True)
_HELD = (Produce(), Produce(), HoldResults(), Join(), RunGroup())
"""Two messages of one queue, with running listeners."""
_LOCKED = (PassTime(61_000), *_HELD)
"""The same with an orderly member, to which the broker grants queues a minute after its start."""
_SMALL_FILES = GroupSettings(queues=1, log_file_bytes=1536)
_CUT = (Produce(), FlushBroker(), Produce(), Produce(), Join(), RunGroup(), CrashBroker(), RestartBroker())
"""Three messages were consumed, and the broker has lost two of them."""


def _origin(number: str, title: str) -> Origin:
    return Origin(number, title, "open in 4.9.8", "yes")


BUGS = (
    PlantedBug("CB01", "progress is the offset after the largest finished one", 21,
        Parts({ProcessQueue: _LargestFinished}),
        consumers=(_PLAIN, (*_HELD, FinishBatch(number=1), RunGroup(by_ms=6_000)))),
    PlantedBug("CB02", "a queue that is given up stores progress over messages that it forgot", 21,
        Parts({ProcessQueue: _ForgottenFinished}), origin=_origin("C14", "Dropped queues and their results"),
        consumers=(GroupSettings(batch=1), (*[Produce()] * 6, HoldResults(), Join(), RunGroup(), Leave()))),
    PlantedBug("CB03", "any error of the query of progress means that there is none", 21,
        Parts({is_nothing_stored: _any_error_is_nothing}),
        origin=_origin("C1", "Any error code of the offset query is taken as no progress"),
        consumers=(GroupSettings(begins="last"), (FailRequests("query_offset", 2), Produce(), Join(), RunGroup()))),
    PlantedBug("CB04", "an offset outside the queue is corrected to its end", 21,
        Parts({corrected_offset: _jump_to_end, ConsumerBroker: _Unfenced, QueueLocks: _UnfencedLocks}),
        origin=_origin("C15", "OFFSET_ILLEGAL sets progress to the offset of the answer"),
        consumers=(_PLAIN, (*_CUT, Produce()))),
    PlantedBug("CB05", "shares on average overlap", 22,
        Parts({averagely: _overlapping}), consumers=(_PLAIN, (Allocate("AVG", 3, 2),))),
    PlantedBug("CB06", "the circle is dealt to members in their order of arrival", 22,
        Parts({averagely_by_circle: _unsorted_circle}), consumers=(_PLAIN, (Allocate("AVG_BY_CIRCLE", 3, 2),))),
    PlantedBug("CB07", "the ring of consistent hashing does not wrap", 16,
        Parts({STRATEGIES["CONSISTENT_HASH"]: _ring_without_wrap}),
        consumers=(GroupSettings(queues=4, strategy="CONSISTENT_HASH"), ())),
    PlantedBug("CB08", "two batches of an orderly queue run at a time", 20,
        Parts({is_free: _never_busy}), consumers=(_ORDERLY, _LOCKED)),
    PlantedBug("CB09", "a member consumes under a lock that has expired", 20,
        Parts({Leases: _ExpiryIgnored}),
        origin=_origin("C6", "The old owner runs on after another holds the lock"),
        consumers=(_ORDERLY, (*_LOCKED, PassTime(35_000), FinishBatch(), TakeBatch()))),
    PlantedBug("CB10", "a queue is given back before its running batch has ended", 20,
        Parts({HandOver: _NotDrained}), consumers=(_ORDERLY, (*_LOCKED, Leave(), RunGroup()))),
    PlantedBug("CB11", "a message that could not be sent back counts as sent back", 21,
        Parts({Returns: _FailedIsStored}),
        consumers=(_PLAIN, (Produce(), Join(), FailRequests("send_back"), FailRequests("send_to_retry"),
                            RunGroup(result="later")))),
    PlantedBug("CB12", "the copy of a message that is sent back is not durable", 19,
        Parts({copy_properties: _in_page_cache}), origin=_origin("C4", "Send-back is put with WAIT=false"),
        consumers=(GroupSettings(syncs=True), (
            Produce(), Join(), RunGroup(3, result="later"), DeliverRequest(), DeliverAnswer(), StepMember(),
            PassTime(11_000), StepMember(), DeliverRequest(number=1), StepBroker("progress"), CrashBroker()))),
    PlantedBug("CB13", "messages that the broker leaves out at the end of a queue never move the progress", 16,
        Parts({PullLoop: _TailIgnored}), consumers=(_PLAIN, (Produce(tag="B"),))),
    PlantedBug("CB14", "messages that the broker leaves out move the progress past cached ones", 21,
        Parts({PullLoop: _TailNoted}),
        consumers=(_PLAIN, (Produce(), HoldResults(), Join(), RunGroup(), Produce(tag="B"), RunGroup(by_ms=6_000)))),
    PlantedBug("CB15", "a message that was sent back stays in the count of cached ones", 19,
        Parts({Returns: _CountKept}),
        consumers=(GroupSettings(threshold=1), (Produce(), Produce(), Join(), RunGroup(result="later")))),
    PlantedBug("CB16", "the highest offset of a queue follows the first message of a pull", 22,
        Parts({ProcessQueue: _FirstIsHighest}),
        consumers=(_PLAIN, (Produce(), Produce(), Join(), RunGroup(), Join(1)))),
    PlantedBug("CB17", "an offset outside the queue is corrected to its begin", 22,
        Parts({corrected_offset: _jump_to_begin, ConsumerBroker: _Unfenced, QueueLocks: _UnfencedLocks}),
        origin=_origin("C3", "Progress beyond a cut log goes back to 0"), consumers=(_PLAIN, _CUT)),
    PlantedBug("CB18", "a message becomes a dead letter one try too late", 23,
        Parts({is_dead: _dead_too_late}),
        consumers=(GroupSettings(retries=0), (Produce(), Join(), RunGroup(result="later")))),
    PlantedBug("CB19", "a message is retried with the delay of the next try", 23,
        Parts({retry_delay_level: _next_level}), consumers=(_PLAIN, (Produce(), Join(), RunGroup(result="later")))),
    PlantedBug("CB20", "the file of local progress is written in place", 13,
        Parts({ConfigFile: _WrittenInPlace}), consumers=(_PLAIN, (CrashLocal(),))),
    PlantedBug("CB21", "progress that arrives out of order lowers the stored one", 24,
        Parts({ConsumerBroker: _LastWriterWins}),
        consumers=(_PLAIN, (Produce(), HoldResults(), Join(), RunGroup(), PassTime(11_000), StepMember(),
                            ParkRequests(),
                            HoldResults(hold=False), RunGroup(by_ms=6_000), HealMember(), RunGroup()))),
    PlantedBug("CB22", "a pull that fails ends the loop of its queue", 19,
        Parts({PullLoop: _PullLost, ProcessQueue: _NeverIdle}),
        origin=_origin("C13", "A lost callback ends the loop of a queue"),
        consumers=(_PLAIN, (Join(), RunGroup(), PassTime(11_000), PassTime(21_000), Produce()))),
    PlantedBug("CB23", "queues are divided by an old list of members", 16,
        Parts({Rebalance: _StaleMembers}),
        consumers=(_PLAIN, (Join(), Join(1), RunGroup(), Leave(), RunGroup(by_ms=1_000)))),
    PlantedBug("CB24", "the retry topic is not subscribed", 19,
        Parts({subscriptions_of: _without_retries}), consumers=(_PLAIN, (Produce(), Join(), RunGroup(result="later")))),
    PlantedBug("CC03", "a member goes on with its offsets after the broker has lost messages", 21,
        Parts({ConsumerBroker: _Unfenced, QueueLocks: _UnfencedLocks}),
        origin=_origin("C3", "Progress beyond a cut log"),
        consumers=(_PLAIN, (*_CUT, Produce(), Produce(), Produce(), RunGroup(by_ms=6_000)))),
    PlantedBug("CC05", "a queue has two owners during a change of members", 20,
        Parts({QueueLocks: _GrantedTwice}), origin=_origin("C5", "Two owners during a membership change"),
        consumers=(_ORDERLY, (*_LOCKED, Join(1), RunGroup()))),
    PlantedBug("CC07", "a restart of the broker forgets its locks", 20,
        Parts({QueueLocks: _ForgetsLocks}), origin=_origin("C7", "Broker restart forgets locks"),
        consumers=(_ORDERLY, (*_LOCKED, CrashBroker(kill=True), RestartBroker(), Join(1), RunGroup(by_ms=500)))),
    PlantedBug("CC10", "a message that is sent back is stored nowhere", 21,
        Parts({SendBacks: _StoredNowhere}), origin=_origin("C10", "retryQueueNums <= 0 answers success"),
        consumers=(_PLAIN, (Produce(), Join(), RunGroup(result="later")))),
    PlantedBug("CC14", "a queue is given back while its listeners run", 22,
        Parts({HandOver: _NotDrained}), origin=_origin("C14", "Dropped queues ignore results of running batches"),
        consumers=(_PLAIN, (*_HELD, Leave(), RunGroup()))),
    PlantedBug("CC16", "a queue that was lost is never claimed again", 19,
        Parts({is_over: _lost_for_ever}), origin=_origin("C16", "A dropped entry stays in the table"),
        consumers=(_PLAIN, (Join(), RunGroup(), CrashBroker(kill=True), RestartBroker(), RunGroup(by_ms=6_000),
                            Produce()))),
    PlantedBug("CC17", "a message is sent back while its listener runs", 23,
        Parts({Concurrent: _OverdueSentBack}), origin=_origin("C17", "cleanExpiredMsg sends running messages back"),
        consumers=(_PLAIN, (*_HELD, PassTime(61_000), RunGroup()))),
    PlantedBug("CC20", "messages whose tag has an equal hash are delivered", 19,
        Parts({is_subscribed: _every_tag}), origin=_origin("C20", "Tag hash collisions"),
        consumers=(_PLAIN, (Produce(tag="C"),))),
    PlantedBug("CC21", "pulls without a message are repeated without a pause", 16,
        Parts({ConsumerBroker: _NeverHeld, PullLoop: _NoPause}), origin=_origin("C21", "Pulls repeat without pause"),
        consumers=(_PLAIN, (Join(), Join(1), RunGroup(8)))),
    PlantedBug("CC24", "a member caches a whole pull more than its threshold", 16,
        Parts({PullLoop: _WholePulls}), origin=_origin("C24", "Thresholds compare with greater than"),
        consumers=(GroupSettings(threshold=1), (Produce(), Produce()))),
    PlantedBug("CC26", "a repeated request to send a message back stores a second copy", 23,
        Parts({SendBacks: _Forgetful}), origin=_origin("C26", "A time-out after the copy was stored"),
        consumers=(_PLAIN, (Join(), Produce(), RunGroup(by_ms=6_000, result="later")))),
    PlantedBug("CC29", "a message that is sent back after a crash is another one at its physical offset", 23,
        Parts({is_same_record: _whatever_is_there}),
        origin=_origin("C29", "A message is sent back by its physical offset"),
        consumers=(_PLAIN, (Produce(), HoldResults(), Join(), RunGroup(), CrashBroker(), RestartBroker(), Produce(),
                            FinishBatch(result="later"), RunGroup()))),
    PlantedBug("CC30", "a member goes on at the end of a queue whose first messages have expired", 21,
        Parts({corrected_offset: _past_the_expired}),
        consumers=(_SMALL_FILES, (Join(), RunGroup(by_ms=500), HangMember(), *[Produce(body_bytes=600)] * 5,
                                  StepBroker(), DeleteFiles(), ResumeMember(), PassTime(30_000)))),
    PlantedBug("CC31", "the first offset of a broadcasting member is saved with its first progress only", 19,
        Parts({LocalOffsets: _FirstNotSaved}),
        consumers=(_PLAIN, (RunDirect(begins="last", end="kill"), Produce()))),
    PlantedBug("CC32", "members get no notice of one that has vanished", 16,
        Parts({MemberTable: _VanishesUnseen}), consumers=(_PLAIN, (UseMembers(29),))),
    PlantedBug("CC33", "a state file has no backup of its last version", 13,
        Parts({ConfigFile: _BackupForgotten}), consumers=(_PLAIN, (UseStateFiles(2),))),
)  # fmt: skip
