"""Specify the owners of queues at the broker (contracts 20 and 22).

1. A queue has at most one owner. A claim is granted if there is none, if the owner has given the queue up, if it is the
   process of the claim, or if its lease is over. A claim that does not wait is also granted if the owner is no member.
2. A claim that arrives after a later claim of its process, or after the queue was given up with its token, is late. A
   late claim gets nothing. A repeated one gets its lease again.
3. After the start of a broker, claims that wait are granted only from `waits_until_ms` on, unless an owner is known.
4. The numbers of a queue restart: its owner loses the lease, if it has pulled or in any case.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

__all__ = ["Owned", "Owners"]


@dataclass(frozen=True, slots=True)
class Owned:
    """The last owner of a queue. `number` rises with each owner."""

    process: str
    token: str
    number: int
    renewed_ms: int
    is_over: bool = False
    has_pulled: bool = False


@dataclass(frozen=True, slots=True)
class Owners:
    """The owner of each queue.

    `given_up` has the last token that a process gave up, by queue and process.
    """

    live_ms: int
    waits_until_ms: int
    owned: Mapping[int, Owned] = field(default_factory=dict)
    given_up: Mapping[tuple[int, str], str] = field(default_factory=dict)
    granted: int = 0

    def claim(
        self, queue: int, process: str, token: str, now_ms: int, *, waits: bool, members: frozenset[str]
    ) -> tuple["Owners", int | None]:
        """Claim a queue; the number of the lease, None if it is not granted."""
        owner = self.owned.get(queue)
        if token <= self.given_up.get((queue, process), ""):
            return self, None
        if owner is not None and owner.process == process and token <= owner.token:
            if owner.is_over or token != owner.token:
                return self, None
            return self._with(queue, replace(owner, renewed_ms=now_ms)), owner.number
        if not self._is_free(owner, process, now_ms, waits=waits, members=members):
            return self, None
        number = self.granted + 1
        return replace(self._with(queue, Owned(process, token, number, now_ms)), granted=number), number

    def _is_free(self, owner: Owned | None, process: str, now_ms: int, *, waits: bool, members: frozenset[str]) -> bool:
        if owner is None:
            return not waits or now_ms >= self.waits_until_ms
        is_expired = now_ms > owner.renewed_ms + self.live_ms
        return owner.is_over or owner.process == process or is_expired or (not waits and owner.process not in members)

    def _with(self, queue: int, owner: Owned) -> "Owners":
        return replace(self, owned={**self.owned, queue: owner})

    def owns(self, queue: int, token: str, number: int) -> bool:
        """Return whether a lease is that of the present owner. Time alone does not end it."""
        owner = self.owned.get(queue)
        return owner is not None and not owner.is_over and (owner.token, owner.number) == (token, number)

    def renew(self, queue: int, token: str, number: int, now_ms: int) -> tuple["Owners", bool]:
        """Renew a lease; whether it was that of the present owner."""
        if not self.owns(queue, token, number):
            return self, False
        return self._with(queue, replace(self.owned[queue], renewed_ms=now_ms)), True

    def unlock(self, queue: int, process: str, token: str, number: int) -> tuple["Owners", bool]:
        """Give a lease up; whether the queue had it. Number 0 stands for any."""
        place = queue, process
        given_up = {**self.given_up, place: max(token, self.given_up.get(place, ""))}
        after, owner = replace(self, given_up=given_up), self.owned.get(queue)
        is_owned = owner is not None and self.owns(queue, token, number or owner.number)
        if owner is None or not is_owned:
            return after, False
        return after._with(queue, replace(owner, is_over=True)), True

    def pulled(self, queue: int) -> "Owners":
        """Note a pull of the owner."""
        owner = self.owned.get(queue)
        return self if owner is None else self._with(queue, replace(owner, has_pulled=True))

    def void(self, queue: int, *, if_pulled: bool) -> "Owners":
        """End a lease, since the numbers of the queue have restarted."""
        owner = self.owned.get(queue)
        if owner is None or (if_pulled and not owner.has_pulled):
            return self
        return self._with(queue, replace(owner, is_over=True))
