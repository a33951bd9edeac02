"""What a store deletes, and when: log files from the head, the queues of topics on request (contract 10).

1. A run begins in one of the hours of the day (UTC) that the layout names, when the disk is used above a limit, or
   because somebody asked for it, which he may do for the next 20 runs at once.
2. It takes files from the head, ten at most, and never the last one. A file goes when all of it is durable and
   dispatched, and when the first record behind it was stored so long ago: whatever is in the file is older. On a disk
   that is used above a higher limit its age does not count.
3. A file that a reader holds leaves the log at once and stays on the disk, in the way of those behind it, until it is
   given back or two minutes have passed. A crash before that brings it back.
4. What is gone is gone for every reader: get, pull, query, time. A queue begins at its first record that is left; one
   that has none left ends where it ended, so that its numbers go on.
5. A deleted topic has no queues. Its records before the deletion count in none any more, be it after a crash or a
   restart, and its numbers begin at 0. They stay in the log and under their keys.
6. A store that is poisoned deletes nothing. A fuller disk takes no puts, whoever looked.

Source: docs/statuses.md, "clean-up" and "delete topics" (`DefaultMessageStore.CleanCommitLogService`,
`cleanUnusedTopic`).
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from tornpage.model.dispatch import counted
from tornpage.model.message import SCHEDULE_TOPIC
from tornpage.model.state import CommitLog, Hanging, Layout

__all__ = ["Cleaned", "ask_for_runs", "clean", "delete_topics", "is_expired", "refuse_deletion"]

KEPT_TOPICS = (SCHEDULE_TOPIC, "RMQ_SYS_TRANS_OP_HALF_TOPIC")
LIGHT_PREFIX = "%LMQ%"
RUNS = 20
FILES_OF_A_RUN = 10
DISK_FULL = 16
HANGS_MS = 120_000
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a run did: how many files it took out of the log, and how it came to that."""

    files: int = 0
    urgent: bool = False
    forced: bool = False


def ask_for_runs(log: CommitLog) -> CommitLog:
    """Return the log after somebody asked for clean-up."""
    return log.changed(manual_runs=RUNS)


def clean(
    log: CommitLog,
    *,
    layout: Layout,
    now_ms: int,
    timer_ms: int | None = None,
    percent: int,
    held: Collection[int] = (),
) -> tuple[CommitLog, Cleaned]:
    """Return the log after one run; `percent` is how full the disk is, `held` where the files begin that readers hold.

    Hours and ages are those of the wall clock, `now_ms`. A file hangs by monotonic time, `timer_ms`; without it by the
    wall clock. No time passes during a run.
    """
    timer_ms = now_ms if timer_ms is None else timer_ms
    if log.poisoned:
        return log, Cleaned()
    log = log.changed(flags=log.flags | DISK_FULL if percent > layout.disk_warning_percent else log.flags & ~DISK_FULL)
    asked_for = log.manual_runs > 0
    log = log.changed(manual_runs=log.manual_runs - asked_for)
    urgent, before, forced = percent > layout.disk_forcibly_percent, log.min_offset, False
    if asked_for or percent > layout.disk_used_percent or now_ms // HOUR_MS % 24 in layout.delete_hours:
        for _ in range(FILES_OF_A_RUN):
            if log.hanging is None and is_expired(log, layout=layout, now_ms=now_ms, urgent=urgent):
                base = log.min_offset
                log = log.changed(min_offset=base + layout.file_bytes, hanging=Hanging(base, timer_ms, timer_ms))
            if log.hanging is None:
                break
            log, ended = _tried(log, now_ms=timer_ms, held=held)
            forced |= ended
            if log.hanging is not None:
                break
    if log.hanging is not None and timer_ms >= log.hanging.tried_ms + HANGS_MS:
        log, ended = _tried(log, now_ms=timer_ms, held=held)
        forced |= ended
    return log, Cleaned((log.min_offset - before) // layout.file_bytes, urgent, forced)


def is_expired(log: CommitLog, *, layout: Layout, now_ms: int, urgent: bool) -> bool:
    """Return whether the first file of the log may go."""
    end = log.min_offset + layout.file_bytes
    if end > min(log.flushed_offset, log.dispatched_offset, (log.files - 1) * layout.file_bytes):
        return False
    following = [record for record in log.records if record.offset == end and record.end_offset <= log.committed_offset]
    return urgent or any(now_ms >= record.store_timestamp + layout.file_reserved_ms for record in following)


def _tried(log: CommitLog, *, now_ms: int, held: Collection[int]) -> tuple[CommitLog, bool]:
    """Try to remove the file that hangs; also return whether readers lost it by that."""
    assert log.hanging is not None
    is_held = log.hanging.offset in held
    if is_held and now_ms < log.hanging.since_ms + HANGS_MS:
        return log.changed(hanging=replace(log.hanging, tried_ms=now_ms)), False
    return log.changed(hanging=None), is_held


def delete_topics(log: CommitLog, *, layout: Layout, in_use: Collection[str]) -> tuple[CommitLog, tuple[str, ...]]:
    """Return the log after a deletion of all topics but those in use, and the names of the deleted ones."""
    if log.poisoned:
        return log, ()
    known = {name for _, (name, _), _ in counted(log, layout)}
    gone = sorted(
        name for name in known if name not in in_use and name not in KEPT_TOPICS and not name.startswith(LIGHT_PREFIX)
    )
    deleted = {**dict(log.deleted), **dict.fromkeys(gone, log.end_offset)}
    return log.changed(deleted=tuple(sorted(deleted.items()))), tuple(gone)


def refuse_deletion(before: CommitLog, after: CommitLog) -> CommitLog:
    """Return the log behind a deletion that leads from one log to another, and that the disk has refused.

    The disk may have taken it all the same.
    """
    return before.changed(undecided=tuple(dict.fromkeys((*before.undecided, after.deleted))))
