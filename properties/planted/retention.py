"""Define bugs of retention: log files, order, queues and index, and deleted topics."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tornpage.impl.config.retention_policy import Room
from tornpage.impl.dispatch.deleted_topics import DeletedTopics
from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.index.index_entries import ENTRY, SLOT, SLOT_BYTES
from tornpage.impl.index.index_file import IndexFile
from tornpage.impl.index.index_layout import HEADER_BYTES
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.log_files import LogFileMaker
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.parts import Parts
from tornpage.impl.retention.clean_commit_log import CleanCommitLog
from tornpage.impl.retention.clean_consume_queues import CleanConsumeQueues
from tornpage.impl.retention.clean_files import CleanFiles
from tornpage.impl.retention.topic_cleaning import KEPT_TOPICS, TopicCleaning
from tornpage.impl.service.disk_watch import DiskWatch
from tornpage.model.operations import Clean, DeleteTopics, DiskUsed, HoldBuffer, Put, ReleaseBuffer
from tornpage.properties.planted.programs import FLUSH, FULL, KEYED, KILL, POWER_LOSS, REPUT, SMALL
from tornpage.properties.planted.record import Origin, PlantedBug
from tornpage.properties.program.case import Settings

__all__ = ["BUGS"]


class _DispatchForgotten(CleanCommitLog):
    """Delete files whether or not they were dispatched."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"dispatched_end": lambda: 1 << 62})


class _CursorStays(Derived):
    """Leave the dispatch cursor before the start of the log, where no file is left (RMQ-B04)."""

    def dispatch(self, log: MappedFileQueue, readable_end: int) -> bool:
        if self.reput_from_offset < log.min_offset:
            return False
        return super().dispatch(log, readable_end)


class _NeighbourFound(MappedFileQueue):
    """Compute the index of a file from an old start of the log, unchecked (after RMQ-B24)."""

    _began_at = -1

    def find(self, offset: int) -> MappedFile | None:
        files = self.mapped
        if self._began_at < 0 and files:
            self._began_at = files[0].base_offset
        number = (offset - self._began_at) // self.file_bytes
        return files[number] if 0 <= number < len(files) else super().find(offset)


class _NothingLeftOut(DeletedTopics):
    """Dispatch records of a deleted topic again (RMQ-B39)."""

    def without_deleted(self, given: Any) -> Any:
        return given


class _NeverTriedAgain(CleanCommitLog):
    """Retry the removal of a file held by a reader only once (RMQ-B41).

    After that the file can neither be read nor removed.
    """

    _looked_at: Any = None

    def _retry(self, hanging: Any, now_ms: int) -> bool:
        if self._looked_at is hanging:
            return False
        self._looked_at = hanging
        return super()._retry(hanging, now_ms)


class _AgeOfTheFile(CleanCommitLog):
    """Take the age of a file from its first message, which is its creation (RMQ-B53)."""

    def _is_expired(self, first: MappedFile, following: MappedFile, clock_ms: int) -> bool:
        return super()._is_expired(first, first, clock_ms)


class _LooksBeforeARun(DiskWatch):
    """Check the disk only at an open and when a clean-up run begins, not at a put (RMQ-B54)."""

    __slots__ = ()

    def step(self, now_ms: int) -> int:
        if not self.checked_ms:
            self.look(now_ms)
        self.due_ms = 1 << 62
        return self.due_ms


class _OneSystemTopic(TopicCleaning):
    """Protect only the schedule topic from the clean-up of topics (RMQ-B55)."""

    kept_topics = frozenset(topic for topic in KEPT_TOPICS if topic.startswith(b"SCHEDULE"))


class _RunsLost(CleanFiles):
    """Lose one requested run with each run (RMQ-B56).

    The count is read and written without a lock.
    """

    def _take_manual_run(self) -> bool:
        super()._take_manual_run()
        return super()._take_manual_run()


class _LastFileToo(CleanCommitLog):
    """Delete the file that is being written once it is durable and dispatched."""

    def _candidate(self, clock_ms: int, *, urgent: bool) -> bool:
        if urgent and len(self._log.mapped) == 1:
            return self._log.max_offset == min(self._log.flushed_where, self._dispatched_end())
        return super()._candidate(clock_ms, urgent=urgent)


class _AnyFileDropped(MappedFileQueue):
    """Remove the last file from the list as well."""

    def drop_first(self) -> MappedFile:
        first, self.mapped = self.mapped[0], self.mapped[1:]
        first.close()
        return first


class _OneDirectorySynced(LogFileMaker):
    """Sync the first directory only, whichever directory a file is removed from.

    A gap may be left.
    """

    def remove(self, mapped: MappedFile) -> None:
        mapped.close()
        with contextlib.suppress(FileNotFoundError):
            self._files.unlink(mapped.path)
        self._files.sync_directory(self.directories.paths[0])


