"""The owners of queues at the broker: leases with epochs, kept in memory.

A lease ends by an unlock, or `live_ms` after its last renewal if another client claims the queue. RocketMQ forgets its
locks at a restart, and another client may lock a queue while the old owner goes on. Here, claims that wait for the
owner are granted only `live_ms` after the start of the broker, if owners can have survived it.

A claim that arrives after the unlock of its token, or after a later claim of its process, is refused. Otherwise a
delayed request would lock the queue for a process that has given it up. Source: `RebalanceLockManager`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.requests import Claim, Lease

__all__ = ["Process", "QueueLocks"]

Process = tuple[str, str]
"""Client id and incarnation."""

_ANY_EPOCH = 0
_GIVEN_UP_MAX = 10_000


@dataclass(slots=True)
class _Owner:
    """The last owner of a queue."""

    process: Process
    lease: Lease
    renewed_ms: int
    is_unlocked: bool = False
    has_pulled: bool = False


class QueueLocks:
    """The table of owners by group and queue. The broker serialises calls.

    Claims that wait for an owner are granted from `waits_until_ms` on.
    """

    def __init__(self, *, live_ms: int, waits_until_ms: int) -> None:
        self._live_ms = live_ms
        self._waits_until_ms = waits_until_ms
        self._owners: dict[tuple[str, MessageQueue], _Owner] = {}
        self._given_up: dict[tuple[str, MessageQueue, Process], str] = {}
        self._epochs = 0

    def claim(
        self, group: str, claim: Claim, process: Process, now_ms: int, *, is_gone: Callable[[Process], bool] | None
    ) -> Lease | None:
        """Grant a queue to a claim, or return None.

        `is_gone` returns whether a process is no member any more; None waits for the end of each lease.
        """
        owner = self._owners.get((group, claim.queue))
        if claim.token <= self._given_up.get((group, claim.queue, process), ""):
            return None
        if owner is not None and owner.process == process and claim.token <= owner.lease.token:
            return self._repeated(owner, claim, now_ms)
        if not self._is_free(owner, process, now_ms, is_gone):
            return None
        self._epochs += 1
        lease = Lease(claim.token, self._epochs)
        self._owners[group, claim.queue] = _Owner(process, lease, now_ms)
        return lease

    def _repeated(self, owner: _Owner, claim: Claim, now_ms: int) -> Lease | None:
        """Return the lease of a claim that has arrived before, None if it is over."""
        if owner.is_unlocked or claim.token != owner.lease.token:
            return None
        owner.renewed_ms = now_ms
        return owner.lease

    def _is_free(
        self, owner: _Owner | None, process: Process, now_ms: int, is_gone: Callable[[Process], bool] | None
    ) -> bool:
        if owner is None:
            return is_gone is not None or now_ms >= self._waits_until_ms
        if owner.is_unlocked or owner.process == process or self.is_expired(owner.renewed_ms, now_ms):
            return True
        return is_gone is not None and is_gone(owner.process)

    def is_expired(self, renewed_ms: int, now_ms: int) -> bool:
        """Return whether a lease that was renewed at a time is over."""
        return now_ms - renewed_ms > self._live_ms

    def renew(self, group: str, queue: MessageQueue, lease: Lease, now_ms: int) -> bool:
        """Extend a lease; return False if the queue has another owner, or none."""
        owner = self._owners.get((group, queue))
        if owner is None or owner.is_unlocked or owner.lease != lease:
            return False
        owner.renewed_ms = now_ms
        return True

    def unlock(self, group: str, queue: MessageQueue, lease: Lease, process: Process) -> bool:
        """End a lease; return whether the queue had it.

        A claim with its token that arrives later is not granted.
        """
        place = group, queue, process
        self._given_up[place] = max(lease.token, self._given_up.pop(place, ""))
        if len(self._given_up) > _GIVEN_UP_MAX:
            del self._given_up[next(iter(self._given_up))]
        owner = self._owners.get((group, queue))
        if owner is None or owner.is_unlocked or owner.lease.token != lease.token:
            return False
        if lease.epoch not in (_ANY_EPOCH, owner.lease.epoch):
            return False
        owner.is_unlocked = True
        return True

    def note_pull(self, group: str, queue: MessageQueue) -> None:
        """Note that the owner of a queue has pulled, so that the group has progress in it."""
        self._owners[group, queue].has_pulled = True

    def void(self, group: str, queue: MessageQueue, *, if_pulled: bool = False) -> None:
        """End the lease of a queue whose numbers have restarted.

        With `if_pulled`, it ends only if its owner has pulled.
        """
        owner = self._owners.get((group, queue))
        if owner is not None and (owner.has_pulled or not if_pulled):
            owner.is_unlocked = True

    def is_owner(self, group: str, queue: MessageQueue, lease: Lease) -> bool:
        """Return whether a lease is that of the present owner.

        An expired lease is, until another client claims the queue.
        """
        owner = self._owners.get((group, queue))
        return owner is not None and not owner.is_unlocked and owner.lease == lease
