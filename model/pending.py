"""Copies of delayed messages whose answers are open: the lines in which levels wait for them.

1. The copies of a level stand in line in their order. The level goes on behind a message once its copy is answered and
   all in front of it are; what the answer says changes nothing, since the copy is in the log.
2. A level whose line is full puts nothing more.
3. A close answers every put, so no line outlives it; a crash forgets all lines, and what stood in them comes again.

Source: docs/statuses.md, "delivery of delayed messages".
"""

from collections.abc import Callable

from tornpage.model.state import CommitLog, Layout, Pending
from tornpage.model.waiting import Waiting

__all__ = ["answered", "in_line", "is_answered", "is_full", "joined", "settled"]


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
