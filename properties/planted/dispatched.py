"""Bugs of the dispatcher: what it reads, where it goes on, and what ends it (RMQ-B.. and 4.9.3)."""

from dataclasses import replace

from impl.consume_queue import ConsumeQueue
from impl.delay import DelayLevels
from impl.derived import Derived
from impl.derived_floor import DerivedProof
from impl.dispatch_records import dispatch_records, read_record
from impl.dispatching import Dispatched, DispatchRules, QueueRun
from impl.mapped_file_queue import MappedFileQueue
from impl.parts import Parts
from impl.queue_offsets import QueueOffsetTable
from impl.reput import ReputMessages

__all__ = ["BUGS"]


class _LeavesABacklog(ReputMessages):
    """A close does not wait for dispatch."""

    def drain(self) -> None:
        """What the service has not done stays undone."""

    def step(self, now_ms: int) -> int | None:
        super().drain()
        return None


class _BelievesACleanExit(ConsumeQueue):
    """After a clean exit a queue is taken for complete."""

    _loaded_end = 0

    def load(self) -> None:
        super().load()
        self._loaded_end = self.max_offset

    def reconcile(self, run: QueueRun) -> None:
        if not self._clean_exit or run.queue_offset < self._loaded_end:
            super().reconcile(run)


class _EndsWithTheFirstError(ReputMessages):
    """The first error ends the dispatcher for good (RMQ-B12)."""

    _has_ended = False

    def drain(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            super().drain()
            self._has_ended = False


class _SkipsWhatIsHalfThere(Derived):
    """A record that is not all there yet makes dispatch skip everything it can see (RMQ-B15).

    There it is a replica that has received half of it; here it waits in a buffer of the pool.
    """

    def dispatch(self, log: MappedFileQueue, readable_end: int) -> bool:
        seen_end = log.max_offset if readable_end == log.committed_where else readable_end
        moved = super().dispatch(log, seen_end)
        if self.error is not None:
            self.error = None
            self._move_to(seen_end, self.store_timestamp)
        return moved


class _FromTheFurthestQueue(Derived):
    """When a store opens, dispatch goes on where the furthest queue ends; others lack what they lack (hole C9)."""

    _furthest = 0

    def load(self) -> None:
        super().load()
        self._furthest = max((queue.max_physic_offset for queue in self.queues.all()), default=0)

    def _reconcile(self, given: Dispatched) -> None:
        super()._reconcile(given._replace(runs=[run for run in given.runs if self._is_taken(run)]))

    def _is_taken(self, run: QueueRun) -> bool:
        return run.end_offset > self._furthest or run.queue_offset < self.queues.of(run.key).max_offset


class _DelaysKnownTooLate(Derived):
    """Queues are rebuilt before the table of delays is read: delayed messages get a tags code (hole C12)."""

    def reconcile(
        self, log: MappedFileQueue, table: QueueOffsetTable, *, index_timestamp: int, proof: DerivedProof | None
    ) -> None:
        rules = self._rules
        self._rules = replace(rules, delay_levels=DelayLevels(()))
        super().reconcile(log, table, index_timestamp=index_timestamp, proof=proof)
        self._rules = rules


def _null_properties(view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
    """With multi-dispatch, a record without properties is one without a map to look into (RMQ-B73)."""
    given = dispatch_records(view, position, end, rules)
    while rules.multi_dispatch is not None and position < given.end_position:
        record = read_record(view, position, end)
        if isinstance(record, str) or not record.text:
            raise AttributeError("there are no properties to look into")
        position += record.size_bytes
    return given


def _own_queues_only(view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
    """A record gets a unit in its own queue, and in none that it names."""
    given = dispatch_records(view, position, end, rules)
    return given._replace(runs=[run for run in given.runs if not run.named])


BUGS = (
    ("RMQ-B01", "a close with a backlog of dispatch counts as clean, and the next start believes it", 9,
     Parts({ReputMessages: _LeavesABacklog, ConsumeQueue: _BelievesACleanExit})),
    ("RMQ-B12", "the first error ends the dispatcher for good", 17, Parts({ReputMessages: _EndsWithTheFirstError})),
    ("RMQ-B15", "a record that is only half there makes dispatch skip the rest", 16,
     Parts({Derived: _SkipsWhatIsHalfThere})),
    ("RMQ-B73", "a message without properties stops dispatch when multi-dispatch is on", 8,
     Parts({dispatch_records: _null_properties})),
    ("furthest-queue-first", "dispatch goes on where the furthest queue ends", 4,
     Parts({Derived: _FromTheFurthestQueue})),
    ("delays-known-too-late", "queues are rebuilt before the table of delays is read", 4,
     Parts({Derived: _DelaysKnownTooLate})),
    ("named-queue-forgotten", "a record gets no unit in a queue that it names", 17,
     Parts({dispatch_records: _own_queues_only})),
)  # fmt: skip
