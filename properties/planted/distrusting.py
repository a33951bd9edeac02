"""Bugs in what a store makes of a disk that has failed: each needs a fault that is aimed (docs/faults.md, "Aiming")."""

import contextlib
from collections.abc import Collection
from typing import Any

from impl.abort_marker import AbortMarker
from impl.clean_commit_log import CleanCommitLog
from impl.config_file import ConfigFile
from impl.consume_queue import ConsumeQueue
from impl.consume_queues import ConsumeQueues
from impl.deleted_topics import DeletedTopics
from impl.derived_floor import DerivedFloor
from impl.dispatching import UNIT_BYTES
from impl.files import Files
from impl.index_service import IndexService
from impl.mapped_file import MappedFile
from impl.message import Message, PutStatus
from impl.parts import Parts
from impl.recovery import Recovery
from impl.schedule import DeliverDelayedMessages

__all__ = ["BUGS"]


class _SecondSyncTrusted(MappedFile):
    """A sync that failed is tried again, and the success of the second one counts: the kernel has dropped the pages."""

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            self.failure = None
            super().flush()


class _PageCacheBelieved(Recovery):
    """What is read from memory is synced, and counts as durable: pages that count as clean are written by nobody."""

    def _make_durable(self) -> None:
        clean_exit, self._clean_exit = self._clean_exit, True
        try:
            super()._make_durable()
        finally:
            self._clean_exit = clean_exit


class _ErasureBelieved(MappedFile):
    """What a recovery before this one has erased in memory counts as erased, although its sync has failed."""

    def rewrite(self, start: int, end: int) -> None:
        super().rewrite(start, min(end, self.written_position))


class _CountsWhatIsGone(ConsumeQueue):
    """A queue that could not be erased whole still counts the units of the files that are gone."""

    def _erase(self, number: int) -> bool:
        erased = self._files.cut(number * UNIT_BYTES)
        self._ext_settled = self.ext is None or self.ext.is_empty
        self.max_offset = 0 if self.is_empty else number
        self.min_offset = min(self.min_offset, self.max_offset)
        return erased


class _Unread(ConfigFile):
    """A file that cannot be read is as good as none, and what it said is forgotten."""

    def _bytes(self, path: str) -> bytes | None:
        with contextlib.suppress(OSError):
            return super()._bytes(path)
        return None


class _HalfWritten(ConfigFile):
    """A new version that the disk has taken half of takes the place of the last one."""

    def _write(self, path: str, content: bytes) -> None:
        if self._files.stat(path) is not None:
            self._files.unlink(path)
        file = self._files.create(path)
        try:
            with contextlib.suppress(OSError):
                self._files.pwrite(file, content, 0)
            self._files.sync(file)
        finally:
            self._files.close(file)


class _NotRenamed(ConfigFile):
    """A new version that did not take the place of the last one counts as saved."""

    def save(self, document: object) -> None:
        with contextlib.suppress(OSError):
            super().save(document)


class _StaysThere(AbortMarker):
    """An exit is called clean although its marker could not be removed."""

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            super().remove()


def _marker(files: Files, root: str) -> AbortMarker:
    return _StaysThere(files, root)


class _PassesOverWhoStays(CleanCommitLog):
    """A log file that cannot be removed is forgotten, and the next one goes: a gap, and then damage."""

    def delete_first(self, now_ms: int, *, clock_ms: int, urgent: bool) -> bool:
        try:
            return super().delete_first(now_ms, clock_ms=clock_ms, urgent=urgent)
        except OSError:
            is_passed_over, self._hanging = self._hanging is not None, None
            return is_passed_over


class _QueuesFlushedIfPossible(CleanCommitLog):
    """What a log file has in queues and index is flushed before it goes, and goes with it if that fails."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        flush = self._make_derived_durable

        def flush_if_possible() -> None:
            with contextlib.suppress(OSError):
                flush()

        self._make_derived_durable = flush_if_possible


class _KnownAgain(ConsumeQueues):
    """A queue that cannot be removed whole is known again, although its numbers have begun anew."""

    def remove(self, queue: ConsumeQueue) -> None:
        try:
            super().remove(queue)
        except OSError:
            self._queues[queue.key] = self._left.pop(queue.key)
            raise


class _LeftBehind(ConsumeQueues):
    """What cannot be removed of a deleted queue is nobody's business any more."""

    def _destroy(self, queue: ConsumeQueue) -> None:
        del self._left[queue.key]
        try:
            queue.destroy()
        finally:
            queue.close()


