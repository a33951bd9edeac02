"""Puts whose answers are open: what each waits for (disk, replica or both), and the lines of delayed copies.

1. Only who said so waits: for the disk in a synchronous store, for a replica in a `SYNC_MASTER`.
2. Each wait ends once, with a status: of a flush, of the replica, or of its deadline, whichever comes first.
3. The answer comes when all waits have ended. What the replica says hides what the disk says.

Copies of delayed messages wait in lines, a line for each level:

4. The copies of a level stand in line in their order. The level goes on behind a message once its copy is answered and
   all in front of it are; what the answer says changes nothing, since the copy is in the log.
5. A level whose line is full puts nothing more.
6. A close answers every put, so no line outlives it; a crash forgets all lines, and what stood in them comes again.

Source: docs/statuses.md, "every put that got this far" and "delivery of delayed messages".
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tornpage.model.message import PutStatus
from tornpage.model.state import CommitLog, Conditions, Layout, Pending

__all__ = [
    "Waiting",
    "answered",
    "begin",
    "flushed",
    "given_up",
    "in_line",
    "is_answered",
    "is_full",
    "joined",
    "late",
    "settled",
]


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


def joined(log: CommitLog, pending: Pending) -> CommitLog:
    """Return the log with one more at the end of a line."""
    return settled(log.changed(pending=(*log.pending, pending)))


def in_line(log: CommitLog, level: int) -> tuple[Pending, ...]:
    """Return the line of a level."""
    return tuple(pending for pending in log.pending if pending.level == level)


def is_full(log: CommitLog, level: int, *, layout: Layout) -> bool:
    """Whether a level may put nothing more."""
    return bool(layout.pending_copies) and len(in_line(log, level)) >= layout.pending_copies


def is_answered(pending: Pending) -> bool:
    """Whether a level may go on behind a message, as far as that is concerned."""
    return pending.waits is None or pending.waits.answer is not None


def answered(log: CommitLog, change: Callable[[Waiting], Waiting]) -> CommitLog:
    """Return the log with waits ended; the levels notice that with their next round."""
    changed = (
        pending._replace(waits=None if pending.waits is None else change(pending.waits)) for pending in log.pending
    )
    return log.changed(pending=tuple(changed))


def settled(log: CommitLog) -> CommitLog:
    """Return the log with each level gone on behind those at the head of its line that are answered."""
    delays = dict(log.delays)
    left: list[Pending] = []
    held_up: set[int] = set()
    for pending in log.pending:
        if pending.level in held_up or not is_answered(pending):
            held_up.add(pending.level)
            left.append(pending)
        else:
            delays[pending.level] = max(delays.get(pending.level, 0), pending.number + 1)
    return log.changed(delays=tuple(sorted(delays.items())), pending=tuple(left))
