"""Restart the numbers of queues that a whole member holds (16, 19, 21 and 22).

A broker of this module has queues of numbered messages, progress and leases. It may restart the numbers of a queue, and
the progress of the group there is gone then. The old lease is void. But a pull past the end of the new numbers, which
was on its way, may still be answered as one outside of the queue. The member may have messages in its cache, running
batches and open requests. A broadcasting member has no lease. It keeps its progress itself, and learns from a pull
outside of the queue that numbers have restarted. No message is put there until it pulls inside of the queue again.

1. A new lease is asked for with a token that was not used before. The first pull with it begins at the stored progress.
2. Progress that comes with a lease covers no message that the listener has not finished, except those before the first
   pull of the lease. So it never passes a message of the new numbers.
3. At the end every message of the newest numbers has been consumed. The progress at the broker is the end of its queue.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

from tornpage.impl.consumer.connection import Call
from tornpage.impl.consumer.messages import Batch, ConcurrentStatus, OrderlyStatus
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue
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
    UnlockQueues,
    UpdateOffset,
    UpdateStatus,
)
from tornpage.impl.consumer.settings import ConsumeFromWhere, ConsumerSettings, MessageModel
from tornpage.impl.message.message import StoredMessage
from tornpage.impl.parts import Parts
from tornpage.properties.consumers.caching import message_at
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.last_disk import LastDisk

__all__ = ["use_restarts"]

_ME, _GROUP, _TOPIC, _BROKER = "c", "g", "T", "b"
_STEPS, _MORE_STEPS, _SETTLE_STEPS, _RESTARTS_MAX = 60, 60, 120, 3
_TIMES_MS = (0, 1, 50, 1_000, 1_000, 5_000, 11_000)


@dataclass
class _Queue:
    """A queue at the broker.

    `number` counts the restarts of its numbers, `end` is the number of its messages.
    """

    name: MessageQueue
    number: int = 0
    end: int = 0
    stored: int | None = None
    lease: Lease | None = None
    leased_at: int = 0
    """The number of restarts at the time of the lease."""
    tokens: set[str] = field(default_factory=set)
    is_unknown: bool = False
    """Whether a broadcasting member has not learned yet that the numbers have restarted."""
    begins_at: int | None = None
    """The offset of the first pull with the lease."""
    finished: set[tuple[int, int]] = field(default_factory=set)
    """Restarts so far and offset of each message that the listener has finished."""

    def message(self, offset: int) -> StoredMessage:
        """Return a message, which names its restarts and its offset in its body."""
        stored = message_at(self.name, offset, end=self.end).stored
        return replace(stored, body=b"%d %d" % (self.number, offset))


class _Broker:
    """The connection to a broker that answers at once, and judges what it is asked."""

    def __init__(self, rng: Random, *, is_broadcasting: bool) -> None:
        self.rng, self.is_broadcasting = rng, is_broadcasting
        names = [MessageQueue(_TOPIC, _BROKER, queue_id) for queue_id in range(rng.randrange(1, 3))]
        self.queues = {name: _Queue(name, end=rng.randrange(6)) for name in names}
        self.fences = rng.random() < 0.5
        self.is_slow = True
        self.late: list[tuple[Call, Answer]] = []
        self.epochs = 0

    # ---- the connection ----------------------------------------------------------------------------------------------

    def call(self, request: Request, *, now_ms: int, timeout_ms: int) -> Call:
        """Answer a request, at once or when `arrive` is called."""
        call, answer = Call(request, deadline_ms=now_ms + timeout_ms), self.answer(request)
        if self.is_slow and self.rng.random() < 0.3:
            self.late.append((call, answer))
        else:
            call.settle(answer)
        return call

    def notify(self, request: Request, *, now_ms: int) -> None:
        """Take a request without an answer."""
        self.answer(request)

    def notices(self) -> Sequence[MembersChanged]:
        """Return no notice."""
        return ()

    def arrive(self) -> None:
        """Let late answers arrive."""
        late, self.late = self.late, []
        for call, answer in late:
            call.settle(answer)

    # ---- answers -----------------------------------------------------------------------------------------------------

    def answer(self, request: Request) -> Answer:
        """Carry out a request."""
        match request:
            case Heartbeat() | Leave():
                return Done()
            case Members():
                return MembersFound((_ME,))
            case Route(topic):
                return Routed(tuple(self.queues) if topic == _TOPIC else ())
            case LockQueues():
                return self.lock(request)
            case UnlockQueues():
                for name, lease in request.leases:
                    if self.queues[name].lease is not None and self.queues[name].lease == lease:
                        self.queues[name].lease = None
                return Done()
            case QueryBounds(name):
                return Bounds(0, self.queues[name].end)
            case QueryOffset(_, name):
                stored = self.queues[name].stored
                status = OffsetStatus.NOT_FOUND if stored is None else OffsetStatus.FOUND
                return OffsetFound(status, -1 if stored is None else stored, is_group_known=False)
            case UpdateOffset():
                return self.update(request)
            case Pull():
                return self.pull(request)
        return Refused(Refusal.BUSY, "not asked here")

    def lock(self, request: LockQueues) -> Answer:
        """Grant claims, and renew the present leases."""
        granted: dict[MessageQueue, Lease] = {}
        for name, lease in request.renewals:
            if self.is_owner(self.queues[name], lease):
                granted[name] = lease
        for claim in request.claims:
            queue = self.queues[claim.queue]
            if queue.lease is None or queue.lease.token != claim.token:
                if claim.token in queue.tokens:
                    _broken(22, "a claim has the token of an earlier one", "a new token", claim.token)
                self.epochs += 1
                queue.tokens.add(claim.token)
                queue.lease, queue.leased_at = Lease(claim.token, self.epochs), queue.number
                queue.begins_at = None
            granted[claim.queue] = queue.lease
        return Locked(granted)

    def is_owner(self, queue: _Queue, lease: Lease | None) -> bool:
        """Return whether a lease is served."""
        if lease is None or lease != queue.lease:
            return False
        return queue.leased_at == queue.number

    def update(self, request: UpdateOffset) -> Answer:
        """Store progress."""
        queue = self.queues[request.queue]
        if request.only_if_absent:
            if queue.stored is None:
                queue.stored = min(request.offset, queue.end)
            return OffsetUpdated(UpdateStatus.STORED, queue.stored)
        if not self.is_owner(queue, request.lease):
            return Refused(Refusal.FENCED, "another owner")
        self.judge(queue, "an update", request.offset)
        queue.stored = max(request.offset, queue.stored or 0)
        return OffsetUpdated(UpdateStatus.STORED, request.offset)

    def pull(self, request: Pull) -> Answer:
        """Return messages."""
        queue = self.queues[request.queue]
        is_served = self.is_broadcasting or (not self.fences and request.lease == queue.lease)
        if is_served and request.offset > queue.end:
            return Pulled(PullStatus.OFFSET_ILLEGAL, queue.end, 0, queue.end, ())
        queue.is_unknown = False
        if not self.is_broadcasting:
            if not self.is_owner(queue, request.lease):
                return Refused(Refusal.FENCED, "another owner")
            self.judge_pull(queue, request)
        end = min(request.offset + request.count, queue.end)
        messages = tuple(queue.message(offset) for offset in range(request.offset, end))
        status = PullStatus.FOUND if messages else PullStatus.NO_NEW_MSG
        return Pulled(status, end, 0, queue.end, messages)

    def judge_pull(self, queue: _Queue, request: Pull) -> None:
        """Judge begin and progress of a pull by rules 1 and 2, and store the progress."""
        if queue.begins_at is None:
            queue.begins_at = request.offset
            if request.offset != queue.stored:
                _broken(21, "the first pull of a lease is not at the progress", queue.stored, request.offset)
        if request.commit_offset is not None:
            self.judge(queue, "a pull", request.commit_offset)
            queue.stored = max(request.commit_offset, queue.stored or 0)

    def judge(self, queue: _Queue, what: str, offset: int) -> None:
        """Judge progress of the present lease by rule 2."""
        begins_at = (queue.stored or 0) if queue.begins_at is None else queue.begins_at
        left = [each for each in range(begins_at, offset) if (queue.number, each) not in queue.finished]
        if left or offset > queue.end:
            _broken(21, f"{what} has progress past messages that are not finished", str(left[:3]), str(offset))

    # ---- what happens at the broker ----------------------------------------------------------------------------------

    def restart(self, queue: _Queue) -> None:
        """Restart the numbers of a queue, with fewer messages or more."""
        queue.number += 1
        queue.end, queue.stored = 0 if self.is_broadcasting else self.rng.randrange(4), None
        queue.is_unknown = self.is_broadcasting

    def put(self, queue: _Queue, count: int) -> None:
        """Put messages into a queue."""
        if not queue.is_unknown:
            queue.end += count


def use_restarts(seed: int, parts: Parts) -> None:
    """Run a member over queues whose numbers restart. Raises GuaranteeBroken."""
    rng = Random(seed)
    is_broadcasting = rng.random() < 0.35
    broker = _Broker(rng, is_broadcasting=is_broadcasting)
    connections: dict[str, Any] = {_BROKER: broker}
    orderly = rng.random() < 0.4 and not is_broadcasting
    settings = ConsumerSettings(
        consumer_group=_GROUP,
        client_id=_ME,
        orderly=orderly,
        message_model=MessageModel.BROADCASTING if is_broadcasting else MessageModel.CLUSTERING,
        pull_batch_size=rng.choice((1, 2, 32)),
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_message_batch_max_size=rng.choice((1, 2)),
    )
    files = LastDisk(Image(frozenset(("/", "/local")), {}), disk="posix-strict")
    consumer = parts.of(PushConsumer)(
        settings, connections, files=files, directory="/local", incarnation="p", parts=parts
    )
    consumer.subscribe(_TOPIC)
    now_ms, running, restarts = 0, list[Batch](), 0
    for step in range(_STEPS + _SETTLE_STEPS):
        settles = step >= _STEPS
        broker.is_slow = not settles
        if settles or rng.random() < 0.6:
            broker.arrive()
        observed("step", partial(consumer.step, now_ms))
        if settles or rng.random() < 0.7:
            batch = observed("take", partial(consumer.take, now_ms))
            running += [] if batch is None else [batch]
        if running and (settles or rng.random() < 0.5):
            batch = running.pop(rng.randrange(len(running)))
            for message in batch.messages:
                number, offset = map(int, bytes(message.body).split())
                broker.queues[batch.queue].finished.add((number, offset))
            status: Any = OrderlyStatus.SUCCESS if orderly else ConcurrentStatus.CONSUME_SUCCESS
            observed("finish", partial(consumer.finish, batch, status, now_ms))
        queue = rng.choice(tuple(broker.queues.values()))
        if not settles and rng.random() < 0.2:
            broker.put(queue, rng.randrange(1, 4))
        elif not settles and restarts < _RESTARTS_MAX and rng.random() < 0.08:
            restarts += 1
            broker.restart(queue)
        if step == _STEPS + _MORE_STEPS:
            for each in broker.queues.values():
                broker.put(each, 2)
        now_ms += 1_000 if settles else rng.choice(_TIMES_MS)
    for queue in broker.queues.values():
        if queue.is_unknown:
            _broken(16, "a member does not begin again in a queue whose numbers have restarted", "a pull", "none")
        left = [offset for offset in range(queue.end) if (queue.number, offset) not in queue.finished]
        if left:
            _broken(19, f"messages of a queue are not consumed after {restarts} restarts", "all", f"without {left}")
        if not is_broadcasting and queue.stored != queue.end:
            _broken(16, f"the progress of a queue does not reach its end after {restarts} restarts", queue.end,
                    queue.stored)  # fmt: skip


def _broken(contract: int, what: str, expected: object, found: object) -> None:
    raise GuaranteeBroken(contract, what, str(expected), str(found))
