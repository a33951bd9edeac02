"""Specify every log that recovery may present after a crash, and the open that follows.

Contracts 1 to 3 and 6. A power loss keeps the durable records, and any longer prefix of what was appended. A process
kill keeps everything that was committed. That is everything appended, unless a buffer of the pool is in use. An
operation that had not returned may have happened whole or not at all. A batch may also have happened in part. What
recovery presents is durable.

The place of the next record is part of the result. A file that was closed with a blank stays closed if the blank
survived, even if the record after it did not.

The records of a batch are appended together, but a crash may separate them: each record is valid by itself, and
recovery keeps valid records up to the first invalid one. So any prefix of a batch may survive unless an answer promised
more. A batch without an answer may be found whole, in part or not at all. Everything that is derived from records
follows the surviving ones: queues continue after the last of them, the known light queues are those that they name, and
queues and index hold all of them and nothing else, whatever was dispatched before. The running flags are those of a new
process.

A crash during a clean-up may fall after any of its deletions, since each unlink is durable before the next. A file
still held by a reader reappears. A deletion of topics has happened for all of them or for none. The same holds for a
deletion that the disk refused, until the list of deleted topics is durable again.

An open continues from the saved progress, within the bounds of the recovered queues. It saves the progress of delay
levels at once if it had to correct it. If the disk fails, the queue of a level may be missing or incomplete. The number
of such a level may be before its first message until its next round. A slave takes the progress that its master has
sent as it is.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from tornpage.model import progress, schedule
from tornpage.model.queues import all_bounds
from tornpage.model.schedule import expired_are_passed_by
from tornpage.model.state import CommitLog, Disk, Environment, Layout, Process, Progress, State
from tornpage.model.step import layout_in

__all__ = ["Kind", "crash", "next_process", "opened", "opened_without_queues", "recovered_from", "reopened"]


Kind = Literal["power loss", "process kill"]
"""What ends a process. A power loss loses the page cache; a kill keeps it."""


def crash(before: CommitLog, after: CommitLog, kind: Kind, *, layout: Layout) -> Iterator[CommitLog]:
    """Yield each legal log after a crash while an operation leads from `before` to `after`.

    The two are equal when no operation runs. At least what was safe before the operation survives, since its answer was
    not given: what was durable for a power loss, what was committed for a kill. At most the appends of the operation
    survive too.
    """
    floor_offset = before.flushed_offset if kind == "power loss" else before.committed_offset
    kept = sum(record.end_offset <= floor_offset for record in before.records)
    for log in _cleaned(before, after, layout):
        yield from _prefixes(log, kept, layout=layout, floor_offset=floor_offset)


def opened(log: CommitLog, *, layout: Layout) -> CommitLog:
    """Return the log of a process that opens a log with its saved progress."""
    return schedule.opened(log, layout=layout)


def opened_without_queues(log: CommitLog, found: Progress, *, layout: Layout) -> CommitLog:
    """Return a log opened on a failing disk, with the progress `found` if that is legal.

    A queue that the disk refused is complete only after the open. Until then the open does not know its first message,
    so the progress may be any number from the saved one to the first message. The next round of the level corrects it.
    """
    saved, first = dict(log.saved_delays), opened(log, layout=layout)
    is_legal = layout.role != "SLAVE" and [level for level, _ in found] == [level for level, _ in first.delays]
    for (_, number), (level, most) in zip(found, first.delays, strict=False):
        is_legal &= min(saved[level], most) <= number <= most
    return first.changed(delays=found, saved_delays=found) if is_legal else first


def next_process(state: State, log: CommitLog, *, layout: Layout) -> State:
    """Return the state of the process that opens a log that survived; it has only its disk.

    Progress continues from where it was saved, within the bounds of the recovered queues. The environment has no faults
    any more.
    """
    there = opened(log, layout=layout_in(state, layout))
    bounds = all_bounds(there, layout)
    consumers = progress.loaded(
        state.consumers.saved, end_of=lambda topic, number: bounds.get((topic, number), (0, 0))[1]
    )
    environment = Environment(replica=state.environment.replica)
    return State(there, consumers, state.clock, environment, state.role)


def _cleaned(before: CommitLog, after: CommitLog, layout: Layout) -> Iterator[CommitLog]:
    """Yield the log after an operation with each part of what it may have deleted so far."""
    for min_offset in range(before.oldest_offset, after.oldest_offset + 1, layout.file_bytes):
        undecided = (*before.undecided, *after.undecided) if min_offset <= before.min_offset else ()
        for deleted in dict.fromkeys((before.deleted, after.deleted, *undecided)):
            yield _with_files_back(after, min_offset, layout).changed(min_offset=min_offset, deleted=deleted)


def _with_files_back(log: CommitLog, oldest_offset: int, layout: Layout) -> CommitLog:
    """Return the log without a held file; files from `oldest_offset` on may have reappeared."""
    if oldest_offset < log.min_offset and log.delays:
        log = expired_are_passed_by(log, oldest_offset=oldest_offset, layout=layout)
    return log.changed(hanging=None)


def _prefixes(log: CommitLog, least: int, *, layout: Layout, floor_offset: int) -> Iterator[CommitLog]:
    for count in range(least, len(log.records) + 1):
        kept = log.records[:count]
        end_offset = kept[-1].end_offset if kept else 0
        for end in sorted({end_offset, _next_file(end_offset, layout)}):
            following = log.records[count].offset if count < len(log.records) else log.end_offset
            if floor_offset <= end <= following:
                yield recovered_from(log, count, end, layout=layout)


def _next_file(offset: int, layout: Layout) -> int:
    """Return where the file after the one that holds `offset` begins.

    If a file begins at `offset`, the result is `offset`.
    """
    return -(-offset // layout.file_bytes) * layout.file_bytes


def recovered_from(log: CommitLog, count: int, end_offset: int, *, layout: Layout) -> CommitLog:
    """Return the log of the first `count` records, ending at `end_offset`, in a new process.

    All of it is durable.
    """
    files = -(-end_offset // layout.file_bytes)
    if log.oldest_offset:
        files = max(files, log.oldest_offset // layout.file_bytes + 1)  # the last file stays, even without a record
    disk = Disk(
        records=log.records[:count],
        end_offset=end_offset,
        flushed_offset=end_offset,
        files=files,
        dispatched_offset=end_offset,
        cut=(*log.cut, *log.records[count:]),
        min_offset=log.oldest_offset,
        deleted=tuple((topic, min(offset, end_offset)) for topic, offset in log.deleted),
        saved_delays=log.saved_delays,
        delivered=tuple(delivery for delivery in log.delivered if delivery.end_offset <= end_offset),
    )
    return CommitLog(disk)  # no memory of the process is left


def reopened(log: CommitLog) -> CommitLog:
    """Close cleanly and open again.

    Everything is durable and dispatched, an empty newest file stays, and the rest is that of a new process.
    """
    assert not log.poisoned
    disk = replace(
        log.disk,
        flushed_offset=log.end_offset,
        dispatched_offset=log.end_offset,
        min_offset=log.oldest_offset,
        hanging=None,
        undecided=(),
        saved_delays=log.delays,
    )
    return CommitLog(disk, Process(delays=log.delays))
