"""Specify puts whose answers are open: their waits, and the lines of delayed copies.

1. A put waits only if its message asks for it: for the disk in a synchronous store, for a replica in a `SYNC_MASTER`.
2. Each wait ends once, with a status: that of a flush, of the replica, or of its deadline, whichever comes first.
3. The answer comes when all waits have ended. The status of the replica takes precedence over that of the disk.

Copies of delayed messages wait in lines, a line for each level:

4. The copies of a level are in line in their order. The level goes on after a message once its copy and all copies
   before it are answered. The status of the answer does not matter, since the copy is in the log.
5. A level whose line is full puts nothing more.
6. A close answers every put, so no line outlives it. A crash forgets all lines, and their messages are delivered again.

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
    """The waits of one put.

    `disk` and `replica` are the statuses with which they ended, None while they are open. Deadlines are in ms.
    """

    end_offset: int
    disk: PutStatus | None
    replica: PutStatus | None
    disk_deadline_ms: int
    replica_deadline_ms: int

    @property
    def answer(self) -> PutStatus | None:
        """The answer, None while a wait is open."""
        if self.disk is None or self.replica is None:
            return None
        return self.disk if self.replica is PutStatus.PUT_OK else self.replica

    @property
    def deadline_ms(self) -> int:
        """When the first open wait ends by its deadline."""
        disk = [self.disk_deadline_ms] if self.disk is None else []
        replica = [self.replica_deadline_ms] if self.replica is None else []
        return min(disk + replica)


def begin(end_offset: int, *, waits: bool, layout: Layout, now_ms: int, conditions: Conditions) -> Waiting:
    """Return the waits of a put whose last record ends at `end_offset`."""
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
    """End the wait for the disk after a flush that led to `log`.

    The flush may not have covered the put.
    """
    if waiting.disk is not None:
        return waiting
    durable = log.flushed_offset >= waiting.end_offset
    return replace(waiting, disk=PutStatus.PUT_OK if durable else PutStatus.FLUSH_DISK_TIMEOUT)


def late(waiting: Waiting, *, now_ms: int) -> Waiting:
    """End each wait whose deadline has passed."""
    if waiting.disk is None and now_ms >= waiting.disk_deadline_ms:
        waiting = replace(waiting, disk=PutStatus.FLUSH_DISK_TIMEOUT)
    if waiting.replica is None and now_ms >= waiting.replica_deadline_ms:
        waiting = replace(waiting, replica=PutStatus.FLUSH_SLAVE_TIMEOUT)
    return waiting


def given_up(waiting: Waiting) -> Waiting:
    """End every open wait, as its deadline would."""
    return late(waiting, now_ms=max(waiting.disk_deadline_ms, waiting.replica_deadline_ms))


def joined(log: CommitLog, pending: Pending) -> CommitLog:
    """Return the log with one more copy at the end of a line."""
    return settled(log.changed(pending=(*log.pending, pending)))


def in_line(log: CommitLog, level: int) -> tuple[Pending, ...]:
    """Return the line of a level."""
    return tuple(pending for pending in log.pending if pending.level == level)


def is_full(log: CommitLog, level: int, *, layout: Layout) -> bool:
    """Return whether a level must put nothing more."""
    return bool(layout.pending_copies) and len(in_line(log, level)) >= layout.pending_copies


def is_answered(pending: Pending) -> bool:
    """Return whether the copy of a message is answered, so that its level may go on."""
    return pending.waits is None or pending.waits.answer is not None


def answered(log: CommitLog, change: Callable[[Waiting], Waiting]) -> CommitLog:
    """Return the log with changed waits; the levels notice this with their next round."""
    changed = (
        pending._replace(waits=None if pending.waits is None else change(pending.waits)) for pending in log.pending
    )
    return log.changed(pending=tuple(changed))


def settled(log: CommitLog) -> CommitLog:
    """Return the log with each level moved after the answered copies at the head of its line."""
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
