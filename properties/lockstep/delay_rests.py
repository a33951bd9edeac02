"""What is left to deliver after a recovery: with time, everything comes (contract 12)."""

from functools import partial
from typing import TYPE_CHECKING

from model import schedule
from model.flushing import flush
from model.pending import answered
from model.state import CommitLog, Record
from model.waiting import flushed
from properties.contract import GuaranteeBroken, observed
from properties.judge.delay_judges import opened_log
from properties.judge.ledger import compare_record
from properties.judge.recovered import Recovered
from properties.program.hand_driven import HandDriven

if TYPE_CHECKING:
    from properties.lockstep.recovery_verbs import RecoveryVerbs

__all__ = ["delivers_the_rest"]


def delivers_the_rest(trial: "RecoveryVerbs", found: Recovered) -> None:
    """Contract 12: a store that was just recovered, and that nobody needs any more, delivers all that waits.

    Each message comes at the first moment at which it is due, in the order of its level, and not a moment before.
    """
    log, surroundings = opened_log(found), trial.surroundings
    now_ms, append_fails, replica = trial.now_ms, surroundings.append_fails, surroundings.replica
    due_ms = None if found.layout.role == "SLAVE" else schedule.earliest_due(log, found.layout)
    if due_ms is None:
        return
    service = surroundings.service_of(found.store, "schedule")
    if service is None:
        raise GuaranteeBroken(16, "the store lacks a service", "schedule", "none of that name")
    copies: list[Record] = []
    surroundings.append_fails, surroundings.replica = False, "none"  # that is for somebody else
    try:
        trial.now_ms = due_ms - 1 - trial.clock_ahead_ms
        _round(found, log, service)
        while due_ms is not None:
            trial.now_ms = max(trial.now_ms, due_ms - trial.clock_ahead_ms)
            log, outcome = schedule.deliver_round(log, layout=found.layout, now_ms=trial.clock_ms)
            _round(found, log, service)
            log = _answered(trial, found, log)
            copies += outcome.records
            due_ms = trial.clock_ms if log.pending else schedule.earliest_due(log, found.layout)
            due_ms = None if outcome.refused else due_ms
        _are_there(found, copies)
        progress = tuple(observed("delay_offsets", found.store.delay_offsets).items())
        if progress != log.delays:
            sentence = "what came after recovery is not what is noted of it"
            raise GuaranteeBroken(12, sentence, str(log.delays), str(progress))
    finally:
        trial.now_ms, surroundings.append_fails, surroundings.replica = now_ms, append_fails, replica
    trial.happened("delivered_after_recovery", len(copies))


def _round(found: Recovered, log: CommitLog, service: HandDriven) -> None:
    """Let the service make a round, and compare where the log ends then."""
    observed("step", service.step)
    if found.store.max_offset != log.end_offset:
        ends, sentence = (str(log.end_offset), str(found.store.max_offset)), "what waits comes otherwise after recovery"
        raise GuaranteeBroken(12, sentence, *ends)


def _answered(trial: "RecoveryVerbs", found: Recovered, log: CommitLog) -> CommitLog:
    """Have the disk answer for the copies that wait for it; there is no replica that could be waited for."""
    service = trial.surroundings.service_of(found.store, "group-commit")
    if not log.pending or service is None:
        return log
    observed("step", service.step)
    after, _ = flush(log)
    return answered(after, lambda each: flushed(each, after))


def _are_there(found: Recovered, copies: list[Record]) -> None:
    """Every copy can be read, and is what the model has put."""
    observed("flush", found.store.flush)
    for record in copies:
        buffer = observed("select_message_by_offset", partial(found.store.select_message_by_offset, record.offset))
        if buffer is None:
            raise GuaranteeBroken(12, f"the copy at {record.offset} cannot be read after recovery")
        file_bytes = found.layout.file_bytes
        with buffer:
            base = record.offset // file_bytes * file_bytes
            compare_record(bytes(buffer), record, base=base, file_bytes=file_bytes)
