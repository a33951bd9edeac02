"""Specify deletions: log files from the head, and queues of topics (contract 10).

1. A run begins in one of the hours of the day (UTC) that the layout names, when disk usage is above a limit, or when an
   operator asks for it. An operator may ask for up to 20 runs at once.
2. A run removes files from the head, ten at most, and never the last one. A file is removed when all of it is durable
   and dispatched, and when the first record after it is old enough, since everything in the file is older. When disk
   usage is above a higher limit, age does not count.
3. A file that a reader holds leaves the log at once but stays on the disk. It blocks the files after it until the
   reader releases it or two minutes have passed. A crash before that makes it reappear.
4. A removed record is gone for every reader: get, pull, query, time. A queue begins at its first record that is left. A
   queue without any record left ends at the same number as before, so that its numbers continue.
5. A deleted topic has no queues. Its records before the deletion no longer count in any queue, not even after a crash
   or a restart. Its numbers begin at 0. The records stay in the log and under their keys.
6. A poisoned store deletes nothing. A disk above the warning limit takes no puts, whatever found out its usage.

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
    """The result of a run: how many files it removed from the log, and why."""

    files: int = 0
    urgent: bool = False
    forced: bool = False


def ask_for_runs(log: CommitLog) -> CommitLog:
    """Return the log after an operator asked for clean-up."""
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
    """Return the log after one run, and what the run did.

    `percent` is the disk usage, `held` the offsets at which files begin that readers hold. Hours and ages use the wall
    clock, `now_ms`. The time that a held file blocks is counted in monotonic time, `timer_ms`, or in `now_ms` without
    it. No time passes during a run.
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
    """Return whether the first file of the log may be removed."""
    end = log.min_offset + layout.file_bytes
    if end > min(log.flushed_offset, log.dispatched_offset, (log.files - 1) * layout.file_bytes):
        return False
    following = [record for record in log.records if record.offset == end and record.end_offset <= log.committed_offset]
    return urgent or any(now_ms >= record.store_timestamp + layout.file_reserved_ms for record in following)


def _tried(log: CommitLog, *, now_ms: int, held: Collection[int]) -> tuple[CommitLog, bool]:
    """Try to remove the held file that blocks; also return whether its readers lost it."""
    assert log.hanging is not None
    is_held = log.hanging.offset in held
    if is_held and now_ms < log.hanging.since_ms + HANGS_MS:
        return log.changed(hanging=replace(log.hanging, tried_ms=now_ms)), False
    return log.changed(hanging=None), is_held


def delete_topics(log: CommitLog, *, layout: Layout, in_use: Collection[str]) -> tuple[CommitLog, tuple[str, ...]]:
    """Return the log after deleting all topics except those in use, and the deleted names."""
    if log.poisoned:
        return log, ()
    known = {name for _, (name, _), _ in counted(log, layout)}
    gone = sorted(
        name for name in known if name not in in_use and name not in KEPT_TOPICS and not name.startswith(LIGHT_PREFIX)
    )
    deleted = {**dict(log.deleted), **dict.fromkeys(gone, log.end_offset)}
    return log.changed(deleted=tuple(sorted(deleted.items()))), tuple(gone)


def refuse_deletion(before: CommitLog, after: CommitLog) -> CommitLog:
    """Return the log after a deletion that the disk refused.

    `before` and `after` are the logs around it. The disk may have done it anyway.
    """
    return before.changed(undecided=tuple(dict.fromkeys((*before.undecided, after.deleted))))
