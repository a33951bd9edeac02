"""Bugs in the units of consume queues and in their files: appended, proved when a store opens, flushed (4.9.3)."""

from functools import partial

from impl.consume_queue import ConsumeQueue
from impl.consume_queues import ConsumeQueues
from impl.dispatching import QueueRun
from impl.mapped_file import MappedFile
from impl.parts import Parts
from impl.queue_files import QueueFiles
from impl.units import units_in

__all__ = ["BUGS"]


class _OutlivesTheLog(ConsumeQueue):
    """Recovery cuts the log, and units of what is gone stay (RMQ-B02)."""

    def end_reconcile(self, log_min: int) -> bool:
        if self._first_proved is not None:
            self._proved = self.max_offset
        return super().end_reconcile(log_min)

    def _end_of_expired(self, log_min: int) -> int:
        return self.max_offset


class _NothingIsAdded(ConsumeQueue):
    """What the log has and the queue has not is left out when a store opens: dispatch begins at the end (RMQ-B03)."""

    _loaded_end = 0

    def load(self) -> None:
        super().load()
        self._loaded_end = self.max_offset

    def reconcile(self, run: QueueRun) -> None:
        if run.queue_offset < self._loaded_end:
            super().reconcile(run)


class _ToldTwice(ConsumeQueue):
    """A run that is told again is appended again: nobody looks at its number (RMQ-B32)."""

    def _unknown(self, run: QueueRun, known: int) -> QueueRun:
        return run


class _UnitBeforeTheEnd(ConsumeQueue):
    """The unit in front of the end is read, whether or not there is one (RMQ-B33)."""

    def _last_end_offset(self) -> int:
        return self._stored(self.max_offset - 1).end_offset


class _MinimumStays(ConsumeQueue):
    """The minimum of a queue that was cut to nothing stays where it was (RMQ-B34)."""

    _loaded_min = 0

    def load(self) -> None:
        super().load()
        self._loaded_min = self.min_offset

    def end_reconcile(self, log_min: int) -> bool:
        erased = super().end_reconcile(log_min)
        self.min_offset = max(self.min_offset, self._loaded_min)
        return erased


class _TornUnitStays(ConsumeQueue):
    """A unit is right if its offset and size are: its tags code may have been lost in a tear (hole C2)."""

    def _equal(self, run: QueueRun, count: int) -> int:
        if run.ext:
            return super()._equal(run, count)
        pairs = zip(units_in(self._read(self._proved, count)), units_in(run.units), strict=False)
        return next((number for number, (stored, told) in enumerate(pairs) if stored[:2] != told[:2]), count)


class _ZeroIsNew(ConsumeQueue):
    """The log is dispatched again after a restart, and the number 0 is never known to be there (hole C15)."""

    def reconcile(self, run: QueueRun) -> None:
        self.append(run)

    def append(self, run: QueueRun) -> None:
        if run.queue_offset == 0 and self.max_offset:
            self._write(run)
        else:
            super().append(run)

    def end_reconcile(self, log_min: int) -> bool:
        return False


class _RefusedAndForgotten(ConsumeQueue):
    """Units that the disk has no room for are given up, and dispatch goes on (hole C10)."""

    def append(self, run: QueueRun) -> None:
        try:
            super().append(run)
        except OSError:
            return


class _NothingErased(QueueFiles):
    """A cut is one in memory only: the bytes behind it stay in the file (hole C1)."""

    def _cut_file(self, mapped: MappedFile, position: int) -> bool:
        mapped.written_position = min(position - mapped.base_offset, mapped.size_bytes)
        mapped.flushed_position = min(mapped.flushed_position, mapped.written_position)
        return False


class _OneFileARound(QueueFiles):
    """A flush covers one file of each queue, and the checkpoint speaks for all of them (hole C4)."""

    def _unflushed(self) -> tuple[MappedFile, ...]:
        return super()._unflushed()[:1]


class _NamesNotSynced(QueueFiles):
    """The names of new queue files are left to chance."""

    def _sync_names(self) -> None:
        self._names_pending = False


def _with_files(queue_files: type[QueueFiles]) -> Parts:
    return Parts({ConsumeQueues: partial(ConsumeQueues, queue_files=queue_files)})


BUGS = (
    ("RMQ-B02", "recovery cuts the log and leaves the units of what it cut", 4,
     Parts({ConsumeQueue: _OutlivesTheLog})),
    ("RMQ-B03", "dispatch begins at the end of the log, whatever the queues lack", 4,
     Parts({ConsumeQueue: _NothingIsAdded})),
    ("RMQ-B32", "units that are told again are appended again", 17, Parts({ConsumeQueue: _ToldTwice})),
    ("RMQ-B33", "an empty queue file keeps the store from starting", 7, Parts({ConsumeQueue: _UnitBeforeTheEnd})),
    ("RMQ-B34", "a queue that was cut to nothing keeps its minimum", 17, Parts({ConsumeQueue: _MinimumStays})),
    ("torn-unit-stays", "a unit that lost its tags code in a tear is taken for whole", 4,
     Parts({ConsumeQueue: _TornUnitStays})),
    ("zero-is-new", "the first unit of a queue is appended again after a restart", 4,
     Parts({ConsumeQueue: _ZeroIsNew})),
    ("refused-unit-forgotten", "a unit that the disk has no room for is given up", 17,
     Parts({ConsumeQueue: _RefusedAndForgotten})),
    ("stale-units-behind", "units behind the end of a queue stay in its file", 4, _with_files(_NothingErased)),
    ("one-queue-file-a-round", "the checkpoint speaks for queue files that no flush has reached", 9,
     _with_files(_OneFileARound)),
    ("queue-names-not-synced", "the names of new queue files are not made durable", 9, _with_files(_NamesNotSynced)),
)  # fmt: skip
