"""Judge puts that wait for replicas, alone, once in a process (contracts 15 and 16).

The reference is a list of requests and a table of replicas. It follows these rules:

(a) A replica counts while it is connected, with the offset that it confirmed last. The acknowledged offset is the n-th
    largest one, for n replicas that have to confirm. It is unknown with fewer replicas.
(b) A request ends with PUT_OK once its end is acknowledged, and with its own status when its deadline has passed, when
    its bytes are removed, or when the node closes. Requests that end together end in the order of their ends.
(c) A step returns a time before which no deadline passes. Below it the step does nothing.
(d) A request wakes the node if its end is at the wake-up offset or past it, and only then.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tornpage.impl.message.message import PutStatus
from tornpage.impl.replication.requests import ReplicaRequests
from tornpage.properties.contract import GuaranteeBroken

__all__ = ["waiting_requests_hold"]

_PROGRAMS, _EVENTS = 30, 60
_TIMEOUT_MS = 50
_REPLICAS = (b"a", b"b", b"c")


@dataclass(eq=False)
class _Request:
    """A request of a put, and the statuses that it got."""

    end_offset: int
    number: int
    given: list[tuple[int, PutStatus]]
    deadline_ms: int = 0
    timeout_status: PutStatus = PutStatus.FLUSH_SLAVE_TIMEOUT
    answers: list[PutStatus] = field(default_factory=list)

    @property
    def is_answered(self) -> bool:
        """Whether the request has ended."""
        return bool(self.answers)

    def answer(self, status: PutStatus) -> None:
        """End the request."""
        self.answers.append(status)
        self.given.append((self.number, status))


def waiting_requests_hold() -> None:
    """Judge drawn programs. Raises GuaranteeBroken."""
    for seed in range(_PROGRAMS):
        try:
            _Program(random.Random(f"requests {seed}"), quorum=1 + seed % 3).run()
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            raise GuaranteeBroken(16, f"requests for replicas raise {type(error).__name__}: {error}") from error


class _Program:
    """One drawn program beside the reference."""

    def __init__(self, rng: random.Random, *, quorum: int) -> None:
        self._rng, self._quorum = rng, quorum
        self._scale = rng.choice((1, 1_000))  # ends of requests lie below and above times
        self._now_ms = 1_000
        self._wakes = self._numbers = 0
        self._given: list[tuple[int, PutStatus]] = []
        self._confirmed: dict[bytes, int] = {}
        self._waiting: list[_Request] = []
        self._is_closed = False
        self._ours = ReplicaRequests(lambda: self._now_ms, timeout_ms=_TIMEOUT_MS, in_sync_replicas=quorum)
        self._ours.wake = self._wake

    def _wake(self) -> None:
        self._wakes += 1

    def run(self) -> None:
        """Draw events, then close."""
        self._judge("a new node", [])
        events: tuple[Callable[[], None], ...] = (
            self._ask, self._ask, self._ask, self._ask, self._note, self._note, self._forget, self._step, self._step,
            self._forgo, self._move,
        )  # fmt: skip
        for _ in range(_EVENTS):
            self._rng.choice(events)()
        for _ in range(2):
            left, self._waiting, self._is_closed = self._waiting, [], True
            self._ours.close()
            self._judge("a close", [(each.number, each.timeout_status) for each in left])
        self._ask()
        self._step()

    @property
    def _acknowledged(self) -> int | None:
        offsets = sorted(self._confirmed.values(), reverse=True)
        return offsets[self._quorum - 1] if len(offsets) >= self._quorum else None

    def _offset(self) -> int:
        return self._rng.randrange(12) * self._scale

    def _ask(self) -> None:
        self._numbers += 1
        status = self._rng.choice((PutStatus.FLUSH_SLAVE_TIMEOUT, PutStatus.OUTCOME_UNKNOWN))
        request = _Request(self._offset(), self._numbers, self._given, self._now_ms + _TIMEOUT_MS, status)
        wakes, wakes_now = self._wakes, request.end_offset >= self._ours.wake_offset
        self._ours.request(request)
        if self._wakes - wakes != wakes_now:
            raise GuaranteeBroken(
                16, f"a request up to {request.end_offset} wakes the node {self._wakes - wakes} times, and the wake-up "
                f"offset is {self._ours.wake_offset}",
            )  # fmt: skip
        if self._is_closed:
            self._judge("a request after a close", [(request.number, status)])
            return
        at = sum(each.end_offset <= request.end_offset for each in self._waiting)
        self._waiting.insert(at, request)
        acknowledged = self._acknowledged
        is_confirmed = acknowledged is not None and request.end_offset <= acknowledged
        self._judge("a request", self._taken(acknowledged, PutStatus.PUT_OK) if is_confirmed else [])

    def _taken(self, offset: int | None, status: PutStatus | None = None) -> list[tuple[int, PutStatus]]:
        """Remove the requests up to an offset, and return how they end."""
        taken = [each for each in self._waiting if offset is not None and each.end_offset <= offset]
        self._waiting = [each for each in self._waiting if each not in taken]
        return [(each.number, status or each.timeout_status) for each in taken]

    def _note(self) -> None:
        replica, offset = self._rng.choice(_REPLICAS), self._offset()
        self._confirmed[replica] = offset
        self._ours.note(replica, offset)
        self._judge("a confirmation", self._taken(self._acknowledged, PutStatus.PUT_OK))

    def _forget(self) -> None:
        replica = self._rng.choice(_REPLICAS)
        self._confirmed.pop(replica, None)
        self._ours.forget(replica)
        self._judge("the loss of a replica", [])

    def _step(self) -> None:
        """Let time pass, sometimes exactly up to a deadline."""
        due = [each.deadline_ms for each in self._waiting]
        exact = [each - by for each in due for by in (0, 1) if each - by >= self._now_ms]
        self._now_ms = self._rng.choice(exact) if exact and self._rng.random() < 0.5 else self._now_ms + 7
        late = [each for each in self._waiting if each.deadline_ms <= self._now_ms]
        self._waiting = [each for each in self._waiting if each not in late]
        found = self._ours.step(self._now_ms)
        self._judge("a step", [(each.number, each.timeout_status) for each in late])
        least = min((each.deadline_ms for each in self._waiting), default=None)
        is_early = least is not None and (found is None or found > least)
        is_past = found is not None and found <= self._now_ms
        if is_early or is_past or (self._is_closed and found is not None):
            raise GuaranteeBroken(16, f"a step at {self._now_ms} says that a deadline passes at {found}", str(least))

    def _forgo(self) -> None:
        offset = self._offset() // 2
        self._ours.forgo(offset)
        self._judge("a removal of bytes", self._taken(offset))

    def _move(self) -> None:
        self._ours.wake_offset = self._offset()

    def _judge(self, what: str, wanted: list[tuple[int, PutStatus]]) -> None:
        given = self._given[:]
        self._given.clear()
        if given != wanted:
            raise GuaranteeBroken(16, f"{what} ends other requests", str(wanted), str(given))
        offset = self._offset()
        following = next((each.end_offset for each in self._waiting if each.end_offset >= offset), None)
        shown = (self._ours.acknowledged_offset, self._ours.waiting, self._ours.end_from(offset))
        if shown != (self._acknowledged, len(self._waiting), following):
            expected = str((self._acknowledged, len(self._waiting), following))
            raise GuaranteeBroken(15, f"after {what} a node shows other requests", expected, str(shown))