class _NotDurable(DeletedTopics):
    """Record a deletion in memory without writing it to disk."""

    def _write(self, offsets: dict[bytes, int]) -> None:
        self.offsets = offsets


class _ForgottenTooSoon(DeletedTopics):
    """Forget a deletion at the next clean-up run, although the log has records of the topic."""

    def forget_expired(self, log_min: int) -> None:
        super().forget_expired(1 << 62)


class _OffsetNotLowered(DeletedTopics):
    """Count messages put after a crash as deleted if the log was cut below the deletion."""

    def settle(self, *, log_min: int, log_max: int) -> None:
        super().settle(log_min=log_min, log_max=1 << 62)


class _NumbersGoOn(TopicCleaning):
    """Continue the numbers of a deleted topic."""

    def _delete(self, is_unused: Callable[[bytes], bool]) -> list[bytes]:
        self._table.forget = lambda keys: None  # type: ignore[method-assign]
        return super()._delete(is_unused)


class _QueuesStay(CleanConsumeQueues):
    """Leave queues and index unchanged when log files are deleted."""

    def follow(self) -> Any:
        yield from ()


class _DerivedNotFlushed(CleanCommitLog):
    """Delete a log file before its queues are durable.

    After a power loss their numbers restart at 0.
    """

    def __init__(self, *args: Any, make_derived_durable: Callable[[], None], **options: Any) -> None:
        super().__init__(*args, make_derived_durable=lambda: None, **options)


class _AgeOnAFullDisk(DiskWatch):
    """Delete only expired files on a disk that is too full, which stays full."""

    __slots__ = ()

    def look(self, now_ms: int) -> Room:
        room = super().look(now_ms)
        return Room(room.is_full, room.wants_deletion, urgent=False)


class _NotHeld(IndexFile):
    """Read an index file without holding it, so that it can be unmapped meanwhile (RMQ-B50)."""

    def offsets_of(self, code: int, begin_ms: int, end_ms: int) -> Iterator[int]:
        layout, view = self.layout, self.mapped.view
        least, greatest = self.times
        if greatest < begin_ms or end_ms < least:
            return
        (number,) = SLOT.unpack_from(view, HEADER_BYTES + code % layout.slots * SLOT_BYTES)
        limit = self.header.next_number if self.is_proven else layout.entries_max
        while 0 < number < limit:
            found, offset, _, previous = ENTRY.unpack_from(view, layout.position_of(number))
            if found == code:
                yield offset
            number, limit = previous, number


class _TakenBackAtOnce(CleanCommitLog):
    """Take a reader's buffer away as soon as its file is to be deleted."""

    def _retry(self, hanging: Any, now_ms: int) -> bool:
        self._revoke(hanging.mapped)
        return super()._retry(hanging, now_ms)


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

KEYED_FULL = replace(KEYED, body_bytes=800)
ASKED_FOR = Clean(manual=True)
TOO_FULL = Clean(percent=86)

