"""Specify flushes: how appended records become durable, at once and by timed rounds.

1. Only committed bytes can be flushed. A flush of everything commits first.
2. A timed round goes through the files from the flushed offset on, in order. It stops at the first file that it does
   not make durable to its end. It syncs a file with new bytes that is full or has enough new pages. A thorough round,
   such as the first one, syncs any new byte. Whether a round is thorough is decided when it begins.
3. A failed sync moves no watermark and poisons the log, whichever flush met it. A poisoned log is never flushed again.
   Readers see what was flushed before.
4. A put that waits for the disk is answered when a flush has covered it, or at its deadline. A record whose put timed
   out stays in the log and becomes durable with the next flush.
5. The checkpoint on disk has the store timestamps up to which the log, the queues and the index are durable. It never
   promises more than is durable.
6. A close dispatches everything that can be read.

Source: docs/statuses.md, "flush"; contract 2 and 9.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tornpage.model.index import keys_of
from tornpage.model.pool import commit, is_worth_it
from tornpage.model.queues import dispatch, dispatched
from tornpage.model.state import CommitLog, Layout, Record, State
from tornpage.model.waiting import answered, given_up, settled

__all__ = [
    "CheckpointTimes",
    "Flushed",
    "checkpoint_times",
    "close",
    "flush",
    "flush_round",
    "index_checkpoint_times",
    "legal_checkpoint",
    "note_round",
    "queue_checkpoint_times",
]


@dataclass(frozen=True, slots=True)
class Flushed:
    """What a round did: it `moved` the flushed offset, or skipped a file with too few pages."""

    thorough: bool
    moved: bool
    left_alone: bool


def flush(log: CommitLog, *, sync_fails: bool = False, write_fails: bool = False) -> tuple[CommitLog, bool]:
    """Make everything appended durable, and return whether it is.

    A failed sync moves nothing and poisons the log. After a failed commit the rest stays in its buffer.
    """
    log, _ = commit(log, write_fails=write_fails)
    if log.poisoned:
        return log, False
    if sync_fails and log.flushed_offset < log.committed_offset:
        return log.changed(poisoned=True), False
    return log.changed(flushed_offset=log.committed_offset), log.committed_offset == log.end_offset


def flush_round(log: CommitLog, *, layout: Layout, now_ms: int, sync_fails: bool = False) -> tuple[CommitLog, Flushed]:
    """Run one round of the timed flush of an asynchronous store."""
    if log.poisoned:
        return log, Flushed(thorough=False, moved=False, left_alone=False)
    thorough = log.flushed_ms is None or now_ms - log.flushed_ms >= layout.flush_thorough_ms
    thorough |= layout.least_pages == 0
    before, log = log.flushed_offset, log.changed(flushed_ms=now_ms if thorough else log.flushed_ms)
    least_pages = 0 if thorough else layout.least_pages
    for base in range(before // layout.file_bytes * layout.file_bytes, log.end_offset, layout.file_bytes):
        end = base + layout.file_bytes
        committed = min(log.committed_offset, end)
        done, is_full = log.flushed_offset - base, log.end_offset >= end
        if is_worth_it(committed - base, done, least_pages=least_pages, is_full=is_full):
            if sync_fails:
                return log.changed(poisoned=True), Flushed(thorough, moved=False, left_alone=False)
            log = log.changed(flushed_offset=committed)
        if log.flushed_offset < end:
            break
    left_alone = not thorough and log.flushed_offset < log.committed_offset
    return log, Flushed(thorough, moved=log.flushed_offset > before, left_alone=left_alone)


def note_round(log: CommitLog, *, layout: Layout, now_ms: int) -> tuple[CommitLog, bool]:
    """Run one round of the queue flush; a thorough round writes the checkpoint.

    The first round is thorough.
    """
    if log.noted_ms is not None and now_ms - log.noted_ms < layout.note_thorough_ms:
        return log, False
    return log.changed(noted_ms=now_ms), True


def checkpoint_times(log: CommitLog) -> tuple[int, int]:
    """Return the earliest and latest legal store timestamp of the log in a checkpoint.

    The checkpoint is written now. The latest is that of the newest durable record. A checkpoint may have an earlier
    one. Once all of the log is durable, the earliest is that of the last record, unless nothing was appended since the
    store was opened.
    """
    latest = max((r.store_timestamp for r in log.records if r.end_offset <= log.flushed_offset), default=0)
    all_of_it = log.flushed_offset == log.end_offset and log.appended_in_this_life > 0
    return log.records[-1].store_timestamp if all_of_it else 0, latest


def queue_checkpoint_times(log: CommitLog) -> tuple[int, int]:
    """Return the earliest and latest legal store timestamp of the queues in a checkpoint.

    The checkpoint is written now. The latest is that of the newest dispatched record. The earliest is that of the
    newest record in a queue that was appended since the store was opened.
    """
    return _newest(r for r in _dispatched_in_this_life(log) if r.message.counts_in_its_queue), _newest(dispatched(log))


def index_checkpoint_times(log: CommitLog, *, layout: Layout) -> tuple[int, int]:
    """Return the earliest and latest legal store timestamp of the index in a checkpoint.

    The earliest is that of the newest record with a key.
    """
    indexed = (
        record
        for record in _dispatched_in_this_life(log)
        if layout.index and keys_of(record, drops_joined=layout.drops_joined)
    )
    return _newest(indexed), _newest(dispatched(log))


@dataclass(frozen=True, slots=True)
class CheckpointTimes:
    """The earliest and latest legal store timestamps of log, queues and index in a checkpoint."""

    log: tuple[int, int]
    queues: tuple[int, int]
    index: tuple[int, int]


def legal_checkpoint(state: State, layout: Layout) -> CheckpointTimes:
    """Return the legal contents of a checkpoint that is written in a state.

    A round of dispatch that broke off may have reached the file that was refused, or may not have begun.
    """
    log = state.log
    furthest = dispatch(log) if state.broke_off else log
    queues = queue_checkpoint_times(log)[0], queue_checkpoint_times(furthest)[1]
    index = index_checkpoint_times(log, layout=layout)[0], index_checkpoint_times(furthest, layout=layout)[1]
    return CheckpointTimes(checkpoint_times(log), queues, index)


def _dispatched_in_this_life(log: CommitLog) -> Iterator[Record]:
    first = len(log.records) - log.appended_in_this_life
    return dispatched(log.changed(records=log.records[first:]))


def _newest(records: Iterable[Record]) -> int:
    return max((record.store_timestamp for record in records), default=0)


def close(log: CommitLog, *, sync_fails: bool = False, write_fails: bool = False) -> tuple[CommitLog, bool]:
    """Close, and return whether the exit is clean: all of the log is durable.

    Unused prepared files are removed in both cases. Bytes that could not be committed are lost with their buffer.
    Records that were readable before the flush, or have become readable, are dispatched. All waiting puts are answered.
    Progress is saved if the exit is clean.
    """
    log, durable = flush(dispatch(log), sync_fails=sync_fails, write_fails=write_fails)
    log = settled(answered(dispatch(log.changed(prepared=0, asked=0)), given_up))
    return (log.changed(saved_delays=log.delays) if durable else log), durable
