"""What an appended put waits for, and until when: the disk, a replica, or both.

1. Only who said so waits: for the disk in a synchronous store, for a replica in a `SYNC_MASTER`.
2. Each wait ends once, with a status: of a flush, of the replica, or of its deadline, whichever comes first.
3. The answer comes when all waits have ended. What the replica says hides what the disk says.

Source: docs/statuses.md, "every put that got this far".
"""

from dataclasses import dataclass, replace

from tornpage.model.message import PutStatus
from tornpage.model.state import CommitLog, Conditions, Layout

__all__ = ["Waiting", "begin", "flushed", "given_up", "late"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """One put's waits: `disk` and `replica` are how they ended, None while they have not; deadlines are in ms."""

    end_offset: int
    disk: PutStatus | None
    replica: PutStatus | None
    disk_deadline_ms: int
    replica_deadline_ms: int

    @property
    def answer(self) -> PutStatus | None:
        """The answer, None while it is open."""
        if self.disk is None or self.replica is None:
            return None
        return self.disk if self.replica is PutStatus.PUT_OK else self.replica

    @property
    def deadline_ms(self) -> int:
        """When the first wait that is open ends by itself."""
        disk = [self.disk_deadline_ms] if self.disk is None else []
        replica = [self.replica_deadline_ms] if self.replica is None else []
        return min(disk + replica)


def begin(end_offset: int, *, waits: bool, layout: Layout, now_ms: int, conditions: Conditions) -> Waiting:
    """Return what a put waits for whose last record ends at an offset."""
    replica: PutStatus | None = PutStatus.PUT_OK
    if waits and layout.role == "SYNC_MASTER":
        replica = {
            "confirms": PutStatus.PUT_OK,
            "silent": PutStatus.FLUSH_SLAVE_TIMEOUT,
            "hangs": None,
            "behind": PutStatus.SLAVE_NOT_AVAILABLE,
            "none": PutStatus.SLAVE_NOT_AVAILABLE,
        }[conditions.replica]
    return Waiting(
        end_offset,
        disk=None if waits and layout.sync_flush else PutStatus.PUT_OK,
        replica=replica,
        disk_deadline_ms=now_ms + layout.sync_flush_timeout_ms,
        replica_deadline_ms=now_ms + layout.slave_timeout_ms,
    )


def flushed(waiting: Waiting, log: CommitLog) -> Waiting:
    """End the wait for the disk with a flush that led to `log`, whether or not it covered the put."""
    if waiting.disk is not None:
        return waiting
    durable = log.flushed_offset >= waiting.end_offset
    return replace(waiting, disk=PutStatus.PUT_OK if durable else PutStatus.FLUSH_DISK_TIMEOUT)


def late(waiting: Waiting, *, now_ms: int) -> Waiting:
    """End each wait whose deadline has come."""
    if waiting.disk is None and now_ms >= waiting.disk_deadline_ms:
        waiting = replace(waiting, disk=PutStatus.FLUSH_DISK_TIMEOUT)
    if waiting.replica is None and now_ms >= waiting.replica_deadline_ms:
        waiting = replace(waiting, replica=PutStatus.FLUSH_SLAVE_TIMEOUT)
    return waiting


def given_up(waiting: Waiting) -> Waiting:
    """End every wait that is open, as its deadline would."""
    return late(waiting, now_ms=max(waiting.disk_deadline_ms, waiting.replica_deadline_ms))
