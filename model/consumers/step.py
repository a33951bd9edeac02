"""Specify what an event means for a consumer group (contracts 17, 19 to 24).

1. An entry is settled by a success of its listener, by its stored copy, or if the subscription does not match it. It is
   also settled after retention has deleted all its records.
2. A copy has the identity of its message and one more failed try. It is due when the delay of its level has passed.
   After the last try the copy goes to the dead-letter queue.
3. Progress may be stored up to the first entry that is not settled (`first_unsettled`).
4. A power loss keeps the durable part of the log, and any number of the next records. A kill keeps all.
5. After a crash the progress of a queue is one of the values that it had, and not past the end of the queue.

Each function takes a group and an event and returns the next group, or all legal ones. The rules that an event may
break are judged in `tornpage.properties.consumers.judge`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tornpage.model.consumers.events import (
    Arrived,
    Began,
    Crashed,
    Durable,
    Event,
    Expired,
    Finished,
    FirstOffset,
    Granted,
    Opened,
    Pulled,
    Quiet,
    Released,
    Started,
    Stopped,
    Stored,
    StoredProgress,
)
from tornpage.model.consumers.state import Entry, Grant, Group, Held, Place, Queue, Record, Run, dead_topic, retry_topic

__all__ = ["after", "after_crash", "first_unsettled", "legal_progress", "opened_with"]

_SECOND_MS = 1_000


def after(group: Group, event: Event) -> Group:
    """Return the group after an event.

    A power loss is taken as one that keeps the log, until it is `Opened`.
    """
    match event:
        case Stored(record):
            return _stored(group, record)
        case Durable(offset):
            return replace(group, durable=max(group.durable, offset))
        case Crashed():
            return _crashed(group, event)
        case Opened(end, progress, begin):
            return opened_with(group, end, progress, begin=begin)
        case Expired(offset):
            return _expired(group, offset)
        case Started(life):
            return replace(group, running=group.running | {life})
        case Stopped(life):
            return _stopped(group, life)
        case FirstOffset(life, queue, offset):
            place = Place(life, queue)
            held = replace(group.held.get(place, Held()), first=offset)
            return replace(group, held={**group.held, place: held})
        case Granted(life, queue, lease, at_ms, granted_ms):
            return _granted(group, Place(life, queue), Grant(lease, at_ms, granted_ms))
        case Released(life, queue, _):
            place = Place(life, queue)
            return replace(group, grants={key: at for key, at in group.grants.items() if key != place})
        case Pulled(life, queue, _, count, at_ms):
            return _pulled(group, Place(life, queue), count, at_ms)
        case Arrived(life, queue, offsets, _):
            place = Place(life, queue)
            held = group.held.get(place, Held())
            return replace(group, held={**group.held, place: replace(held, arrived=held.arrived | set(offsets))})
        case Began():
            return _began(group, event)
        case Finished():
            return _finished(group, event)
        case StoredProgress(_, queue, _, found):
            return group if found is None else _with_progress(group, queue, found)
        case Quiet():
            return group


def _stored(group: Group, record: Record) -> Group:
    entry, is_dead = record.entry, record.queue.topic == dead_topic(group.rules.group)
    before = {each.entry for each in group.log if each.entry.identity == entry.identity}
    group = group.with_log((*group.log, record))
    if entry.times and (record.level or is_dead):
        group = replace(group, copies={**group.copies, entry: group.copies.get(entry, 0) + 1})
    if not entry.matches:
        return replace(group, settled=group.settled | {entry})
    if is_dead:
        return replace(group, dead=group.dead | {entry.identity}, settled=group.settled | before)
    if record.level:
        return replace(group, settled=group.settled | {entry._replace(times=entry.times - 1)})
    return group


def _crashed(group: Group, event: Crashed) -> Group:
    """Return the group without its broker, with the copies that may be lost.

    `durable` is then what the crash keeps at least. A broker with synchronous flush owes each copy that it has
    confirmed.
    """
    log_end = group.log[-1].end if group.log else 0
    made = log_end if event.log_end is None else min(event.log_end, log_end)
    if not event.is_power_loss:
        return replace(group, is_up=False, durable=made)
    durable = group.durable if event.durable is None else min(event.durable, group.durable)
    excused = group.excused
    if not group.rules.syncs:
        copies = (retry_topic(group.rules.group), dead_topic(group.rules.group))
        excused |= {
            each.entry.identity for each in group.log if durable < each.end <= made and each.queue.topic in copies
        }
    return replace(group, is_up=False, durable=durable, excused=excused)


def after_crash(group: Group) -> Iterator[Group]:
    """Yield a group whose broker has crashed with every log that may be left."""
    least = sum(each.end <= group.durable for each in group.log)
    for count in range(least, len(group.log) + 1):
        yield group.with_log(group.log[:count])


def legal_progress(group: Group, queue: Queue) -> frozenset[int]:
    """Return every progress that a queue may have after a crash. 0 stands for no progress."""
    end = len(group.entries(queue))
    return frozenset(min(each, end) for each in group.was.get(queue, frozenset())) | {0}


def _expired(group: Group, offset: int) -> Group:
    """Return the group after retention.

    An entry without a record is settled, and its message may stay unfinished.
    """
    group = replace(group, begin=offset)
    gone = _deleted(group) - group.settled
    return replace(group, settled=group.settled | gone, excused=group.excused | {each.identity for each in gone})


def _deleted(group: Group) -> frozenset[Entry]:
    """Return the entries of which retention has deleted all records."""
    left = {each.entry for each in group.log if each.end > group.begin}
    return frozenset(each.entry for each in group.log if each.end <= group.begin) - left


def opened_with(group: Group, end: int, progress: Mapping[Queue, int], *, begin: int = 0) -> Group:
    """Return the group after an open that found a log up to an offset, and some progress.

    An entry whose copy is lost is not settled any more, unless its message is finished or deleted by retention. A power
    loss may bring deleted files back.
    """
    group = replace(group.with_log(tuple(each for each in group.log if each.end <= end)), begin=begin)
    deleted = _deleted(group)
    left = {each.entry for each in group.log}
    copied = {each.entry._replace(times=each.entry.times - 1) for each in group.log if each.entry.times}
    dead = {each.entry.identity for each in group.log if each.queue.topic == dead_topic(group.rules.group)}
    settled = frozenset(
        each
        for each in group.settled & left
        if each in copied or each in deleted or not each.matches or each.identity in group.finished | dead
    )
    return replace(
        group,
        is_up=True,
        durable=end,
        settled=settled,
        dead=frozenset(dead),
        copies={},
        progress=dict(progress),
        was={queue: frozenset({offset}) for queue, offset in progress.items()},
    )


def _stopped(group: Group, life: int) -> Group:
    return replace(
        group,
        running=group.running - {life},
        runs={number: run for number, run in group.runs.items() if run.place.life != life},
        held={place: held for place, held in group.held.items() if place.life != life},
        grants={place: at for place, at in group.grants.items() if place.life != life},
    )


def _granted(group: Group, place: Place, grant: Grant) -> Group:
    """Note a grant. A new ownership begins without messages."""
    before = group.grants.get(place)
    is_new = before is None or before.lease != grant.lease
    held = {**group.held, place: Held()} if is_new else group.held
    return replace(group, held=held, grants={**group.grants, place: grant})


def _pulled(group: Group, place: Place, count: int, at_ms: int) -> Group:
    recent = tuple(each for each in group.empty_pulls.get(place, ()) if each > at_ms - _SECOND_MS)
    recent = recent if count else (*recent, at_ms)
    return replace(group, empty_pulls={**group.empty_pulls, place: recent})


def _began(group: Group, event: Began) -> Group:
    place = Place(event.life, event.queue)
    held = group.held.get(place, Held())
    held = replace(held, given=held.given | set(event.offsets))
    run = Run(place, event.offsets, event.entries, event.at_ms, _lease(group, place))
    return replace(group, runs={**group.runs, event.run: run}, held={**group.held, place: held})


def _finished(group: Group, event: Finished) -> Group:
    """Return the group after a result, which may be a success of the first entries only."""
    run = group.runs.get(event.run)
    if run is None:
        return group
    group = replace(group, runs={key: each for key, each in group.runs.items() if key != event.run})
    held = group.held.get(run.place) if _lease(group, run.place) == run.lease else None
    done = len(run.entries) if event.is_success else event.done
    good, failed = run.entries[:done], run.entries[done:]
    tries = {each: group.tries.get(each, 0) + 1 for each in failed}
    asked = {each: group.asked.get(each, frozenset()) | {event.delay_level} for each in failed}
    group = replace(
        group,
        settled=group.settled | set(good),
        finished=group.finished | {each.identity for each in good},
        tries={**group.tries, **tries},
        asked={**group.asked, **asked},
    )
    if held is None:
        return group
    offsets = run.offsets[done:]
    held = replace(held, given=held.given - set(offsets), failed={**held.failed, **dict.fromkeys(offsets, event.at_ms)})
    if group.rules.is_orderly or event.at_ms - run.at_ms < group.rules.hand_over_ms:
        held = replace(held, ended=held.ended | set(run.offsets[:done]))
    return replace(group, held={**group.held, run.place: held})


def _lease(group: Group, place: Place) -> str:
    """Return the lease of a member for a queue, an empty text without one."""
    grant = group.grants.get(place)
    return "" if grant is None else grant.lease


def _with_progress(group: Group, queue: Queue, offset: int) -> Group:
    was = group.was.get(queue, frozenset()) | {offset}
    return replace(group, progress={**group.progress, queue: offset}, was={**group.was, queue: was})


def first_unsettled(group: Group, queue: Queue, begin: int = 0) -> int:
    """Return the first offset from `begin` on that is not settled, or the end."""
    entries = group.entries(queue)
    offset = begin
    while offset < len(entries) and _is_settled(group, entries[offset]):
        offset += 1
    return offset


def _is_settled(group: Group, entry: Entry) -> bool:
    return entry in group.settled or not entry.matches
