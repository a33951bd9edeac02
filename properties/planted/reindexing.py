"""Bugs in how the index is proved when a store opens (holes of 4.9.3)."""

from typing import Any

from impl.derived import Derived
from impl.dispatching import Dispatched, IndexPuts
from impl.index_file import IndexFile
from impl.index_service import IndexService
from impl.mapped_file_queue import MappedFileQueue
from impl.parts import Parts

__all__ = ["BUGS"]


class _AheadStays(IndexService):
    """Entries of records that the log lost stay, and what they say hides new ones (hole I3)."""

    def end_reconcile(self) -> bool:
        walk = self._reconcile
        assert walk is not None
        has_more = not walk._settled and (walk._number < walk._stored or walk._at + 1 < len(walk._index_files))
        if not has_more:
            return super().end_reconcile()
        self._reconcile = None
        return False


class _KeptForAnEmptyLog(Derived):
    """With an empty log the queues go and the index stays (hole I4)."""

    def reconcile(self, log: MappedFileQueue, *args: Any, **kwargs: Any) -> None:
        index = self.index
        if log.max_offset == log.min_offset:
            self.index = None
        super().reconcile(log, *args, **kwargs)
        self.index = index


class _HeaderBelieved(IndexFile):
    """What the header counts is all there is: what lies behind, and the slots that lead there, stay (hole I5)."""

    def _restore_slots(self, heads: memoryview) -> bool:
        return False

    def _erase_behind(self, position: int, known_end: int) -> None:
        """Leave it there."""


class _QueuedIsIndexed(Derived):
    """What the queues have counts as indexed: the keys of a record between the two are never found (hole I6)."""

    _queued_end = 0
    _indexed = 0

    def load(self) -> None:
        super().load()
        self._queued_end = max((queue.max_physic_offset for queue in self.queues.all()), default=0)
        self._indexed = self.index.last_offset if self.index is not None else 0

    def _reconcile(self, given: Dispatched) -> None:
        offsets = [int(offset) for offset in given.index.offsets]
        kept = [n for n, offset in enumerate(offsets) if offset <= self._indexed or offset >= self._queued_end]
        if len(kept) < len(offsets):
            given = given._replace(index=IndexPuts(*([column[n] for n in kept] for column in given.index)))
        super()._reconcile(given)


BUGS = (
    ("index-ahead-stays", "entries of records that the log lost stay in the index", 5,
     Parts({IndexService: _AheadStays})),
    ("index-kept-for-an-empty-log", "the index of a log that lost everything stays", 5,
     Parts({Derived: _KeptForAnEmptyLog})),
    ("index-header-believed", "slots and entries that the header of an index file does not count stay", 5,
     Parts({IndexFile: _HeaderBelieved})),
    ("queued-is-indexed", "a record that is in its queue counts as indexed", 5, Parts({Derived: _QueuedIsIndexed})),
)  # fmt: skip
