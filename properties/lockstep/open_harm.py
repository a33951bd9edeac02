"""Change a byte of a record of the open store, and judge reads (contract 7).

What they may return is `model.verifying`. The byte is put back before the operation ends.
"""

from collections.abc import Sequence
from functools import partial

from tornpage.impl.message.message import GetStatus, Message, PutStatus
from tornpage.impl.read.read_buffer import RecordBuffers
from tornpage.model.dispatch import Queue
from tornpage.model.index import keys_of
from tornpage.model.operations import HarmOpen
from tornpage.model.queues import Unit, queue_of
from tornpage.model.state import Record
from tornpage.model.step import applies
from tornpage.model.verifying import may_return_changed
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.judge.rulings import queue_text
from tornpage.properties.lockstep.compare import predicted
from tornpage.properties.lockstep.pair import Pair

__all__ = ["harm_open"]

_TRAILER_BYTES = 20
_FIXED_BYTES = 88
"""The least bytes of a record before its body."""
_ROOM_BYTES = 512
"""Room in the newest log file for the put that fails, with its topic."""


def harm_open(pair: Pair, harm: HarmOpen) -> None:
    """Carry out the operation on an open store."""
    first, before = len(pair.files.events), pair.begin(harm)
    after, _ = predicted(pair, before, harm)
    if applies(before, harm, pair.layout):
        target = _target(pair, harm)
        if target is not None and _prepared(pair, harm, target):
            _judge(pair, harm, target)
            pair.cover(f"harmed_open_{harm.before}_{pair.settings.verify_reads}")
    pair.end_operation(first, after)


class _Target:
    """A record in a queue, and the place of the byte that is changed."""

    def __init__(self, pair: Pair, queue: Queue, units: Sequence[Unit], number: int, at: int) -> None:
        self.queue = queue
        self.number = units[number].queue_offset
        self.record = units[number].record
        self.others = [unit for unit in units if unit.record.offset != self.record.offset]
        self._pair = pair
        self._at = self.record.offset + at

    def change(self) -> None:
        """Invert the byte in the mapping of the log file; a second call puts it back."""
        file = self._pair.store._log.find(self._at)
        assert file is not None
        file.view[self._at - file.base_offset] ^= 0xFF


def _target(pair: Pair, harm: HarmOpen) -> _Target | None:
    """Return the record and the byte, or None if there is no byte that a checksum covers."""
    log, layout = pair.log, pair.layout
    readable = [
        (queue, units, number)
        for queue in pair.memory.derived.queues
        if (units := [unit for unit in queue_of(log, layout, queue) if unit.record.end_offset <= log.readable_end])
        for number in range(len(units))
    ]
    if not readable:
        return None
    queue, units, number = readable[harm.record % len(readable)]
    record = units[number].record
    body = record.message.body or b""
    body_at = pair.memory.ledger.stored(record).find(body, _FIXED_BYTES)
    if pair.settings.trailer:
        return _Target(pair, queue, units, number, (body_at + harm.byte) % (record.size_bytes - _TRAILER_BYTES))
    return _Target(pair, queue, units, number, body_at + harm.byte % len(body)) if body else None


def _prepared(pair: Pair, harm: HarmOpen, target: _Target) -> bool:
    """Do what the operation says before the change; return whether it could be done."""
    _pull(pair, target)
    match harm.before:
        case "failed_check" | "other":
            target.change()
            _get(pair, target, is_changed=True)
            target.change()
        case "failed_append":
            return _failed_append(pair)
    for unit in target.others if harm.before == "other" else ():
        with _asked(pair, target.queue, unit.queue_offset, 1) as found:
            _compare(pair, target, found, may_return=True)
    return True


def _failed_append(pair: Pair) -> bool:
    """Put a message that the log file refuses; return whether it was refused for that reason."""
    room_bytes = -pair.log.end_offset % pair.settings.file_bytes
    if room_bytes < _ROOM_BYTES or not pair.log.retained:
        return False
    environment = pair.environment
    saved, environment.append_fails = environment.append_fails, True
    answer = observed("put", lambda: pair.store.put(Message("T", b"refused")))
    failed = answer.status is PutStatus.UNKNOWN_ERROR and not environment.append_fails
    environment.append_fails = saved
    return failed


def _judge(pair: Pair, harm: HarmOpen, target: _Target) -> None:
    """Read the record with the changed byte, and after the byte is put back."""
    may_return = may_return_changed(pair.layout.verify_reads, harm.before)
    target.change()
    try:
        with _asked(pair, target.queue, target.number, 32) as found:
            _compare(pair, target, found, may_return=may_return)
            _compare_rest(pair, target, found)
        keys = keys_of(target.record, drops_joined=pair.layout.drops_joined) if pair.layout.index else ()
        for key in dict.fromkeys(keys):
            topic = target.record.message.topic or ""
            with observed("query_message", partial(pair.store.query_message, topic, key, max_num=64)) as found_by_key:
                _compare(pair, target, found_by_key, may_return=may_return)
        _get(pair, target, is_changed=True)
    finally:
        target.change()
    _pull(pair, target)
    _get(pair, target, is_changed=False)


def _pull(pair: Pair, target: _Target) -> None:
    """Read the unchanged record through its queue."""
    with _asked(pair, target.queue, target.number, 1) as found:
        _compare(pair, target, found, may_return=True)
        if [buffer.offset for buffer in found.messages] != [target.record.offset]:
            raise GuaranteeBroken(
                7, f"an intact record of queue {queue_text(target.queue)} is not served after damage was put right"
            )


def _asked(pair: Pair, queue: Queue, number: int, count: int) -> RecordBuffers:
    return observed("get_message", partial(pair.store.get_message, *queue, number, max_msg_nums=count))


def _compare(pair: Pair, target: _Target, found: RecordBuffers, *, may_return: bool) -> None:
    """Check the messages of an answer. Raises GuaranteeBroken for the first wrong one."""
    records = {unit.record.offset: unit.record for unit in target.others}
    records[target.record.offset] = target.record
    for buffer in found.messages:
        observed("message", buffer.message)
        record = records.get(buffer.offset)
        if record is None or bytes(buffer) == pair.memory.ledger.stored(record):
            continue
        if record is not target.record or not may_return:
            setting = pair.layout.verify_reads
            raise GuaranteeBroken(7, f"a read with verify_reads={setting} returns a record that does not verify")


def _compare_rest(pair: Pair, target: _Target, found: RecordBuffers) -> None:
    """Check that the messages after the changed one are served."""
    rest: list[Record] = [unit.record for unit in target.others if unit.queue_offset > target.number]
    offsets = [buffer.offset for buffer in found.messages if buffer.offset != target.record.offset]
    expected = [record.offset for record in rest[: len(offsets)]]
    if offsets != expected or (rest and not offsets and not found.messages):
        raise GuaranteeBroken(7, "a pull past a damaged record returns the wrong messages", str(expected), str(offsets))


def _get(pair: Pair, target: _Target, *, is_changed: bool) -> None:
    """Read the record by its physical offset, which always verifies."""
    status = observed("get", partial(pair.store.get, target.record.offset)).status
    expected = GetStatus.OFFSET_FOUND_NULL if is_changed else GetStatus.FOUND
    if status is not expected:
        raise GuaranteeBroken(7, "a get by physical offset does not verify", expected.value, status.value)
