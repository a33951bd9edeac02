"""What can be seen of a message store without reading a message: offsets, findings, why it refuses what it refuses."""

from tornpage.impl.dispatch.reput import ReputMessages
from tornpage.impl.log.loading import Finding
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.put.put_path import PutPath
from tornpage.impl.recovery.opening import OpenDirectory
from tornpage.impl.service.lifecycle import Lifecycle
from tornpage.impl.statistics.store_statistics import StatisticsSnapshot

__all__ = ["StoreViews"]


class StoreViews:
    """A base class of the store. All offsets are physical."""

    _held: OpenDirectory
    _lifecycle: Lifecycle
    _log: MappedFileQueue
    _puts: PutPath
    _reput: ReputMessages

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found at open."""
        return self._held.findings

    @property
    def min_offset(self) -> int:
        """Physical offset of the first retained byte."""
        return self._log.min_offset

    @property
    def max_offset(self) -> int:
        """Physical offset just behind the last record that was put."""
        return self._log.max_offset

    @property
    def committed_offset(self) -> int:
        """End of what readers may see: below the flushed end once a sync has failed."""
        return self.flushed_offset if self._failed_file() is not None else self._log.committed_where

    @property
    def flushed_offset(self) -> int:
        """Everything below this physical offset is on disk."""
        return self._log.flushed_where

    @property
    def read_only_reason(self) -> str | None:
        """Why the store takes no more puts, as a sentence, or None."""
        return self._lifecycle.read_only_reason

    @property
    def reput_from_offset(self) -> int:
        """Up to this physical offset messages are in their queues and in the index."""
        return self._held.derived.reput_from_offset

    @property
    def dispatch_behind_bytes(self) -> int:
        """How much of what readers may see of the log is not in queues and index yet."""
        return self._reput.behind_bytes

    @property
    def dispatch_error(self) -> str | None:
        """Why no message goes into a queue any more, as a sentence, or None. Puts are refused then."""
        return self._reput.error

    def statistics(self) -> StatisticsSnapshot:
        """Return counts, latencies and rates of the puts so far; times are those of the store's clock."""
        self._lifecycle.require_opener()
        return self._puts.statistics()

    def check(self) -> None:
        """Assert the order of all watermarks (contract 9)."""
        self._lifecycle.require_open()
        try:
            self._log.check()
            assert self.min_offset <= self.flushed_offset <= self.committed_offset <= self.max_offset
        except AssertionError:
            self._lifecycle.require_open()  # a store that was closed meanwhile has given its files up
            raise

    def _failed_file(self) -> str | None:
        """Return the path of a log file whose sync has failed."""
        return next((file.path for file in self._log.mapped if file.failure is not None), None)
