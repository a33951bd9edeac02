"""A round of delivery under an aimed fault: each level goes on as far as the disk lets it, in order (contract 12).

How far each level has come, the store says. It is held to that: for each message it has gone on behind, and for no
other, the copy is in the log, in the order of the round. A level stops at a message that is not due, at the end of what
was dispatched, or at a copy that a disk has refused; the file that it did not fit into may be closed by then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from model import commitlog, schedule
from model.commitlog import Appended
from model.delay import SCHEDULE_TOPIC
from model.delayed_copy import copy_of
from model.dispatch import next_queue_offset
from model.message import Message
from model.pending import in_line
from model.queues import Unit
from model.schedule import DELIVERIES_OF_A_ROUND, FINAL
from model.state import CommitLog, Delivery, Layout, Record
from properties.contract import GuaranteeBroken, observed

if TYPE_CHECKING:
    from properties.lockstep.trial import Trial

__all__ = ["behind_answered_copies", "deliver_under_fault"]


@dataclass(frozen=True, slots=True)
class _Round:
    """What a round may have made of the log by then, and the copies it has put."""

    log: CommitLog
    copies: tuple[Record, ...] = ()


def deliver_under_fault(trial: "Trial") -> CommitLog:
    """Let the schedule service make a round; return the log with what it has put, as it says itself."""
    before, readable_end = trial.log, trial.store.committed_offset
    _makes_a_round(trial)
    said = dict(observed("delay_offsets", trial.store.delay_offsets))
    # dispatch may have come further than anybody knows under a fault
    dispatched = before.changed(dispatched_offset=before.end_offset, buffers=())
    levels = schedule.units_of_levels(dispatched, trial.layout)
    for level in said.keys() - levels.keys():
        _has_passed_the_expired(trial, level, said[level])
    rounds, refused = [_Round(before)], False
    for level, units in levels.items():
        done, following = _gone_on_behind(trial, level, units, said.get(level))
        rounds = [_with_copies(each, level, done, trial=trial) for each in rounds]
        if following is not None and _was_tried(trial, following, level, readable_end):
            _is_refused_rightly(trial, rounds[0].log, following, level)
            rounds += [_Round(closed, each.copies) for each in rounds if (closed := _closed(each.log, trial.layout))]
            refused = True
    return _as_found(trial, rounds, said, refused=refused)


def _has_passed_the_expired(trial: "Trial", level: int, said: int) -> None:
    """A level without a message stays where it is, or passes by what its queue still has of those that have expired."""
    before = dict(trial.log.delays).get(level, 0)
    end = next_queue_offset(trial.log, (SCHEDULE_TOPIC, level - 1), layout=trial.layout)
    if not before <= said <= max(before, end):
        raise GuaranteeBroken(12, "a level without a message goes on", f"{before} to {end}", str(said))


def _gone_on_behind(
    trial: "Trial", level: int, units: Sequence[Unit], said: int | None
) -> tuple[list[Unit], Unit | None]:
    """Return the messages that a level says it has gone on behind in this round, and the one that it tried then."""
    before = dict(trial.log.delays).get(level, units[0].queue_offset)
    begin, end = max(before, units[0].queue_offset), before if said is None else said
    if not before <= end <= max(begin, units[-1].queue_offset + 1):
        raise GuaranteeBroken(12, f"level {level} goes back, or beyond its end", f"{before} or more", str(end))
    done = [unit for unit in units if begin <= unit.queue_offset < end]
    if any(unit.tags_code > trial.clock_ms for unit in done):
        raise GuaranteeBroken(12, f"level {level} delivers what is not due", f"until {trial.clock_ms}", str(end))
    left = [unit for unit in units if unit.queue_offset >= max(begin, end)]
    return done, left[0] if left and len(done) < DELIVERIES_OF_A_ROUND else None


def _makes_a_round(trial: "Trial") -> None:
    service = trial.surroundings.service("schedule")
    found = None if service is None else observed("step", service.step)
    if found is None or (found.failed and not trial.files.fired):
        raise GuaranteeBroken(16, "delivery gives up on a disk that lets nothing fail", "a round", str(found))


def _with_copies(by_then: _Round, level: int, units: Sequence[Unit], *, trial: "Trial") -> _Round:
    """Return a round in which a level has gone on behind these messages: with a copy, but for those that have none."""
    log, copies = by_then.log, by_then.copies
    for unit in units:
        copy, end_offset = copy_of(unit.record.message), unit.record.end_offset
        if copy is not None:
            log, appended = _put(trial, log, copy)
            if not appended.records and appended.status not in FINAL:
                raise GuaranteeBroken(12, f"level {level} goes on behind a copy that cannot be in the log")
            copies += appended.records
            end_offset = appended.records[-1].end_offset if appended.records else end_offset
        log = log.changed(delivered=(*log.delivered, Delivery(level, unit.queue_offset, end_offset)))
    return _Round(log, copies)


def _put(trial: "Trial", log: CommitLog, copy: Message) -> tuple[CommitLog, Appended]:
    layout = replace(trial.layout, fast_fail=False)
    return commitlog.append(log, copy, layout=layout, store_timestamp=trial.clock_ms)


def _was_tried(trial: "Trial", unit: Unit, level: int, readable_end: int) -> bool:
    """Whether a message is due, in its queue and readable, so that its copy was put, or refused."""
    end = trial.store.max_offset_in_queue(SCHEDULE_TOPIC, level - 1)
    is_there = unit.queue_offset < end and unit.record.end_offset <= readable_end
    return is_there and unit.tags_code <= trial.clock_ms and not trial.log.poisoned


def _is_refused_rightly(trial: "Trial", log: CommitLog, unit: Unit, level: int) -> None:
    """What has no copy is passed by; any other is refused by a disk that fails, or by a store that takes no puts.

    Of a message whose dispatch the disk has broken off its level may have heard nothing yet.
    """
    if unit.record.end_offset > trial.store.committed_offset - trial.store.dispatch_behind_bytes:
        return
    copy = copy_of(unit.record.message)
    appended = None if copy is None else _put(trial, log, copy)[1]
    is_refused = appended is not None and not appended.records and appended.status not in FINAL
    may_be = appended is not None and appended.records and (trial.files.fired or trial.layout.fast_fail)
    if not is_refused and not may_be:
        raise GuaranteeBroken(12, f"level {level} is held up by message {unit.queue_offset}, which is due")


def _closed(log: CommitLog, layout: Layout) -> CommitLog | None:
    """Return the log with its last file closed for a next one that was refused, None where it ends with it anyway."""
    end_offset = log.files * layout.file_bytes
    return log.changed(end_offset=end_offset, files=log.files + 1) if end_offset > log.end_offset else None


def _as_found(trial: "Trial", rounds: Sequence[_Round], said: Mapping[int, int], *, refused: bool) -> CommitLog:
    """Return the log of the round that ends where the store's does, and say what it has written."""
    found = [each for each in rounds if each.log.end_offset == trial.store.max_offset]
    if not found:
        expected = " or ".join(str(each.log.end_offset) for each in rounds)
        sentence = "a round under a fault says otherwise than it puts"
        raise GuaranteeBroken(12, sentence, f"a log that ends at {expected}", str(trial.store.max_offset))
    log, copies = found[0].log, found[0].copies
    trial.files.fault_mattered |= refused and trial.files.fired > 0
    trial.appended(copies, end_after=log.end_offset)
    trial.happened("delivered_under_a_fault", len(copies))
    trial.happened("delivery_refused_under_a_fault", refused)
    return log.changed(delays=tuple(sorted(said.items())))


def behind_answered_copies(trial: "Trial") -> CommitLog:
    """Return the log with each level gone on behind copies that stood in line, as far as a closed store says it has.

    A close answers all of them, and they are in the log, whatever the disk has let fail. A slave delivers nothing: its
    progress is what its master sends.
    """
    if trial.layout.role == "SLAVE":
        return trial.log
    log, said = trial.log, dict(observed("delay_offsets", trial.store.delay_offsets))
    for level, number in said.items():
        least, line = dict(log.delays).get(level, 0), in_line(log, level)
        most = line[-1].number + 1 if line else least
        if not least <= number <= most:
            raise GuaranteeBroken(12, f"level {level} goes on at a close", f"{least} to {most}", str(number))
    return log.changed(delays=tuple(sorted(said.items())), pending=())
