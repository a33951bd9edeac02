"""Compare reads with the model: by physical offset, through a queue, by key, by time.

While the running flag forbids reads the store has to refuse them; that is compared as well.
"""

from tornpage.model import commitlog
from tornpage.model.operations import GetMessage, OffsetByTime, QueryKey
from tornpage.model.state import CommitLog
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.judge.answers import compare_first_times, compare_pull, compare_query, compare_time
from tornpage.properties.judge.ledgers import Key
from tornpage.properties.lockstep.compare import may_read
from tornpage.properties.lockstep.counting import counts_one_read
from tornpage.properties.lockstep.pair import Pair

__all__ = ["get", "get_at", "get_message", "offset_by_time", "query_key"]

_UNKNOWN_KEY: Key = ("topic without messages", "k")
_NO_END_MS = 2**63 - 1


def get(pair: Pair, record: int, shift: int) -> None:
    """Get at or near a record of an open store, and compare."""
    if pair.closed:
        return
    base = pair.log.records[record % len(pair.log.records)].offset if pair.log.records else 0
    get_at(pair, base + shift, pair.log)


def get_at(pair: Pair, offset: int, log: CommitLog) -> None:
    """Compare one get with the model."""
    status, expected = commitlog.get(log, offset)
    result = observed("get", lambda: pair.store.get(offset))
    if result.status.value != status.value:
        raise GuaranteeBroken(
            8, f"a get at offset {offset} has another status than the model", status.value, result.status.value
        )
    if expected is not None and result.message is not None:
        message, found = expected.message, result.message
        served = (found.topic, found.body, found.queue_id, found.queue_offset, found.store_timestamp)
        put = (message.topic, message.body, message.queue_id, expected.queue_offset, expected.store_timestamp)
        if served != put:
            raise GuaranteeBroken(1, f"the message served at offset {offset} is not the one put there")


def get_message(pair: Pair, operation: GetMessage) -> None:
    """Pull from a queue and compare."""
    if may_read(pair):
        queue = pair.queue(operation.queue)
        first, _ = pair.bounds(queue)
        tags = operation.tags.split("||") if operation.tags else None
        with counts_one_read(pair.store) as read:
            answer = compare_pull(
                pair.store,
                pair.log,
                pair.layout,
                queue,
                first + operation.shift,
                stored=pair.memory.ledger.stored,
                max_msg_nums=operation.max_msg_nums,
                tags=tags,
                where=operation.where,
            )
            read.append(len(answer.records))
        pair.cover(f"pulled_{answer.status.value}")
        pair.cover("pulled_by_tags", bool(tags) and bool(answer.records))
        pair.cover("pulled_by_properties", bool(operation.where) and bool(answer.records))
        pair.cover("pulled_in_parts", bool(answer.records) and answer.next_begin_offset < answer.max_offset)


def query_key(pair: Pair, operation: QueryKey) -> None:
    """Query a key and compare."""
    if may_read(pair):
        keys = list(pair.memory.derived.keys)
        key = keys[operation.key % len(keys)] if keys and operation.key >= 0 else _UNKNOWN_KEY
        start_ms = pair.log.records[0].store_timestamp if pair.log.records else 0
        begin_ms = start_ms + operation.begin_ms
        brought = compare_query(
            pair.store,
            pair.log,
            pair.layout,
            key,
            stored=pair.memory.ledger.stored,
            max_num=operation.max_num,
            begin_ms=begin_ms,
            end_ms=_NO_END_MS if operation.window_ms < 0 else begin_ms + operation.window_ms,
        )
        pair.cover("found_by_key", brought > 0)
        pair.cover("found_several_by_key", brought > 1)
        all_there_are = len(pair.memory.derived.records_with(key, pair.log.dispatched_offset, pair.log.min_offset))
        pair.cover("window_left_some_out", 0 < brought < all_there_are)


def offset_by_time(pair: Pair, operation: OffsetByTime) -> None:
    """Ask for the offset of a time in a queue and for the first store times, and compare."""
    if may_read(pair):
        queue = pair.queue(operation.queue)
        memory = pair.memory.derived.queues.get(queue)
        units = memory.units if memory is not None else []
        at_ms = units[operation.record % len(units)].record.store_timestamp if units else 0
        compare_time(pair.store, pair.log, pair.layout, queue, at_ms + operation.shift_ms)
        compare_first_times(pair.store, pair.log, pair.layout, queue)
        pair.cover("looked_up_by_time", bool(units))
