"""The verbs that read, each compared with the model, and what the queues of an open store may look like at any time.

Nothing may be read under the running flag that forbids it; that, too, is compared.
"""

from impl.errors import NotReadable
from impl.running_flags import RunningFlag
from model import commitlog
from model.dispatch import Queue
from model.operations import GetMessage, OffsetByTime, QueryKey
from model.state import CommitLog
from properties.contract import GuaranteeBroken, observed
from properties.judge.derived_ledger import Key
from properties.judge.reads import compare_first_times, compare_pull, compare_query, compare_time
from properties.lockstep.service_verbs import ServiceVerbs

__all__ = ["ReadingVerbs"]

_UNKNOWN_QUEUE: Queue = ("nobody wrote to this", 0)
_UNKNOWN_KEY: Key = ("nobody wrote to this", "k")
_NO_END_MS = 2**63 - 1


class ReadingVerbs(ServiceVerbs):
    """Reads of a trial: by physical offset, through a queue, by key, by time."""

    def get(self, record: int, shift: int) -> None:
        """Get at or beside a record of a store that is open; it serves exactly what the model holds there."""
        if self.closed:
            return
        base = self.log.records[record % len(self.log.records)].offset if self.log.records else 0
        self.get_at(base + shift, self.log)

    def get_at(self, offset: int, log: CommitLog) -> None:
        """Compare one get with the model."""
        status, expected = commitlog.get(log, offset)
        result = observed("get", lambda: self.store.get(offset))
        if result.status.value != status.value:
            raise GuaranteeBroken(
                8, f"a get at offset {offset} answers otherwise than the model", status.value, result.status.value
            )
        if expected is not None and result.message is not None:
            message, found = expected.message, result.message
            served = (found.topic, found.body, found.queue_id, found.queue_offset, found.store_timestamp)
            put = (message.topic, message.body, message.queue_id, expected.queue_offset, expected.store_timestamp)
            if served != put:
                raise GuaranteeBroken(1, f"the message served at offset {offset} is not the one put there")

    # ---- through queues and index --------------------------------------------------------------------------------

    def get_message(self, operation: GetMessage) -> None:
        """Pull from a queue and compare."""
        if self._may_read():
            queue = self._queue(operation.queue)
            first, _ = self._bounds(queue)
            tags = operation.tags.split("||") if operation.tags else None
            answer = compare_pull(
                self.store,
                self.log,
                self.layout,
                queue,
                first + operation.shift,
                stored=self.ledger.stored,
                max_msg_nums=operation.max_msg_nums,
                tags=tags,
            )
            self.happened(f"pulled_{answer.status.value}")
            self.happened("pulled_by_tags", bool(tags) and bool(answer.records))
            self.happened("pulled_in_parts", bool(answer.records) and answer.next_begin_offset < answer.max_offset)

    def query_key(self, operation: QueryKey) -> None:
        """Query a key and compare."""
        if self._may_read():
            keys = list(self.derived.keys)
            key = keys[operation.key % len(keys)] if keys and operation.key >= 0 else _UNKNOWN_KEY
            start_ms = self.log.records[0].store_timestamp if self.log.records else 0
            begin_ms = start_ms + operation.begin_ms
            brought = compare_query(
                self.store,
                self.log,
                self.layout,
                key,
                stored=self.ledger.stored,
                max_num=operation.max_num,
                begin_ms=begin_ms,
                end_ms=_NO_END_MS if operation.window_ms < 0 else begin_ms + operation.window_ms,
            )
            self.happened("found_by_key", brought > 0)
            self.happened("found_several_by_key", brought > 1)
            all_there_are = len(self.derived.records_with(key, self.log.dispatched_offset, self.log.min_offset))
            self.happened("window_left_some_out", 0 < brought < all_there_are)

    def offset_by_time(self, operation: OffsetByTime) -> None:
        """Ask for the offset of a time in a queue, and for the first times, and compare."""
        if self._may_read():
            queue = self._queue(operation.queue)
            memory = self.derived.queues.get(queue)
            units = memory.units if memory is not None else []
            at_ms = units[operation.record % len(units)].record.store_timestamp if units else 0
            compare_time(self.store, self.log, self.layout, queue, at_ms + operation.shift_ms)
            compare_first_times(self.store, self.log, self.layout, queue)
            self.happened("looked_up_by_time", bool(units))

    def _may_read(self) -> bool:
        """Whether the store may be asked; where the running flags forbid it, it has to say so."""
        if self.closed or self.is_partly_dispatched:
            return False
        if not self.log.flags & RunningFlag.NOT_READABLE:
            return True
        try:
            self.store.get_message(*_UNKNOWN_QUEUE, 0)
        except NotReadable:
            return False
        raise GuaranteeBroken(8, "a store that may not be read is read", "NotReadable", "an answer")

    def _queue(self, number: int) -> Queue:
        queues = list(self.derived.queues)
        return queues[number % len(queues)] if queues and number >= 0 else _UNKNOWN_QUEUE

    def _bounds(self, queue: Queue) -> tuple[int, int]:
        """Return minimum and maximum of a queue as far as the model has dispatched."""
        memory = self.derived.queues.get(queue)
        count = memory.count_at(self.log.dispatched_offset) if memory is not None else 0
        if memory is None or not count:
            return 0, 0
        first = memory.units[0].queue_offset
        return first + min(memory.first_at(self.log.min_offset), count), first + count

    # ---- after every verb ----------------------------------------------------------------------------------------

    def compare_queues(self) -> None:
        """Contract 17: each queue of an open store ends where dispatch has come to, so none ever goes back."""
        if self.closed:
            return
        behind_bytes = max(0, self.log.readable_end - self.log.dispatched_offset)
        if self.is_partly_dispatched:
            self._queues_are_at_most_dispatched()
            return
        for queue in dict.fromkeys((*self.derived.queues, *observed("queues", self.store.queues))):
            bounds = self.store.min_offset_in_queue(*queue), self.store.max_offset_in_queue(*queue)
            if bounds != self._bounds(queue):
                expected = str(self._bounds(queue))
                raise GuaranteeBroken(17, f"the bounds of queue {queue} are wrong", expected, str(bounds))
        if self.store.dispatch_behind_bytes != behind_bytes:
            found, sentence = str(self.store.dispatch_behind_bytes), "dispatch is not where its steps have led it"
            raise GuaranteeBroken(16, sentence, str(behind_bytes), found)

    def _queues_are_at_most_dispatched(self) -> None:
        """After a step that failed half-way a queue ends somewhere between what it had and what was readable then.

        A log that is poisoned since has become less readable, and no queue goes back for that.
        """
        readable_end = self.log.end_offset if self.log.poisoned else self.log.readable_end
        for queue, memory in self.derived.queues.items():
            least, most = self._bounds(queue)[1], memory.count_at(readable_end)
            if not least <= self.store.max_offset_in_queue(*queue) <= most:
                found = str(self.store.max_offset_in_queue(*queue))
                raise GuaranteeBroken(17, f"the end of queue {queue} is wrong", f"{least} to {most}", found)