class _DeletionNotTakenBack(DeletedTopics):
    """A deletion that was refused stays on the disk where only the sync of its name has failed."""

    def make_certain(self) -> None:
        """Leave it to chance."""


class _DeletedIfPossible(DeletedTopics):
    """Topics are deleted although the disk refuses to remember it."""

    def add(self, topics: Collection[bytes], offset: int) -> None:
        with contextlib.suppress(OSError):
            super().add(topics, offset)


class _FloorNotForgotten(DerivedFloor):
    """A derived floor that was found untrue stays, and is true again in the page cache behind a failed sync."""

    def forget(self) -> None:
        """Leave it there: the next one takes its place."""


class _HalfMadeStays(IndexService):
    """What is left of an index file that could not be made, and not be removed at once, stays until an open."""

    def _give_up(self, path: str) -> None:
        super()._give_up(path)
        self._half_made = None


class _PutAgainAtOnce(DeliverDelayedMessages):
    """A copy that has found no file is put again at once, and the first answer counts."""

    def _refusal_of(self, copy: Message) -> PutStatus | None:
        refused = super()._refusal_of(copy)
        if refused is PutStatus.CREATE_MAPEDFILE_FAILED:
            super()._refusal_of(copy)
        return refused


BUGS = (
    ("second-sync-trusted", "a sync that failed is tried again, and the second one counts (RMQ-B25)", 9,
     Parts({MappedFile: _SecondSyncTrusted})),
    ("page-cache-believed", "recovery believes pages that a failed sync has dropped", 6,
     Parts({Recovery: _PageCacheBelieved})),
    ("erasure-believed", "recovery believes an erasure whose sync has failed", 3,
     Parts({MappedFile: _ErasureBelieved})),
    ("counts-what-is-gone", "a queue that could not be erased whole counts what is gone", 7,
     Parts({ConsumeQueue: _CountsWhatIsGone})),
    ("unread-is-empty", "progress that cannot be read counts as none", 13, Parts({ConfigFile: _Unread})),
    ("half-written-progress", "progress is replaced by what the disk took of the new version", 13,
     Parts({ConfigFile: _HalfWritten})),
    ("not-renamed", "progress counts as saved although its file was not renamed", 13,
     Parts({ConfigFile: _NotRenamed})),
    ("marker-stays", "an exit is called clean although the marker is still there", 2,
     Parts({AbortMarker: _marker})),
    ("who-stays-is-passed-over", "behind a log file that cannot be removed the next one goes", 10,
     Parts({CleanCommitLog: _PassesOverWhoStays})),
    ("queues-flushed-if-possible", "a log file goes although its queues could not be flushed", 4,
     Parts({CleanCommitLog: _QueuesFlushedIfPossible})),
    ("deleted-queue-known-again", "a deleted queue is known again when a file of it cannot be removed", 10,
     Parts({ConsumeQueues: _KnownAgain})),
    ("deleted-queue-left-behind", "files of a deleted queue that cannot be removed are forgotten", 4,
     Parts({ConsumeQueues: _LeftBehind})),
    ("refused-deletion-stays", "a deletion that was refused is found behind a clean exit", 10,
     Parts({DeletedTopics: _DeletionNotTakenBack})),
    ("deleted-if-possible", "topics are deleted although the disk refuses to remember it", 10,
     Parts({DeletedTopics: _DeletedIfPossible})),
    ("untrue-floor-kept", "a derived floor that was found untrue is not forgotten", 4,
     Parts({DerivedFloor: _FloorNotForgotten})),
    ("half-made-index-file-stays", "what is left of an index file that could not be made stays behind a clean exit", 5,
     Parts({IndexService: _HalfMadeStays})),
    ("refused-copy-put-again", "a copy that found no file is put again at once, and the first answer counts", 12,
     Parts({DeliverDelayedMessages: _PutAgainAtOnce})),
)  # fmt: skip
