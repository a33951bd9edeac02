"""Losses of the real store by power losses: `impl.store` on the crash lab's disk.

Time is virtual. The store puts the messages of a simulated trace at the same moments to the millisecond. Its services
step when they are due or woken, as threads would. At each crash the disk keeps only what a sync covered. The store
opens again on that image, and what its recovery does not find is lost. Time passes only between steps: puts and syncs
take none, so that nothing is in progress when the power goes. Equal traces give equal losses.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tornpage.bench.crashes.policies import MESSAGE, store_config
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.disk.disk import DiskState
from tornpage.properties.disk.images import compose
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.sim.distributions import Int64s
from tornpage.sim.experiments.policies import StorePolicy

__all__ = ["Loss", "power_losses"]

DIRECTORY = "/store"
BEGIN_MS = 1_000_000_000_000
STEPPED = ("allocate", "commit", "group-commit", "flush")
"""The services of the log; recovery rebuilds queues and index."""
STEPS_AT_ONCE_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of one crash; `answered` counts lost messages whose puts were acknowledged."""

    messages: int
    size_bytes: int
    age_ms: float
    answered: int


def power_losses(
    policy: StorePolicy,
    arrivals_ns: Int64s,
    crash_at_ns: Sequence[int],
    file_bytes: int,
    message: Message = MESSAGE,
) -> list[Loss]:
    """Put `message` at the arrivals and cut the power at each moment, in order.

    Return the losses. Every crash is of the same history: the running store continues unaffected.
    """
    life = _Life(store_config(policy, file_bytes=file_bytes), message)
    arrivals, position, found = arrivals_ns.tolist(), 0, []
    for crash_ns in crash_at_ns:
        while position < len(arrivals) and arrivals[position] <= crash_ns:
            life.advance(arrivals[position])
            life.put()
            position += 1
        life.advance(crash_ns)
        kept = life.survivors()
        lost = position - kept
        if lost < 0:
            raise HarnessError(f"{position} messages were put, and {kept} are there after a power loss")
        age_ms = (crash_ns - arrivals[kept]) / 1e6 if lost else 0.0
        found.append(Loss(lost, lost * life.record_bytes, age_ms, max(life.answered - kept, 0)))
    return found


class _Life:
    """The store, its clock and its services."""

    def __init__(self, config: MessageStoreConfig, message: Message) -> None:
        self._config = config
        self._message = message
        self._now_ms = BEGIN_MS
        self._services: dict[str, HandDriven] = {}
        self._files = RecordingFiles(EMPTY_DISK, tracker=CompareTracker())
        self._disk = DiskState(EMPTY_DISK, disk="posix-strict")
        self._applied = 0
        self._store = self._open(self._files, self._services)
        self._ends: list[int] = []
        self.record_bytes = 0
        self._settle()

    @property
    def answered(self) -> int:
        """The number of answered puts."""
        return len(self._ends)

    def advance(self, at_ns: int) -> None:
        """Let time pass until a moment, with every service's step when it is due."""
        until_ms = BEGIN_MS + at_ns // 1_000_000
        while True:
            due = [(own.due_ms, name) for name, own in self._own() if own.due_ms is not None]
            due_ms, name = min(due, default=(until_ms + 1, ""))
            if due_ms > until_ms:
                break
            self._now_ms = max(self._now_ms, due_ms)
            self._services[name].step()
            self._settle()
        self._now_ms = max(self._now_ms, until_ms)

    def put(self) -> None:
        """Put one message and count it if it is answered."""
        result = self._store.put(self._message)
        if result.status is not PutStatus.PUT_OK:
            raise HarnessError(f"a put was answered {result.status.name}")
        self.record_bytes = result.size_bytes
        self._ends.append(result.offset + result.size_bytes)
        self._settle()

    def survivors(self) -> int:
        """Cut the power now; return how many messages recovery finds.

        The disk of the running store stays unchanged.
        """
        self._files.mark("power")
        self._disk.apply_all(self._files.journal[self._applied :])
        self._applied = len(self._files.journal)
        image = compose(self._disk, {})
        again = self._open(RecordingFiles(image, tracker=CompareTracker()), {})
        return bisect_right(self._ends, again.max_offset)

    def _settle(self) -> None:
        """Let every woken service step."""
        for _ in range(STEPS_AT_ONCE_MAX):
            woken = [own for _, own in self._own() if own.is_woken]
            if not woken:
                return
            for own in woken:
                own.step()
        raise HarnessError("services of the store wake each other forever")

    def _own(self) -> Iterator[tuple[str, HandDriven]]:
        for name in STEPPED:
            with suppress(KeyError):
                yield name, self._services[name]

    def _open(self, files: RecordingFiles, services: dict[str, HandDriven]) -> MessageStore:
        def take(service: Service) -> HandDriven:
            driven = services[service.name] = HandDriven(service, lambda: self._now_ms)
            return driven

        parts = Parts({ThreadRunner: take})
        return MessageStore.open(DIRECTORY, self._config, files=files, clock=lambda: self._now_ms, parts=parts)
