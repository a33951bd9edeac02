"""Specify the delivery of delayed messages to their own topics (contract 12).

1. Each queue of the schedule topic is a level. Its messages are delivered one after the other, in order, from the
   level's progress on. A level without progress begins at its first message. Progress is never before the first
   message.
2. A message is due at the time in its unit. It is not delivered earlier, whatever the clock did. A message that is not
   due blocks those after it.
3. A round delivers what is due, at most 64 messages of a level, levels in order. The copy (model/delay.py) is put like
   any message, without waiting for disk or replica. Asynchronous delivery puts copies as a waiting producer does, but
   continues while they wait. The level's progress then follows the answers (model/waiting.py).
4. A message without a copy is skipped for good, and so is one whose copy is refused for its content. After any other
   refusal the level stays where it is and tries again after 100 ms. With asynchronous delivery the pause grows by
   100 ms each time, up to a minute. The other levels are not affected.
5. Saved progress never covers a copy that is not durable: a save makes the log durable first, or saves nothing.
6. An open continues from the saved progress, within the current bounds of each queue. So after a crash messages may be
   delivered again, and none is left out. After a clean close none is delivered twice.
7. A poisoned log delivers nothing, and a slave never delivers.

Source: docs/statuses.md, "delivery of delayed messages" (`ScheduleMessageService`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tornpage.model import commitlog
from tornpage.model.delay import copy_of
from tornpage.model.flushing import flush
from tornpage.model.message import SCHEDULE_TOPIC, PutStatus
from tornpage.model.queues import Unit, all_bounds, queues_of
from tornpage.model.state import CommitLog, Conditions, Delivery, Layout, Pending, Progress, Record
from tornpage.model.waiting import Waiting, in_line, is_answered, is_full, joined, settled

__all__ = [
    "Delivered",
    "deliver_round",
    "earliest_due",
    "expired_are_passed_by",
    "has_work",
    "left_out",
    "loaded",
    "opened",
    "passed_by",
    "retry_ms",
    "save_round",
    "units_of_levels",
]

DELIVERIES_OF_A_ROUND = 64
RETRY_MS = 100
RETRY_MS_MAX = 60_000
SAVE_INTERVAL_MS = 10_000
PAUSE_AFTER_FAILURE_MS = 1_000
LOOK_AGAIN_MS = 1_000
"""The longest sleep while a message waits, so that a clock set forward is noticed."""
FINAL = (PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED, PutStatus.LMQ_CONSUME_QUEUE_NUM_EXCEEDED)


@dataclass(frozen=True, slots=True)
class Delivered:
    """The result of a round.

    It has the copies in order, the number of skipped messages, and the number of levels that were refused. `due_ms` is
    the time of the next round, None when nothing waits.
    """

    records: tuple[Record, ...] = ()
    skipped: int = 0
    refused: int = 0
    due_ms: int | None = None


def deliver_round(
    log: CommitLog,
    *,
    layout: Layout,
    now_ms: int,
    timer_ms: int | None = None,
    conditions: Conditions = commitlog.NO_TROUBLE,
) -> tuple[CommitLog, Delivered]:
    """Return the log after one round, and what the round did.

    A failing append to the mapped file fails once. `timer_ms` is monotonic time, which decides when answers are late.
    Without it `now_ms` is used.
    """
    if log.poisoned:
        return log, Delivered()
    log = settled(log)
    timer_ms = now_ms if timer_ms is None else timer_ms
    records: list[Record] = []
    due_ms: list[int] = []
    skipped = refused = 0
    for level, units in units_of_levels(log, layout).items():
        log = _moved(log, level, dict(log.delays).get(level), units)
        for handled, unit in enumerate(_left_of(log, level, units)):
            if unit.tags_code > now_ms:
                due_ms.append(min(unit.tags_code, now_ms + LOOK_AGAIN_MS))
                break
            if is_full(log, level, layout=layout):
                break
            if handled == DELIVERIES_OF_A_ROUND:
                due_ms.append(now_ms)
                break
            copy, end_offset, waits = copy_of(unit.record.message), unit.record.end_offset, None
            if copy is not None:
                log, appended = commitlog.append(
                    log, copy, layout=layout, store_timestamp=now_ms, conditions=conditions
                )
                conditions = replace(
                    conditions, append_fails=conditions.append_fails and appended.status is not PutStatus.UNKNOWN_ERROR
                )
                records += appended.records
                if appended.records:
                    end_offset = appended.records[-1].end_offset
                    if layout.pending_copies:
                        waits = commitlog.wait_for(appended, layout=layout, now_ms=timer_ms, conditions=conditions)
                elif appended.status not in FINAL:
                    refused += 1
                    log = _refused(log, level)
                    due_ms.append(now_ms + retry_ms(log, level, layout=layout))
                    break
            skipped += end_offset == unit.record.end_offset
            log = _done(log, Delivery(level, unit.queue_offset, end_offset), waits)
    return log, Delivered(tuple(records), skipped, refused, min(due_ms, default=None))


def units_of_levels(log: CommitLog, layout: Layout) -> dict[int, tuple[Unit, ...]]:
    """Return the messages of each level that are left in its queue, levels in order."""
    queues = queues_of(log, layout, topic=SCHEDULE_TOPIC)
    return {queue[1] + 1: queues[queue] for queue in sorted(queues)}


def earliest_due(log: CommitLog, layout: Layout) -> int | None:
    """Return when the first of the next messages of all levels is due.

    None means that no message waits for its time. In a level with a full line the next message waits for an answer
    instead.
    """
    heads = (
        next(_left_of(log, level, units), None)
        for level, units in units_of_levels(log, layout).items()
        if not is_full(log, level, layout=layout)
    )
    return min((head.tags_code for head in heads if head is not None), default=None)


def has_work(log: CommitLog, layout: Layout) -> bool:
    """Return whether the service needs a round: a message may become due, or an answer came."""
    levels = {pending.level for pending in log.pending}
    return earliest_due(log, layout) is not None or any(is_answered(in_line(log, level)[0]) for level in levels)


def _left_of(log: CommitLog, level: int, units: Iterable[Unit]) -> Iterator[Unit]:
    """Yield the messages of a level that are not delivered yet."""
    first = max((pending.number + 1 for pending in in_line(log, level)), default=0)
    first = max(first, dict(log.delays).get(level, 0))
    return (unit for unit in units if unit.queue_offset >= first)


def _moved(log: CommitLog, level: int, number: int | None, units: tuple[Unit, ...]) -> CommitLog:
    """Move a level with progress to its first message at least: earlier ones are gone."""
    if number is None or not units or number >= units[0].queue_offset:
        return log
    return _at(log, level, units[0].queue_offset)


def _done(log: CommitLog, delivery: Delivery, waits: Waiting | None) -> CommitLog:
    refusals = tuple(each for each in log.refusals if each[0] != delivery.level)
    log = log.changed(delivered=(*log.delivered, delivery), refusals=refusals)
    return joined(log, Pending(delivery.level, delivery.number, waits))


def _refused(log: CommitLog, level: int) -> CommitLog:
    refusals = dict(log.refusals)
    return log.changed(refusals=tuple(sorted({**refusals, level: refusals.get(level, 0) + 1}.items())))


def retry_ms(log: CommitLog, level: int, *, layout: Layout) -> int:
    """Return the pause before a level tries again a copy that was just refused."""
    times = dict(log.refusals)[level] if layout.pending_copies else 1
    return min(times * RETRY_MS, RETRY_MS_MAX)


def _at(log: CommitLog, level: int, number: int) -> CommitLog:
    return log.changed(delays=tuple(sorted({**dict(log.delays), level: number}.items())))


# ---- what is saved ---------------------------------------------------------------------------------------------------


def save_round(
    log: CommitLog, *, now_ms: int, sync_fails: bool = False, write_fails: bool = False
) -> tuple[CommitLog, bool]:
    """Return the log after a round of the save, and whether no save failed.

    The first sync may fail, and the first commit.
    """
    if log.delays_due_ms is not None and now_ms < log.delays_due_ms:
        return log, True
    is_saved = log.poisoned or log.delays == log.saved_delays
    if not is_saved:
        was_durable = log.flushed_offset == log.end_offset
        log, durable = flush(log, sync_fails=sync_fails, write_fails=write_fails)
        is_saved = durable and not (was_durable and sync_fails)
        log = log.changed(saved_delays=log.delays) if is_saved else log
    return log.changed(delays_due_ms=now_ms + (SAVE_INTERVAL_MS if is_saved else PAUSE_AFTER_FAILURE_MS)), is_saved


def loaded(log: CommitLog, saved: Progress, *, layout: Layout) -> Progress:
    """Return saved progress as an open takes it: within the bounds of the queues."""
    bounds = all_bounds(log, layout) if saved else {}
    return tuple((level, _within(number, bounds.get(_queue(level), (0, 0)))) for level, number in saved)


def _queue(level: int) -> tuple[str, int]:
    return SCHEDULE_TOPIC, level - 1


def _within(number: int, bounds: tuple[int, int]) -> int:
    first, end = bounds
    return min(max(number, first), end)


def opened(log: CommitLog, *, layout: Layout) -> CommitLog:
    """Return a log just opened with the saved progress; corrected progress is saved at once."""
    if layout.role == "SLAVE":
        return log.changed(delays=log.saved_delays)  # the progress of its master
    table = loaded(log, log.saved_delays, layout=layout)
    return log.changed(delays=table, saved_delays=table)


def left_out(log: CommitLog, *, layout: Layout) -> list[tuple[int, int]]:
    """Return level and number of each message before its level's progress without a copy.

    A correct store has none.
    """
    done, table = {delivery[:2] for delivery in log.delivered}, dict(log.delays)
    return [
        (level, unit.queue_offset)
        for level, units in units_of_levels(log, layout).items()
        for unit in units
        if unit.queue_offset < table.get(level, 0) and (level, unit.queue_offset) not in done
    ]


def expired_are_passed_by(log: CommitLog, *, oldest_offset: int, layout: Layout) -> CommitLog:
    """Return a log whose older files may have reappeared.

    A level whose progress is after their expired messages has passed these by for good.
    """
    back = log.changed(min_offset=oldest_offset, hanging=None)
    done = {delivery[:2] for delivery in log.delivered}
    gone = (
        Delivery(level, unit.queue_offset, unit.record.end_offset)
        for level, units in units_of_levels(back, layout).items()
        for unit in units
        if unit.record.offset < log.min_offset and (level, unit.queue_offset) not in done
    )
    return log.changed(delivered=(*log.delivered, *gone))


def passed_by(log: CommitLog, *, layout: Layout) -> CommitLog:
    """Return the log after its delay progress was overwritten from outside.

    Messages that the progress skips are no longer owed.
    """
    units = units_of_levels(log, layout)
    ends = {(level, unit.queue_offset): unit.record.end_offset for level, of in units.items() for unit in of}
    given_up = (Delivery(*place, ends[place]) for place in left_out(log, layout=layout))
    return log.changed(delivered=(*log.delivered, *given_up))
