"""The broker's part of consumption, over one store.

It answers requests about routes, members, leases, pulls, progress, and messages sent back. Progress is that of the
store (impl/groups/consumer_offsets.py). It never decreases by a request, and only the owner of a queue may store it.
Members, leases and keys of sent-back messages are in memory.

An owner pulls only after its group has progress in the queue. If that progress is gone, the numbers of the queue have
restarted: the store has then forgotten it. The lease is void from then on, because the offsets that its owner still
sends are those of old messages.

Source: `PullMessageProcessor`, `ConsumerManageProcessor`, `AdminBrokerProcessor.lockBatchMQ`, `ClientManageProcessor`.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from tornpage.impl.consumer.member_table import MemberTable
from tornpage.impl.consumer.queue_locks import Process, QueueLocks
from tornpage.impl.consumer.queues import RETRY_PREFIX, MessageQueue
from tornpage.impl.consumer.requests import (
    Answer,
    Bounds,
    Done,
    Heartbeat,
    Lease,
    Leave,
    Locked,
    LockQueues,
    Members,
    MembersChanged,
    MembersFound,
    OffsetFound,
    OffsetStatus,
    OffsetUpdated,
    Pull,
    Pulled,
    PullStatus,
    QueryBounds,
    QueryOffset,
    Refusal,
    Refused,
    Request,
    Route,
    Routed,
    SearchOffset,
    SendBack,
    SendToRetry,
    Subscription,
    UnlockQueues,
    UpdateOffset,
    UpdateStatus,
)
from tornpage.impl.consumer.send_back import SendBacks
from tornpage.impl.consumer.settings import BrokerSettings
from tornpage.impl.errors import BadFilter, BadProgress, NotReadable, StoreClosed, StoreError, TooManyHeldPulls
from tornpage.impl.groups.broker_configs import SubscriptionGroupConfig
from tornpage.impl.guards import make_guard
from tornpage.impl.message.message import GetStatus
from tornpage.impl.parts import Parts
from tornpage.impl.read.filters import PropertyFilter
from tornpage.impl.read.message_filter import MessageFilter, TagFilter
from tornpage.impl.read.queue_pull import GetMessageResult
from tornpage.impl.store import MessageStore

__all__ = ["ConsumerBroker"]

_LOG = logging.getLogger("tornpage.consumer")

_SCAN_MS = 10_000
_READ_PERMISSION = 4
_FILTERS_MAX = 256
_STATUS = {
    GetStatus.FOUND: PullStatus.FOUND,
    GetStatus.MESSAGE_WAS_REMOVING: PullStatus.NO_MATCHED_MSG,
    GetStatus.NO_MATCHED_MESSAGE: PullStatus.NO_MATCHED_MSG,
    GetStatus.OFFSET_FOUND_NULL: PullStatus.NO_NEW_MSG,
    GetStatus.OFFSET_OVERFLOW_ONE: PullStatus.NO_NEW_MSG,
    GetStatus.OFFSET_OVERFLOW_BADLY: PullStatus.OFFSET_ILLEGAL,
    GetStatus.OFFSET_TOO_SMALL: PullStatus.OFFSET_ILLEGAL,
}
"""The statuses that do not depend on the offset."""


class ConsumerBroker:
    """Answers the requests of consumers. Usable from several threads.

    `now_ms` is the time of its start, in milliseconds of the clock that the clients use too. The store belongs to the
    caller, which closes it after the last request.
    """

    def __init__(
        self,
        store: MessageStore,
        settings: BrokerSettings | None = None,
        *,
        now_ms: int,
        parts: Parts | None = None,
    ) -> None:
        parts = parts or Parts()
        self.store = store
        self.settings = settings = settings or BrokerSettings()
        self._guard = parts.of(make_guard)()
        self._send_back_guard = parts.of(make_guard)()
        self._members = parts.of(MemberTable)(timeout_ms=settings.channel_expired_timeout)
        live_ms = settings.rebalance_lock_max_live_time
        self._locks = parts.of(QueueLocks)(live_ms=live_ms, waits_until_ms=now_ms + live_ms * settings.owners_survive)
        self._send_backs = parts.of(SendBacks)(store, keys_max=settings.repeated_keys_max, parts=parts)
        self._filters: dict[Subscription, MessageFilter] = {}
        self._notices: dict[str, set[str]] = {}
        self._wakes: dict[str, Callable[[], None]] = {}

    # ---- requests ------------------------------------------------------------------------------------------------

    def handle(self, request: Request, client_id: str, now_ms: int) -> Answer | Future[Answer]:
        """Carry out a request of a client and return its answer, a future for a held pull.

        Never raises for a request; `Refused` has the reason if it was not carried out.
        """
        try:
            return self._handled(request, client_id, now_ms)
        except (StoreError, OSError) as error:
            return _refused(error)

    def _handled(self, request: Request, client_id: str, now_ms: int) -> Answer | Future[Answer]:
        match request:
            case Pull():
                return self._pull(request)
            case UpdateOffset():
                return self._update(request)
            case QueryOffset():
                return self._query(request)
            case Heartbeat() | Leave() | LockQueues() | UnlockQueues() | Members():
                return self._about_members(request, client_id, now_ms)
            case SendBack() | SendToRetry():
                return self._send_back(request)
            case Route():
                return Routed(self._route(request.topic))
            case QueryBounds(queue):
                return Bounds(*self._bounds(queue))
            case SearchOffset(queue, timestamp_ms):
                found = self.store.offset_in_queue_by_time(queue.topic, queue.queue_id, timestamp_ms)
                return OffsetFound(OffsetStatus.FOUND, found)

    def _group(self, name: str) -> SubscriptionGroupConfig | Refused:
        """Return the configuration of a group, or why it is not served."""
        config = self.store.subscription_groups().get(name)
        if config is None:
            if not self.settings.auto_create_subscription_group:
                return Refused(Refusal.UNKNOWN_GROUP, f"group {name} has no configuration")
            return SubscriptionGroupConfig(name)
        if not config.consume_enable:
            return Refused(Refusal.NO_PERMISSION, f"group {name} may not consume")
        return config

    # ---- routes --------------------------------------------------------------------------------------------------

    def _route(self, topic: str) -> tuple[MessageQueue, ...]:
        if topic.startswith(RETRY_PREFIX):
            group = self._group(topic.removeprefix(RETRY_PREFIX))
            count = 0 if isinstance(group, Refused) else min(1, group.retry_queue_nums)
            return self._named(topic, range(count))
        config = self.store.topic_configs().get(topic)
        if config is not None:
            return self._named(topic, range(config.read_queue_nums if config.perm & _READ_PERMISSION else 0))
        stored = {queue_id for name, queue_id in self.store.queues() if name == topic}
        return self._named(topic, stored | set(range(self.settings.default_queue_nums)))

    def _named(self, topic: str, queue_ids: range | set[int]) -> tuple[MessageQueue, ...]:
        return tuple(MessageQueue(topic, self.settings.broker_name, queue_id) for queue_id in sorted(queue_ids))

    def _bounds(self, queue: MessageQueue) -> tuple[int, int]:
        topic, queue_id = queue.topic, queue.queue_id
        return self.store.min_offset_in_queue(topic, queue_id), self.store.max_offset_in_queue(topic, queue_id)

    # ---- members and leases --------------------------------------------------------------------------------------

    def _about_members(
        self, request: Heartbeat | Leave | LockQueues | UnlockQueues | Members, client_id: str, now_ms: int
    ) -> Answer:
        group = self._group(request.group)
        if isinstance(group, Refused) and not isinstance(request, Leave | UnlockQueues):
            return group
        with self._guard:
            self._members.expire(now_ms)
            wakes = self._announce(None)
            match request:
                case Heartbeat():
                    answer = self._members.heartbeat(request, client_id, now_ms)
                case Leave():
                    self._members.leave(request, client_id)
                    answer = Done()
                case Members(name, topic):
                    answer = MembersFound(self._members.of(name, topic))
                case LockQueues():
                    answer = self._lock(request, client_id, now_ms)
                case UnlockQueues(name, leases, incarnation):
                    for queue, lease in leases:
                        if self._locks.unlock(name, queue, lease, (client_id, incarnation)):
                            self._members.changed.add(name)
                    answer = Done()
            wakes += self._announce(client_id)
        for wake in wakes:
            wake()
        return answer

    def _lock(self, request: LockQueues, client_id: str, now_ms: int) -> Locked:
        leases: dict[MessageQueue, Lease] = {}
        group = request.group
        for queue, lease in request.renewals:
            if self._locks.renew(group, queue, lease, now_ms):
                leases[queue] = lease

        def is_gone(process: Process) -> bool:
            return self._members.incarnation_of(group, process[0]) != process[1]

        is_second = self._members.incarnation_of(group, client_id) not in (None, request.incarnation)
        for claim in () if is_second else request.claims:
            granted = self._locks.claim(
                group,
                claim,
                (client_id, request.incarnation),
                now_ms,
                is_gone=None if request.waits_for_owner else is_gone,
            )
            if granted is not None:
                leases[claim.queue] = granted
        return Locked(leases)

    def _announce(self, client_id: str | None) -> list[Callable[[], None]]:
        """Note changed groups for all their members but one; return the wake-ups.

        A client that is no member of any group any more loses its notices.
        """
        wakes = []
        if self._members.changed:
            self._notices = {each: groups for each, groups in self._notices.items() if self._members.is_member(each)}
        for group in sorted(self._members.changed):
            for member in self._members.of(group):
                if member != client_id:
                    self._notices.setdefault(member, set()).add(group)
                    if member in self._wakes:
                        wakes.append(self._wakes[member])
        self._members.changed.clear()
        return wakes

    def step(self, now_ms: int) -> int:
        """Remove clients whose heartbeat is too old; return when the next step is due."""
        with self._guard:
            self._members.expire(now_ms)
            wakes = self._announce(None)
        for wake in wakes:
            wake()
        return now_ms + _SCAN_MS

    def notices(self, client_id: str) -> Sequence[MembersChanged]:
        """Return the notices for a client since the last call."""
        with self._guard:
            return [MembersChanged(group) for group in sorted(self._notices.pop(client_id, ()))]

    def watch(self, client_id: str, wake: Callable[[], None]) -> None:
        """Have `wake` called after a notice for a client."""
        with self._guard:
            self._wakes[client_id] = wake

    def disconnect(self, client_id: str) -> None:
        """Remove a client from its groups, as its channel has closed.

        Its leases live on until they expire.
        """
        with self._guard:
            self._wakes.pop(client_id, None)
            self._notices.pop(client_id, None)
            self._members.disconnect(client_id)
            wakes = self._announce(client_id)
        for wake in wakes:
            wake()

    # ---- progress ------------------------------------------------------------------------------------------------

    def _query(self, request: QueryOffset) -> Answer:
        group = self._group(request.group)
        if isinstance(group, Refused):
            return group
        topic, queue_id = request.queue.topic, request.queue.queue_id
        stored = self.store.consumer_offsets(topic).get(request.group, {})
        is_known = any(other != queue_id for other in stored)
        if queue_id in stored:
            return OffsetFound(OffsetStatus.FOUND, stored[queue_id], is_known)
        young = self.store.query_offset(request.group, topic, queue_id)
        if young is None:
            return OffsetFound(OffsetStatus.NOT_FOUND, -1, is_known)
        return OffsetFound(OffsetStatus.NOT_STORED, young, is_known)

    def _update(self, request: UpdateOffset) -> Answer:
        group = self._group(request.group)
        if isinstance(group, Refused):
            return group
        with self._guard:
            return self._commit(request, request.offset, only_if_absent=request.only_if_absent)

    def _commit(
        self, request: UpdateOffset | Pull, offset: int, *, only_if_absent: bool = False
    ) -> Refused | OffsetUpdated:
        """Store the progress of a request with a valid lease, or without one."""
        while True:
            stored = self._stored(request.group, request.queue)
            fenced = self._fenced(request, stored)
            if fenced is not None:
                return fenced
            updated = self._raise(request, stored, offset, only_if_absent=only_if_absent)
            if updated is not None:
                return updated

    def _fenced(self, request: UpdateOffset | Pull, stored: int | None) -> Refused | None:
        """Return the refusal of a request whose lease is not valid.

        `stored` is the progress of its group, None without one.
        """
        group, queue, lease = request.group, request.queue, request.lease
        if lease is None:
            return None
        if not self._locks.is_owner(group, queue, lease):
            return Refused(Refusal.FENCED, f"{queue.java_text()} has another owner, or none since a restart")
        if stored is None:
            self._locks.void(group, queue)
            return Refused(Refusal.FENCED, f"the numbers of {queue.java_text()} have restarted")
        return None

    def _stored(self, group: str, queue: MessageQueue) -> int | None:
        return self.store.consumer_offsets(queue.topic).get(group, {}).get(queue.queue_id)

    def _raise(
        self, request: UpdateOffset | Pull, stored: int | None, offset: int, *, only_if_absent: bool
    ) -> OffsetUpdated | None:
        """Store progress in place of `stored`, unless it is there already.

        Return None if other progress is stored by now. If the numbers of the queue have restarted, the offset would
        lead past new messages. A first offset is durable. Raises BadProgress, and OSError if a first offset cannot be
        saved.
        """
        group, queue = request.group, request.queue
        if stored is None:
            self._locks.void(group, queue, if_pulled=True)
            offset = self.store.commit_offset(group, queue.topic, queue.queue_id, offset)
            self.store.save_offsets()  # a lost first offset would be decided again, past messages that came meanwhile
            return OffsetUpdated(UpdateStatus.STORED, offset)
        if only_if_absent or offset <= stored:
            return OffsetUpdated(UpdateStatus.NOT_ABOVE, stored)
        raised = self.store.raise_offset(stored, group, queue.topic, queue.queue_id, offset)
        return None if raised is None else OffsetUpdated(UpdateStatus.STORED, raised)

    # ---- pulls ---------------------------------------------------------------------------------------------------

    def _pull(self, request: Pull) -> Answer | Future[Answer]:
        group = self._group(request.group)
        if isinstance(group, Refused):
            return group
        with self._guard:
            if request.lease is not None:
                fenced = self._fenced(request, self._stored(request.group, request.queue))
                if fenced is not None:
                    return fenced
                self._locks.note_pull(request.group, request.queue)
            if request.commit_offset is not None:
                committed = self._commit(request, request.commit_offset)
                if isinstance(committed, Refused):
                    return committed
        pending = self.store.pull_async(
            request.group,
            request.queue.topic,
            queue_id=request.queue.queue_id,
            offset=request.offset,
            hold_ms=request.suspend_ms if self.settings.long_polling else 0,
            max_msg_nums=request.count,
            message_filter=self._filter_of(request.subscription),
        )
        if pending.done():
            return _pulled(pending, request.offset)
        return _Held(pending, request.offset)

    def _filter_of(self, subscription: Subscription) -> MessageFilter:
        """Return the filter of a subscription. Raises BadFilter."""
        found = self._filters.get(subscription)
        if found is None:
            if subscription.kind not in ("TAG", "SQL92"):
                raise BadFilter(subscription.expression, f"its kind is {subscription.kind!r}; use TAG or SQL92")
            is_tag = subscription.kind == "TAG"
            found = TagFilter(subscription.expression) if is_tag else PropertyFilter(subscription.expression)
            if len(self._filters) >= _FILTERS_MAX:
                self._filters.clear()
            self._filters[subscription] = found
        return found

    # ---- messages that were not consumed -------------------------------------------------------------------------

    def _send_back(self, request: SendBack | SendToRetry) -> Answer:
        group = self._group(request.group)
        if isinstance(group, Refused):
            return group
        with self._send_back_guard:
            if isinstance(request, SendBack):
                return self._send_backs.send_back(request, group)
            return self._send_backs.send_to_retry(request, group)


class _Held(Future[Answer]):
    """The answer of a held pull. Its cancellation ends the pull."""

    def __init__(self, pending: Future[GetMessageResult], offset: int) -> None:
        super().__init__()
        self._pending = pending
        self._offset = offset
        pending.add_done_callback(self._arrived)

    def _arrived(self, pending: Future[GetMessageResult]) -> None:
        if pending.cancelled():
            return
        if self.set_running_or_notify_cancel():
            self.set_result(_pulled(pending, self._offset))
        elif pending.exception() is None:  # cancelled at the moment of the answer
            pending.result().release()

    def cancel(self) -> bool:
        """End the pull."""
        is_cancelled = super().cancel()
        self._pending.cancel()
        return is_cancelled


def _pulled(pending: Future[GetMessageResult], offset: int) -> Answer:
    """Return the answer to a pull, with copies of its messages."""
    try:
        with pending.result() as found:
            messages = tuple(buffer.message() for buffer in found.messages)
    except (StoreError, OSError) as error:
        return _refused(error)
    return Pulled(_status_of(found, offset), found.next_begin_offset, found.min_offset, found.max_offset, messages)


def _status_of(found: GetMessageResult, offset: int) -> PullStatus:
    """Return the status that the client gets. Source: `PullMessageProcessor`."""
    usual = _STATUS.get(found.status)
    if usual is not None:
        return usual
    return PullStatus.OFFSET_ILLEGAL if offset else PullStatus.NO_NEW_MSG


def _refused(error: StoreError | OSError) -> Refused:
    reasons: tuple[tuple[type[Exception], Refusal], ...] = (
        (StoreClosed, Refusal.SHUTTING_DOWN),
        (NotReadable, Refusal.NO_PERMISSION),
        (TooManyHeldPulls, Refusal.BUSY),
    )
    if not isinstance(error, StoreClosed | NotReadable | TooManyHeldPulls | BadFilter | BadProgress):
        _LOG.warning("request_failed error=%s", error)
    return Refused(
        next((reason for kind, reason in reasons if isinstance(error, kind)), Refusal.SYSTEM_ERROR), str(error)
    )