BUGS = (
    PlantedBug("RMQ-B04",
        "log files are deleted before they are dispatched, and dispatch then waits for them forever", 10,
        Parts({CleanCommitLog: _DispatchForgotten, Derived: _CursorStays}),
        origin=Origin("RMQ-B04", "Dispatch cursor below the oldest retained log byte", "4.5.0", "no"),
        machine="retention", program=(SMALL, (FULL, FULL, FLUSH, TOO_FULL))),
    PlantedBug("neighbour-found", "a log file is looked up relative to an old start of the log", 8,
        Parts({MappedFileQueue: _NeighbourFound}), machine="retention",
        program=(SMALL, (FULL, FULL, REPUT, FLUSH, TOO_FULL, FULL))),
    PlantedBug("RMQ-B39", "the queues of a deleted topic come back at the next open", 4,
        Parts({DeletedTopics: _NothingLeftOut}),
        origin=Origin("RMQ-B39", "Deleted topic's queue comes back on restart", "not fixed", "yes"), holes=("C14",),
        machine="retention", program=(Settings(), (Put(), REPUT, DeleteTopics(), KILL))),
    PlantedBug("RMQ-B41", "a log file that a reader held once is never deleted", 8,
        Parts({CleanCommitLog: _NeverTriedAgain}),
        origin=Origin("RMQ-B41", "A queue segment that was half destroyed can never be deleted", "4.0.0", "no"),
        machine="retention",
        program=(SMALL, (FULL, FULL, REPUT, FLUSH, HoldBuffer(), TOO_FULL, ReleaseBuffer(), TOO_FULL))),
    PlantedBug("RMQ-B50", "a query reads an index file that is unmapped meanwhile", 8,
        Parts({IndexFile: _NotHeld}), origin=Origin("RMQ-B50", "Index list cleared under a read lock", "4.2.0", "no"),
        machine="retention",
        program=(replace(SMALL, index_entries=2), (KEYED_FULL, KEYED_FULL, REPUT, FLUSH, replace(TOO_FULL, query=0)))),
    PlantedBug("RMQ-B53",
        "the age of a log file is that of its first message instead of its last", 10,
        Parts({CleanCommitLog: _AgeOfTheFile}),
        origin=Origin("RMQ-B53", "Expiry is computed from file modification time", "not fixed", "yes"),
        machine="retention", program=(SMALL, (FULL, Clean(after_hours=72), FULL, REPUT, FLUSH, ASKED_FOR))),
    PlantedBug("RMQ-B54", "disk usage is checked when a clean-up begins but not at a put", 8,
        Parts({DiskWatch: _LooksBeforeARun}),
        origin=Origin("RMQ-B54", "Disk-full check waits behind slow deletion", "4.7.1", "no"), machine="retention",
        program=(Settings(), (DiskUsed(percent=95), Put()))),
    PlantedBug("RMQ-B55", "the clean-up of unused topics deletes a topic that the store itself uses", 10,
        Parts({TopicCleaning: _OneSystemTopic}),
        origin=Origin("RMQ-B55", "System topic's queues removed by topic clean-up", "4.9.0", "no"),
        machine="retention", program=(Settings(), (Put(topic="RMQ_SYS_TRANS_OP_HALF_TOPIC"), DeleteTopics()))),
    PlantedBug("RMQ-B56", "some requested runs of the clean-up are lost", 10,
        Parts({CleanFiles: _RunsLost}),
        origin=Origin("RMQ-B56", "Manual-delete counter updated without atomicity", "5.3.0", "yes"),
        machine="retention",
        program=(SMALL, (FULL, FULL, REPUT, FLUSH, *(ASKED_FOR,), *(Clean(),) * 18, Clean(after_hours=73)))),
    PlantedBug("last-file-deleted", "a clean-up deletes the last log file", 10,
        Parts({CleanCommitLog: _LastFileToo, MappedFileQueue: _AnyFileDropped}), machine="retention",
        program=(SMALL, (FULL, FULL, REPUT, FLUSH, TOO_FULL))),
    PlantedBug("unlinks-not-in-order", "the removal of a log file is durable before the removal of earlier files", 7,
        Parts({LogFileMaker: _OneDirectorySynced}), machine="retention",
        program=(replace(SMALL, log_paths=2), (FULL, FULL, FULL, FULL, REPUT, FLUSH, TOO_FULL, POWER_LOSS))),
    PlantedBug("deleted-topic-not-durable", "the deletion of a topic is not recorded on disk", 10,
        Parts({DeletedTopics: _NotDurable}), machine="retention",
        program=(Settings(), (Put(), REPUT, FLUSH, DeleteTopics(), POWER_LOSS))),
    PlantedBug("deletion-forgotten", "a topic deletion is forgotten while the log still has records of the topic", 10,
        Parts({DeletedTopics: _ForgottenTooSoon}), machine="retention",
        program=(Settings(), (Put(), FLUSH, DeleteTopics(), Clean(), KILL))),
    PlantedBug("deletion-outlives-the-log", "after a crash new messages of a deleted topic count as deleted", 17,
        Parts({DeletedTopics: _OffsetNotLowered}), machine="retention",
        program=(Settings(), (Put(), DeleteTopics(), POWER_LOSS, Put(), REPUT))),
    PlantedBug("deleted-numbers-go-on", "the queue numbers of a deleted topic do not restart at 0", 8,
        Parts({TopicCleaning: _NumbersGoOn}), machine="retention",
        program=(Settings(), (Put(), DeleteTopics(), Put()))),
    PlantedBug("queues-do-not-follow", "queues keep units of deleted log files", 17,
        Parts({CleanConsumeQueues: _QueuesStay}), machine="retention",
        program=(SMALL, (FULL, FULL, REPUT, FLUSH, TOO_FULL))),
    PlantedBug("numbers-not-durable", "a log file is deleted before its queues are durable", 4,
        Parts({CleanCommitLog: _DerivedNotFlushed}), machine="retention",
        program=(SMALL, (FULL, Put(topic="U", body_bytes=800), REPUT, FLUSH, TOO_FULL, POWER_LOSS))),
    PlantedBug("age-on-a-full-disk", "a disk that is too full keeps files that have not expired", 10,
        Parts({DiskWatch: _AgeOnAFullDisk}), machine="retention",
        program=(SMALL, (FULL, FULL, REPUT, FLUSH, TOO_FULL))),
    PlantedBug("buffer-taken-back", "a reader loses its buffer as soon as the file is to be deleted", 11,
        Parts({CleanCommitLog: _TakenBackAtOnce}), machine="retention",
        program=(SMALL, (FULL, FULL, REPUT, FLUSH, HoldBuffer(), TOO_FULL))),
)  # fmt: skip
