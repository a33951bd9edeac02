"""Use the broker's part of consumption alone (contracts 8, 16, 20 to 22).

Each whole answer is compared. Requests are drawn from a seed: heartbeats, claims, renewals, unlocks, progress, pulls,
routes and searches, of two clients of one group, with leases that are present, old or none. The models of
owners and of members say which process owns a queue, and rules 1 to 4 are stated here:

1. Progress with a lease that is not that of the present owner is refused. If the group has no progress, the numbers of
   the queue have restarted, and the lease is void from then on.
2. Progress never decreases by a request, and does not pass the end of its queue. A first offset stays. A queue whose
   numbers have restarted loses its owner, if that one has pulled. So does one whose progress was removed.
3. A second process with the id of a member gets no queue. A claim that does not wait for the owner gets a queue whose
   owner is no member any more.
4. A group without a configuration is unknown if the broker creates none. One that may not consume is refused. Both may
   leave and unlock.
"""

from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import (
    Answer,
    Bounds,
    Claim,
    Done,
    Heartbeat,
    Lease,
    Leave,
    Locked,
    LockQueues,
    Members,
    MembersFound,
    OffsetFound,
    OffsetUpdated,
    Pull,
    Pulled,
    QueryBounds,
    QueryOffset,
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
)
from tornpage.impl.consumer.settings import BrokerSettings
from tornpage.impl.groups.broker_configs import SubscriptionGroupConfig, TopicConfig
from tornpage.impl.parts import Parts
from tornpage.model.consumers.membership import Member, Membership
from tornpage.model.consumers.owners import Owners
from tornpage.properties.consumers.direct import DIRECT_GROUPS
from tornpage.properties.consumers.host import BROKER, GROUP, TOPIC, BrokerHost
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["SERVED_GROUPS", "use_broker"]

_STEPS = 30
_LIVE_MS, _EXPIRES_MS = 60_000, 120_000
SERVED_GROUPS = tuple(f"W{number}" for number in range(8))
"""The groups of the requests: one in each run, so that most begin without progress."""
_CLOSED, _UNKNOWN, _TOPIC = "W-closed", "W-unknown", "W-topic"
_CLIENTS, _PROCESSES = ("a", "b"), ("1", "2")
_VERBS = ("beat", "lock", "lock", "lock", "unlock", "update", "update", "update", "pull", "pull", "query",
          "leave", "time", "ask", "end", "closed", "vanish")  # fmt: skip
_TIMES_MS = (1, 30_000, _LIVE_MS, _LIVE_MS + 1, _EXPIRES_MS + 1)
_ALL = Subscription(TOPIC)
_PULLED = {
    "FOUND": "FOUND", "MESSAGE_WAS_REMOVING": "NO_MATCHED_MSG", "NO_MATCHED_MESSAGE": "NO_MATCHED_MSG",
    "OFFSET_FOUND_NULL": "NO_NEW_MSG", "OFFSET_OVERFLOW_ONE": "NO_NEW_MSG", "OFFSET_OVERFLOW_BADLY": "OFFSET_ILLEGAL",
    "OFFSET_TOO_SMALL": "OFFSET_ILLEGAL",
}  # fmt: skip


def use_broker(seed: int, host: BrokerHost, parts: Parts) -> None:
    """Send drawn requests to a new broker over the store of a host, and judge each answer."""
    run = _Run(seed, host, parts)
    for _ in range(_STEPS):
        run.step(run.rng.choice(_VERBS))


