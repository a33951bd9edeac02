"""What readers get of a store whose log was damaged: nothing that is not theirs, all that verifies (contract 7)."""

from collections.abc import Iterator, Sequence
from functools import partial

from impl.store import MessageStore
from model.dispatch import Queue
from model.queues import Unit
from model.state import Record
from properties.contract import GuaranteeBroken, observed
from properties.judge.derived_ledger import DerivedLedger, Key
from properties.judge.reads import Stored
from properties.lockstep.damage import Lost

__all__ = ["readers_get_what_verifies"]

_AT_ONCE = 32
_QUERY_MAX = 1 << 16


def readers_get_what_verifies(
    store: MessageStore,
    derived: DerivedLedger,
    lost: Lost,
    *,
    begin: int,
    end: int,
    stored: Stored,
    is_complete: bool,
) -> None:
    """Read each queue to its end, and query each key, of a damaged store whose log went from `begin` to `end`.

    `is_complete` says that queues and index are what they were: then nothing that verifies may be passed by.
    """
    for queue, memory, count in derived.queues_at(end):
        units = memory.units[min(memory.first_at(begin), count) : count]
        brought = list(_read_through(store, queue, units, stored))
        _compare(f"a consumer of queue {queue}", brought, [unit.record for unit in units], lost, is_complete)
    for key in derived.keys:
        records = derived.records_with(key, end, begin)
        _compare(f"a query for {key}", _found(store, key, records, stored), records, lost, is_complete)


def _read_through(store: MessageStore, queue: Queue, units: Sequence[Unit], stored: Stored) -> Iterator[Record]:
    """Yield what pulls bring one after the other, as a consumer asks for them."""
    by_number = {unit.queue_offset: unit.record for unit in units}
    number, last = store.min_offset_in_queue(*queue), store.max_offset_in_queue(*queue)
    while number < last:
        ask = partial(store.get_message, *queue, number, max_msg_nums=_AT_ONCE)
        with observed("get_message", ask) as pulled:
            for message in pulled.messages:
                record = by_number.get(message.queue_offset)
                if record is None or bytes(message) != stored(record):
                    sentence = f"a pull from queue {queue} of a damaged store brings what was not put there"
                    expected = "nothing" if record is None else f"the record at offset {record.offset}"
                    raise GuaranteeBroken(4, sentence, expected, f"the one at offset {message.offset}")
                yield record
            following, status = pulled.next_begin_offset, pulled.status.value
        if following <= number:
            if status == "OFFSET_FOUND_NULL":  # the log ends in front of this one
                return
            sentence = f"a consumer of queue {queue} of a damaged store does not get on"
            raise GuaranteeBroken(17, sentence, f"behind {number}, up to {last}", f"{following}, {status}")
        number = following


def _found(store: MessageStore, key: Key, records: Sequence[Record], stored: Stored) -> list[Record]:
    """Return what a query for a key brings that asks for all records which have it."""
    by_offset, brought = {record.offset: record for record in records}, []
    with observed("query_message", partial(store.query_message, *key, max_num=_QUERY_MAX)) as found:
        for message in found.messages:
            record = by_offset.get(message.offset)
            if record is None or bytes(message) != stored(record):
                sentence = f"a query for {key} of a damaged store brings another message"
                raise GuaranteeBroken(5, sentence, f"of those at {sorted(by_offset)}", f"the one at {message.offset}")
            brought.append(record)
    return brought


def _compare(who: str, brought: Sequence[Record], records: Sequence[Record], lost: Lost, is_complete: bool) -> None:
    offsets = [record.offset for record in brought]
    verified = [record.offset for record in records if lost.spares(record)]
    if offsets != (verified if is_complete else [offset for offset in verified if offset in set(offsets)]):
        raise GuaranteeBroken(7, f"{who} of a damaged store gets the wrong messages", str(verified), str(offsets))
