"""Compare every public read of an open store with the model after each operation.

An operation may leave one place of the store wrong that no later operation of the run reads. So after each operation
all reads are asked at one place: at a physical offset, and at a number of a queue. Places are taken in turn, and each
lies at a limit or beside it. Expected answers are those of the model, and the bytes that each put wrote (contracts 1,
8, 11, 16, 17).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from tornpage.impl.message.message import GetResult
from tornpage.impl.read.read_buffer import ReadBuffer
from tornpage.impl.service.running_flags import RunningFlag
from tornpage.model import commitlog, reading
from tornpage.model.answers import message_id
from tornpage.model.dispatch import Queue
from tornpage.model.queues import Unit, all_bounds, empty_queues, queue_of
from tornpage.model.state import Record
from tornpage.properties.contract import GuaranteeBroken, observed
from tornpage.properties.judge.answers import compare_first_times, compare_pull, compare_time
from tornpage.properties.judge.buffers import ExpectedBuffer, buffer_is_right, is_released, message_is_right
from tornpage.properties.judge.rulings import queue_text
from tornpage.properties.lockstep.pair import UNKNOWN_QUEUE, Pair

__all__ = ["PublicReads"]

_COUNTS = (1, 2, 32, 5, 33, 0)
_STEP = 7
"""The distance of records that follow each other in turn. It shares no divisor with most numbers of records."""


class PublicReads:
    """Asks the reads of one lockstep run in turn."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._turn = 0

    def answer(self) -> None:
        """Ask all reads at the next place. Raises GuaranteeBroken for the first wrong answer."""
        pair = self._pair
        if pair.closed:
            return
        self._turn += 1
        self._states()
        self._at_an_offset()
        if not pair.is_partly_dispatched:
            self._in_a_queue()

    # ---- the store as a whole ------------------------------------------------------------------------------------

    def _states(self) -> None:
        pair, store = self._pair, self._pair.store
        _is_answered(8, "leaked_buffers", 0, lambda: store.leaked_buffers)
        if not pair.had_faults:
            _is_answered(16, "dispatch_error", None, lambda: store.dispatch_error)
        if pair.is_partly_dispatched:
            return
        known = set(observed("queues", store.queues))
        filled = {queue for queue, (_, most) in all_bounds(pair.log, pair.layout).items() if most}
        if not filled <= known <= filled | empty_queues(pair.log, pair.layout):
            raise GuaranteeBroken(17, "the store lists other queues than the model", str(filled), str(known))

    # ---- by physical offset --------------------------------------------------------------------------------------

    def _at_an_offset(self) -> None:
        """Ask at the begin of a record or beside it, or at a limit of the log."""
        pair, turn = self._pair, self._turn
        log, file_bytes = pair.log, pair.settings.file_bytes
        limits = [log.min_offset, log.readable_end, log.end_offset, log.end_offset // file_bytes * file_bytes]
        shift = (0, 0, 0, -1, 1)[turn % 5]
        if turn % 4 and log.records:
            newest = len(log.records) - 1
            record = log.records[newest if turn % 4 == 1 else turn * _STEP % (newest + 1)]
            offset = record.offset + shift
        else:
            offset = limits[turn // 4 % len(limits)] + shift
        status, expected = commitlog.get(log, offset)
        found: GetResult = observed("get", partial(pair.store.get, offset))
        if found.status.value != status.value:
            sentence = f"a get at offset {offset} has another status than the model"
            raise GuaranteeBroken(8, sentence, status.value, found.status.value)
        self._compare(found, expected, offset)
        self._by_id(offset, expected)
        for size in (None, *(() if expected is None else (expected.size_bytes, expected.size_bytes + turn % 3 - 1))):
            self._selected(offset, size, expected)
        self._rest_of_file(offset)

    def _compare(self, found: GetResult, expected: Record | None, offset: int) -> None:
        if (found.message is None) != (expected is None):
            raise GuaranteeBroken(8, f"a get at offset {offset} has no message with its status, or one without it")
        if found.message is not None and expected is not None:
            message_is_right(found.message, self._expected(expected))

    def _expected(self, record: Record) -> ExpectedBuffer:
        pair = self._pair
        stored = pair.memory.ledger.stored(record)
        return ExpectedBuffer(record.offset, record.queue_offset, stored, pair.layout.drops_joined)

    def _by_id(self, offset: int, expected: Record | None) -> None:
        """Ask by message id; another host, and a text that is no id, find nothing."""
        host = ("127.0.0.1", 10911) if expected is None else expected.message.store_host
        for asked, wanted in ((host, expected), ((host[0], host[1] ^ 1), None)):
            text = message_id(asked, offset)
            text = text.lower() if self._turn % 2 else text
            found = observed("message_by_id", partial(self._pair.store.message_by_id, text))
            status = "OFFSET_FOUND_NULL" if wanted is None else "FOUND"
            if found.status.value != status:
                raise GuaranteeBroken(8, f"the message with id {text} has a wrong status", status, found.status.value)
            self._compare(found, wanted, offset)

    def _selected(self, offset: int, size: int | None, expected: Record | None) -> None:
        found = observed("select_message_by_offset", partial(self._pair.store.select_message_by_offset, offset, size))
        wanted = expected if expected is not None and size in (None, expected.size_bytes) else None
        if (found is None) != (wanted is None):
            asked, answers = f"{offset} with {size} bytes", [repr(each) for each in (wanted, found)]
            raise GuaranteeBroken(8, f"the selection of a message at {asked} is wrong", *answers)
        if found is not None and wanted is not None:
            _is_answered(17, "queue_offset of a selected message", wanted.queue_offset, lambda: found.queue_offset)
            message_is_right(observed("message", found.message), self._expected(wanted))
            _ends_released(found, wanted.offset, self._pair.memory.ledger.stored(wanted))

    def _rest_of_file(self, offset: int) -> None:
        """Compare the bytes from an offset to the end of its file, which replication sends."""
        pair, log, file_bytes = self._pair, self._pair.log, self._pair.settings.file_bytes
        found = observed("commit_log_data", partial(pair.store.commit_log_data, offset))
        is_there = log.min_offset <= offset < log.readable_end
        if (found is not None) != is_there:
            texts = "bytes" if is_there else "None", repr(found)
            raise GuaranteeBroken(8, f"the log data at offset {offset} is wrong", *texts)
        if found is not None:
            base = offset // file_bytes * file_bytes
            end = min(base + file_bytes, log.readable_end)
            content = pair.memory.ledger.expected(base, pair.log.committed_offset)
            _ends_released(found, offset, content[offset - base : end - base])

    # ---- by queue and number -------------------------------------------------------------------------------------

    def _in_a_queue(self) -> None:
        """Ask at one of the limits of a queue, or inside it."""
        pair, turn = self._pair, self._turn
        queues = list(pair.memory.derived.queues)
        queue = queues[turn // 2 % len(queues)] if queues and turn % 16 else UNKNOWN_QUEUE
        least, most = pair.bounds(queue)
        inside = least + turn * _STEP % (most - least) if most > least else least
        number = (inside, inside, least, most - 1, most, least - 1, most + 1)[turn % 7]
        units = queue_of(pair.log, pair.layout, queue)
        self._numbers(queue, number, units)
        if not pair.log.flags & RunningFlag.NOT_READABLE:
            compare_pull(
                pair.store,
                pair.log,
                pair.layout,
                queue,
                number,
                stored=pair.memory.ledger.stored,
                max_msg_nums=_COUNTS[turn % len(_COUNTS)],
                tags=(None, None, ("TagA",), ("TagA", "TagB"))[turn % 4],
            )
        times = [unit.record.store_timestamp for unit in units if unit.queue_offset == number] or [turn]
        compare_time(pair.store, pair.log, pair.layout, queue, times[0] + turn % 3 - 1)
        compare_first_times(pair.store, pair.log, pair.layout, queue)

    def _numbers(self, queue: Queue, number: int, units: tuple[Unit, ...]) -> None:
        """Compare what is known of a queue and of one number in it."""
        pair, store = self._pair, self._pair.store
        log, layout, readable_end = pair.log, pair.layout, pair.log.readable_end
        least, most = pair.bounds(queue)
        unit = next((each for each in units if each.queue_offset == number), None)
        is_readable = unit is not None and unit.record.end_offset <= readable_end
        end = number + 3
        ids = {
            message_id(each.record.message.store_host, each.record.offset): each.queue_offset
            for each in units
            if number <= each.queue_offset < end and each.record.end_offset <= readable_end
        }
        expected: dict[str, tuple[object, Callable[[], Any]]] = {
            "min_offset_in_queue": (least, partial(store.min_offset_in_queue, *queue)),
            "max_offset_in_queue": (most, partial(store.max_offset_in_queue, *queue)),
            "message_total_in_queue": (most - least, partial(store.message_total_in_queue, *queue)),
            "commit_log_offset_in_queue": (
                unit and unit.record.offset,
                partial(store.commit_log_offset_in_queue, *queue, number),
            ),
            "store_timestamp_in_queue": (
                unit.record.store_timestamp if unit is not None and is_readable else None,
                partial(store.store_timestamp_in_queue, *queue, number),
            ),
            "is_in_disk": (
                unit is not None and reading.is_in_disk(log, layout, unit.record),
                partial(store.is_in_disk, *queue, number),
            ),
            "message_ids_in_queue": (ids, partial(store.message_ids_in_queue, *queue, number, end)),
        }
        for name, (wanted, call) in expected.items():
            _is_answered(17, f"{name} of queue {queue_text(queue)} at {number}", wanted, call)


def _is_answered(contract: int, what: str, expected: object, call: Callable[[], object]) -> None:
    found = observed(what, call)
    if found != expected or type(found) is not type(expected):
        raise GuaranteeBroken(contract, f"{what} is not that of the model", repr(expected), repr(found))


def _ends_released(buffer: ReadBuffer, offset: int, content: bytes) -> None:
    """Compare a buffer, leave its `with` statement, and compare it again."""
    with buffer:
        buffer_is_right(buffer, offset, content)
    is_released(buffer)