class _Run:
    """One broker with its models.

    `granted` has the leases so far: queue, process, lease, number in the model.
    """

    def __init__(self, seed: int, host: BrokerHost, parts: Parts) -> None:
        self.rng = Random(seed)
        self.host = host
        self.group = SERVED_GROUPS[seed % len(SERVED_GROUPS)]
        self.now_ms = 1_000_000
        self.creates = self.rng.random() < 0.5
        self.survives = self.rng.random() < 0.5
        self.queues, self.retries = self.rng.randrange(3), self.rng.choice((1, 1, 0, 3))
        settings = BrokerSettings(
            broker_name=BROKER, rebalance_lock_max_live_time=_LIVE_MS, channel_expired_timeout=_EXPIRES_MS,
            auto_create_subscription_group=self.creates, owners_survive=self.survives, default_queue_nums=self.queues,
        )  # fmt: skip
        served = SubscriptionGroupConfig(self.group, retry_queue_nums=self.retries)
        for config in (served, SubscriptionGroupConfig(_CLOSED, consume_enable=False)):
            if host.store.subscription_groups().get(config.group_name) != config:
                observed("put_subscription_group", partial(host.store.put_subscription_group, config))
        self.broker = parts.of(ConsumerBroker)(host.store, settings, now_ms=self.now_ms, parts=parts)
        self.owners = Owners(_LIVE_MS, self.now_ms + (_LIVE_MS if self.survives else 0))
        self.members = Membership(_EXPIRES_MS)
        self.granted: list[tuple[int, str, Lease, int]] = []
        self.claims = 0

    # ---- draws -------------------------------------------------------------------------------------------------------

    def _lease(self, queue: int) -> tuple[Lease | None, int]:
        """Draw a lease of a queue, with its number in the model.

        It was granted, is another one, or is none.
        """
        known = [(lease, number) for at, _, lease, number in self.granted if at == queue]
        draw = self.rng.random()
        if draw < 0.2 or not known:
            return (None, 0) if draw < 0.15 else (Lease("none", 999), -1)
        return known[-1] if draw < 0.8 else self.rng.choice(known)

    def _bounds(self, queue: int) -> tuple[int, int]:
        store = self.host.store
        return store.min_offset_in_queue(TOPIC, queue), store.max_offset_in_queue(TOPIC, queue)

    def _progress(self, queue: int) -> int | None:
        return self.host.store.consumer_offsets(TOPIC).get(self.group, {}).get(queue)

    def _ask(self, request: Request, client: str = "a") -> Answer:
        answer: Any = observed(type(request).__name__, partial(self.broker.handle, request, client, self.now_ms))
        if not isinstance(answer, Answer):
            raise GuaranteeBroken(8, f"{type(request).__name__} is not answered at once", "an answer", repr(answer))
        return answer

    # ---- requests ----------------------------------------------------------------------------------------------------

    def step(self, verb: str) -> None:
        """Send one request."""
        rng, queue = self.rng, self.rng.randrange(self.host.queues)
        named, client = MessageQueue(TOPIC, BROKER, queue), self.rng.choice(_CLIENTS)
        process = f"{client}{rng.choice(_PROCESSES[:1] * 5 + _PROCESSES[1:])}"
        if verb in ("beat", "lock", "unlock", "leave"):
            self.members = self.members.expired(self.now_ms)
        match verb:
            case "beat":
                self.members, refusal = self.members.heartbeat(
                    self.group, client, Member(process, {TOPIC: "*"}, is_broadcasting=False, at_ms=self.now_ms)
                )
                answer = self._ask(Heartbeat(self.group, process, (_ALL,)), client)
                _is("the answer to a heartbeat", refusal or Done(), _reason(answer))
            case "leave":
                self.members = self.members.leave(self.group, client, process)
                _is("the answer to a leave", Done(), self._ask(Leave(self.group, process), client))
            case "end":
                self.members = self.members.disconnect(client)
                observed("disconnect", partial(self.broker.disconnect, client))
            case "time":
                self.now_ms += rng.choice(_TIMES_MS)
            case "lock":
                self._lock(client, process)
            case "unlock":
                self._unlock(client, process, queue)
            case "update":
                self._update(named, client, *self._lease(queue))
            case "pull":
                self._pull(named, client)
            case "query":
                self._query(named)
            case "ask":
                self._ask_about(named)
            case "closed":
                self._refused_groups(named)
            case "vanish":
                self._vanish()
                self._update(named, client, None, 0)
        _is("the stored progress", self._progress(queue), self.host.store.query_offset(self.group, TOPIC, queue)
            if self._progress(queue) is not None else None)  # fmt: skip

    def _lock(self, client: str, process: str) -> None:
        rng, waits = self.rng, self.rng.random() < 0.5
        claims, renewals = [], []
        expected: dict[int, int] = {}
        for queue in rng.sample(range(self.host.queues), rng.randrange(self.host.queues + 1)):
            lease, number = self._lease(queue)
            if lease is not None and rng.random() < 0.4:
                renewals.append((MessageQueue(TOPIC, BROKER, queue), lease))
                self.owners, is_renewed = self.owners.renew(queue, lease.token, number, self.now_ms)
                if is_renewed:
                    expected[queue] = number
        member = self.members.members.get((self.group, client))
        living = frozenset(f"{at}/{each.process}" for (_, at), each in self.members.members.items())
        for queue in rng.sample(range(self.host.queues), rng.randrange(self.host.queues + 1)):
            self.claims += 1
            token = f"{self.claims:04d}" if rng.random() < 0.8 else f"{max(1, self.claims - 1):04d}"
            claims.append(Claim(MessageQueue(TOPIC, BROKER, queue), token))
            if member is not None and member.process != process:
                continue
            self.owners, number_of = self.owners.claim(
                queue, f"{client}/{process}", token, self.now_ms, waits=waits, members=living
            )
            if number_of is not None:
                expected[queue] = number_of
        request = LockQueues(self.group, tuple(claims), tuple(renewals), waits, process)
        answer = self._ask(request, client)
        if not isinstance(answer, Locked):
            raise GuaranteeBroken(22, "claims are not answered with leases", "Locked", str(answer))
        found = {}
        for at, lease in answer.leases.items():
            found[at.queue_id] = self._number_of(at.queue_id, lease, expected)
            if (at.queue_id, found[at.queue_id]) not in {(queue, each) for queue, _, _, each in self.granted}:
                self.granted.append((at.queue_id, f"{client}/{process}", lease, found[at.queue_id]))
        _is("the granted queues", expected, found)

    def _number_of(self, queue: int, lease: Lease, expected: dict[int, int]) -> int:
        """Return the number of a lease in the model; that of a new one is the expected one."""
        known = {each: number for at, _, each, number in self.granted if at == queue}
        return known.get(lease, expected.get(queue, -1))

    def _unlock(self, client: str, process: str, queue: int) -> None:
        lease, number = self._lease(queue)
        if lease is None:
            return
        if self.rng.random() < 0.3:
            lease, number = Lease(lease.token, 0), 0
        before, was = self.members.notices, self.owners
        self.owners, is_unlocked = self.owners.unlock(queue, f"{client}/{process}", lease.token, number)
        request = UnlockQueues(self.group, ((MessageQueue(TOPIC, BROKER, queue), lease),), process)
        _is("the answer to an unlock", Done(), self._ask(request, client))
        if is_unlocked and was != self.owners:
            others = {(at, name) for at, name in self.members.members if name != client}
            self.members = replace(self.members, notices=frozenset(before | others))
        for name in _CLIENTS:
            self.members, expected = self.members.taken(name)
            found = tuple(each.group for each in observed("notices", partial(self.broker.notices, name)))
            _is("the notices after an unlock", expected, found)

    def _fenced(self, queue: int, lease: Lease | None, number: int) -> str | None:
        """Return the refusal of a request with a lease, None if it is valid (rule 1)."""
        if lease is None:
            return None
        if not self.owners.owns(queue, lease.token, number):
            return "FENCED"
        if self._progress(queue) is None:
            self.owners = self.owners.void(queue, if_pulled=False)
            return "FENCED"
        return None

    def _raised(self, queue: int, offset: int, *, only_if_absent: bool = False) -> tuple[str, int]:
        """Return the answer to progress (rule 2)."""
        before = self._progress(queue)
        if before is None:
            self.owners = self.owners.void(queue, if_pulled=True)
        elif only_if_absent or offset <= before:
            return "NOT_ABOVE", before
        return "STORED", min(offset, self._bounds(queue)[1])

    def _pull(self, named: MessageQueue, client: str) -> None:
        rng, queue = self.rng, named.queue_id
        lease, number = self._lease(queue)
        offset, count = rng.randrange(5), rng.choice((1, 2, 32))
        commit = rng.choice((None, rng.randrange(8)))
        expected: Any = self._fenced(queue, lease, number)
        progress = self._progress(queue)
        if expected is None:
            if lease is not None:
                self.owners = self.owners.pulled(queue)
            if commit is not None:
                progress = self._raised(queue, commit)[1]
            with self.host.store.get_message(TOPIC, queue, offset, max_msg_nums=count) as found:
                messages = tuple(buffer.message() for buffer in found.messages)
                status = _PULLED.get(found.status.name, "OFFSET_ILLEGAL" if offset else "NO_NEW_MSG")
                expected = status, found.next_begin_offset, found.min_offset, found.max_offset, messages
        answer = self._ask(Pull(self.group, named, offset, _ALL, count, 0, commit, lease), client)
        if isinstance(answer, Pulled):
            _is("a pull", expected, (
                answer.status.name, answer.next_offset, answer.min_offset, answer.max_offset, answer.messages
            ))  # fmt: skip
        else:
            _is("the refusal of a pull", expected, _reason(answer))
        _is("the progress after a pull", progress, self._progress(queue))

    def _update(self, named: MessageQueue, client: str, lease: Lease | None, number: int) -> None:
        """Send progress.

        Only a first offset is on disk before its answer. The store saves the others later.
        """
        rng, queue, was = self.rng, named.queue_id, self._progress(named.queue_id)
        offset, only_if_absent, written = rng.randrange(8), rng.random() < 0.3, len(self.host.files.events)
        expected = self._fenced(queue, lease, number) or self._raised(queue, offset, only_if_absent=only_if_absent)
        answer = self._ask(UpdateOffset(self.group, named, offset, lease, only_if_absent), client)
        found = (answer.status.name, answer.offset) if isinstance(answer, OffsetUpdated) else _reason(answer)
        _is("the answer to progress", expected, found)
        if was is None and isinstance(answer, OffsetUpdated):
            saved = self.host.saved_progress().get((TOPIC, self.group, queue))
            _is("the first offset on disk", answer.offset, saved)
        else:
            _is("the number of writes of progress", 0, len(self.host.files.events) - written)

    def _vanish(self) -> None:
        """Let the progress of the group vanish, as an operator who removes unused progress does.

        Leases stay until the next request about their queue.
        """
        store = self.host.store
        for queue in store.consumer_offsets(TOPIC).get(self.group, {}):
            least = partial(store.commit_offset, self.group, TOPIC, queue, self._bounds(queue)[0])
            observed("commit_offset", least)
        groups = {GROUP, *DIRECT_GROUPS, *SERVED_GROUPS, *store.consumer_offsets(TOPIC)}
        kept = {(topic, group) for group in groups for topic in store.topics_of_group(group)} - {(TOPIC, self.group)}
        observed("scan_unsubscribed_topic", partial(store.scan_unsubscribed_topic, kept))
        _is("the progress that was removed", {}, store.consumer_offsets(TOPIC).get(self.group, {}))

    def _query(self, named: MessageQueue) -> None:
        stored = self.host.store.consumer_offsets(TOPIC).get(self.group, {})
        is_known = bool(stored.keys() - {named.queue_id})
        least, most = self._bounds(named.queue_id)
        expected: tuple[Any, ...]
        if named.queue_id in stored:
            expected = "FOUND", stored[named.queue_id], is_known
        elif least <= 0 and not (self.host.is_cold and most):
            expected = "NOT_STORED", 0, is_known
        else:
            expected = "NOT_FOUND", -1, is_known
        answer = self._ask(QueryOffset(self.group, named))
        found = (answer.status.name, answer.offset, answer.is_group_known) if isinstance(answer, OffsetFound) else None
        _is("the progress of a group", expected, found)

    def _ask_about(self, named: MessageQueue) -> None:
        """Ask for what follows from the store and its tables alone."""
        store, queue = self.host.store, named.queue_id
        _is("the bounds", Bounds(*self._bounds(queue)), self._ask(QueryBounds(named)))
        time_ms = self.rng.choice((0, 1 << 50))
        answer = self._ask(SearchOffset(named, time_ms))
        wanted = "FOUND", store.offset_in_queue_by_time(TOPIC, queue, time_ms)
        _is("a search", wanted, (answer.status.name, answer.offset) if isinstance(answer, OffsetFound) else answer)
        for group, count in ((self.group, min(self.retries, 1)), (_UNKNOWN, int(self.creates)), (_CLOSED, 0)):
            retry = f"%RETRY%{group}"
            _is(f"the route of {retry}", self._routed(retry, count), self._ask(Route(retry)))
        _is(
            "the route of a topic without queues", self._routed("W-nothing", self.queues), self._ask(Route("W-nothing"))
        )
        self._configured()
        self.members = self.members.expired(self.now_ms)
        _is(
            "the list of members",
            MembersFound(self.members.of(self.group, TOPIC)),
            self._ask(Members(self.group, TOPIC)),
        )
        far = SendBack(self.group, 1 << 40, "", 0, 16, "key")
        _is("the return of no message", "SYSTEM_ERROR", _reason(self._ask(far)))
        other = SendBack(self.group, store.min_offset, "another", 0, 16, "key")
        _is("the return of another message", "SYSTEM_ERROR", _reason(self._ask(other)))
        for kind, expression in (("SQL", "*"), ("SQL92", "a ="), ("", "*")):
            bad = Pull(self.group, named, 0, Subscription(TOPIC, expression, kind))
            _is("a pull with a wrong filter", "SYSTEM_ERROR", _reason(self._ask(bad)))

    @staticmethod
    def _routed(topic: str, count: int) -> Routed:
        return Routed(tuple(MessageQueue(topic, BROKER, each) for each in range(count)))

    def _configured(self) -> None:
        """Ask for the route of a topic with a configuration.

        It has the queues for reading, if it may be read.
        """
        store, count, perm = self.host.store, self.rng.randrange(4), self.rng.choice((2, 4, 6))
        config = TopicConfig(_TOPIC, count, 7, perm=perm)
        observed("put_topic_config", partial(store.put_topic_config, config))
        _is("the route of a topic", self._routed(_TOPIC, count if perm != 2 else 0), self._ask(Route(_TOPIC)))
        observed("delete_topic_config", partial(store.delete_topic_config, _TOPIC))
        if not self.retries:
            copy = SendToRetry(self.group, TOPIC, b"", {}, 0, 0, ("127.0.0.1", 1), "id", 0, 16, "key")
            _is("a copy for a group without retry queues", "NO_PERMISSION", _reason(self._ask(copy)))

    def _refused_groups(self, named: MessageQueue) -> None:
        """Ask for two groups that are not served (rule 4)."""
        unknown = None if self.creates else "UNKNOWN_GROUP"
        for group, refusal in ((_CLOSED, "NO_PERMISSION"), (_UNKNOWN, unknown)):
            if refusal is None:
                continue
            copy = SendToRetry(group, TOPIC, b"", {}, 0, 0, ("127.0.0.1", 1), "id", 0, 16, "key")
            for request in (
                Pull(group, named, 0, _ALL), UpdateOffset(group, named, 1), QueryOffset(group, named),
                Heartbeat(group, "p", (_ALL,)), LockQueues(group), Members(group, TOPIC),
                SendBack(group, 0, "", 0, 16, "key"), copy,
            ):  # fmt: skip
                _is(f"{type(request).__name__} of a group that is not served", refusal, _reason(self._ask(request)))
            for freed in (Leave(group, "p"), UnlockQueues(group, ())):
                _is(f"{type(freed).__name__} of a group that is not served", Done(), self._ask(freed))


def _reason(answer: Answer) -> object:
    return answer.reason.name if isinstance(answer, Refused) else answer


def _is(what: str, expected: object, found: object) -> None:
    if found != expected:
        raise GuaranteeBroken(22, f"{what} is not that of the model", str(expected), str(found))
