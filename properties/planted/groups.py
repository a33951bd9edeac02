"""Define bugs of consumer progress: file replacement, crash recovery, valid offsets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tornpage.impl.groups.config_file import ConfigFile
from tornpage.impl.groups.consumer_offsets import ConsumerOffsets
from tornpage.impl.groups.fastjson import written
from tornpage.impl.groups.persist_progress import PersistProgress
from tornpage.impl.groups.progress import Progress
from tornpage.impl.log.log_directories import directory_of
from tornpage.impl.parts import Parts
from tornpage.model.operations import (
    Close,
    CommitOffset,
    Crash,
    DeleteTopics,
    FailSync,
    HarmProgress,
    Open,
    QueryOffsets,
)
from tornpage.properties.planted.programs import COMMIT, FLUSH, POWER_LOSS, PUT, REPUT, SAVE, SMALL
from tornpage.properties.planted.record import Origin, PlantedBug

__all__ = ["BUGS"]


class _DeleteThenRename(ConfigFile):
    """Remove the old file before renaming the new one, and sync nothing (4.9.3, RMQ-B63)."""

    def save(self, document: object) -> None:
        self._put(f"{self.path}.tmp", written(document).encode())
        before = self._bytes(self.path)
        if before is not None:
            self._put(f"{self.path}.bak", before)
            self._files.unlink(self.path)
        self._files.rename(f"{self.path}.tmp", self.path)

    def _put(self, path: str, content: bytes) -> None:
        if self._files.stat(path) is not None:
            self._files.unlink(path)
        file = self._files.create(path)
        self._files.pwrite(file, content, 0)
        self._files.close(file)


class _BackupOverwritten(ConfigFile):
    """After a start from the backup, overwrite the backup with the unusable file (RMQ-B63)."""

    def save(self, document: object) -> None:
        self._write(f"{self.path}.tmp", written(document).encode())
        before = self._bytes(self.path)
        if before is not None:
            self._write(f"{self.path}.bak.tmp", before)
            self._files.rename(f"{self.path}.bak.tmp", f"{self.path}.bak")
            self._files.sync_directory(directory_of(self.path))
        self._files.rename(f"{self.path}.tmp", self.path)
        self._files.sync_directory(directory_of(self.path))


class _ContentNotSynced(ConfigFile):
    """Rename the new file before its content is durable."""

    def _write(self, path: str, content: bytes) -> None:
        if self._files.stat(path) is not None:
            self._files.unlink(path)
        file = self._files.create(path)
        self._files.pwrite(file, content, 0)
        self._files.close(file)


class _NameNotSynced(ConfigFile):
    """Return from a save before the rename is durable."""

    def save(self, document: object) -> None:
        files, self._files = self._files, _WithoutDirectories(self._files)
        try:
            super().save(document)
        finally:
            self._files = files


class _SavedInPlace(ConfigFile):
    """Keep the last version as a durable backup, then overwrite the file in place."""

    def save(self, document: object) -> None:
        new = written(document).encode()
        if self._last is not None:
            self._write(f"{self.path}.bak", self._last)
            self._files.sync_directory(directory_of(self.path))
        self._write(self.path, new)
        self._files.sync_directory(directory_of(self.path))
        self._last, self._in_backup = new, self._last


class _WithoutDirectories:
    """Wrap files so that directories are never synced."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def sync_directory(self, path: str) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


class _CorrectedInMemory(Progress):
    """Correct offsets past the end of a queue in memory. Save them only with later commits."""

    def open(self, range_of: Any) -> Any:
        for owner in self._owners:
            owner.load()
            owner.correct(range_of)
        return ()


class _NotSavedAtClose(Progress):
    """Save nothing at close (RMQ-B62, for consumers)."""

    def save_all(self) -> None:
        pass


class _NotCorrected(ConsumerOffsets):
    """Keep offsets past the end of a queue that a crash has cut."""

    def correct(self, range_of: Any) -> None:
        pass


class _OffsetUnchecked(ConsumerOffsets):
    """Accept a commit past the end of its queue unchanged."""

    def commit(self, group: str, topic: str, queue_id: int, offset: int, *, range_of: Any) -> int:
        return super().commit(group, topic, queue_id, offset, range_of=lambda *_: (0, 1 << 62))


class _NoRewind(ConsumerOffsets):
    """Ignore a commit that moves a group back."""

    def commit(self, group: str, topic: str, queue_id: int, offset: int, *, range_of: Any) -> int:
        known = self.query(group, topic, queue_id) or 0
        return super().commit(group, topic, queue_id, max(offset, known), range_of=range_of)


class _DeletedOffsetsKept(ConsumerOffsets):
    """Keep the offsets of a deleted topic, although its queue numbers restart at 0."""

    @contextmanager
    def restart_numbers(self, is_selected: Callable[[str, int], bool]) -> Iterator[Callable[[], None]]:
        yield lambda: None


class _ForgottenInMemory(ConsumerOffsets):
    """Remove the offsets of a deleted topic from memory now and from disk seconds later."""

    @contextmanager
    def restart_numbers(self, is_selected: Callable[[str, int], bool]) -> Iterator[Callable[[], None]]:
        with self._guard:
            self._forget(is_selected)
        yield lambda: None


class _FilterDeletes(ConsumerOffsets):
    """Delete the committed offsets of groups that a least-offset query leaves out (4.9.3)."""

    def least(self, topic: str, without: Any, *, range_of: Any) -> dict[int, int]:
        self.remove_if(lambda key, _: key[1] in without)
        return super().least(topic, without, range_of=range_of)


class _GivenUpOnFailure(ConsumerOffsets):
    """Count a save that failed with an I/O error as done."""

    def save(self) -> None:
        try:
            super().save()
        except OSError:
            self._saved_changes = self._changes


class _OneRound(PersistProgress):
    """Save once and never schedule another round."""

    def step(self, now_ms: int) -> int | None:
        super().step(now_ms)
        return None


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

READ = (PUT, REPUT, COMMIT)

BUGS = (
    PlantedBug("RMQ-B63", "a progress file is removed before its replacement is renamed, and nothing is synced", 13,
        Parts({ConfigFile: _DeleteThenRename}),
        origin=Origin("RMQ-B63", "Configuration files are replaced non-atomically", "after 5.3.3", "yes"),
        holes=("A7",), machine="consumer", program=(SMALL, (PUT, REPUT, FLUSH, COMMIT, SAVE, POWER_LOSS))),
    PlantedBug("backup-overwritten",
        "the first save after a start from the backup overwrites the backup with the empty file", 13,
        Parts({ConfigFile: _BackupOverwritten}), machine="consumer",
        program=(SMALL, (PUT, REPUT, FLUSH, COMMIT, SAVE, CommitOffset(behind=1), SAVE, HarmProgress(harm="empty"),
            COMMIT, SAVE, Crash(back=2)))),
    PlantedBug("progress-not-synced", "a progress file is renamed into place before its content is durable", 13,
        Parts({ConfigFile: _ContentNotSynced}), machine="consumer",
        program=(SMALL, (PUT, REPUT, FLUSH, COMMIT, SAVE, POWER_LOSS))),
    PlantedBug("progress-name-not-synced", "the rename of a progress file is not synced", 13,
        Parts({ConfigFile: _NameNotSynced}), kind="skip a directory sync", machine="consumer",
        program=(SMALL, (PUT, REPUT, FLUSH, COMMIT, SAVE, POWER_LOSS))),
    PlantedBug("progress-saved-in-place", "a save overwrites the progress file in place, keeping only a backup", 13,
        Parts({ConfigFile: _SavedInPlace}), machine="consumer",
        program=(SMALL, (PUT, REPUT, FLUSH, COMMIT, SAVE, CommitOffset(behind=1), SAVE, Crash(back=5, others="kept")))),
    PlantedBug("correction-not-durable",
        "an offset past the end of its queue is corrected in memory but not on disk", 17,
        Parts({Progress: _CorrectedInMemory}), machine="consumer", program=(SMALL, (*READ, SAVE, POWER_LOSS))),
    PlantedBug("correction-left-out", "an offset past the end of its queue is not corrected", 17,
        Parts({ConsumerOffsets: _NotCorrected}), holes=("A6",), machine="consumer",
        program=(SMALL, (*READ, SAVE, POWER_LOSS))),
    PlantedBug("offset-beyond-the-end", "a commit past the end of its queue is accepted", 17,
        Parts({ConsumerOffsets: _OffsetUnchecked}), machine="consumer",
        program=(SMALL, (PUT, REPUT, CommitOffset(behind=-1)))),
    PlantedBug("offset-never-back",
        "a commit that moves a group back is ignored", 17, Parts({ConsumerOffsets: _NoRewind}),
        machine="consumer", program=(SMALL, (*READ, CommitOffset(behind=1)))),
    PlantedBug("deleted-offsets-kept", "consumer offsets of a deleted topic are kept", 17,
        Parts({ConsumerOffsets: _DeletedOffsetsKept}), machine="consumer",
        program=(SMALL, (*READ, DeleteTopics(), PUT, REPUT, QueryOffsets()))),
    PlantedBug("deleted-offsets-not-durable",
        "consumer offsets of a deleted topic are removed from memory but not from disk", 13,
        Parts({ConsumerOffsets: _ForgottenInMemory}), machine="consumer",
        program=(SMALL, (*READ, SAVE, FLUSH, DeleteTopics(), POWER_LOSS))),
    PlantedBug("filter-deletes-offsets", "a query that leaves out a group deletes the offsets of that group", 17,
        Parts({ConsumerOffsets: _FilterDeletes}), machine="consumer", program=(SMALL, (*READ, QueryOffsets()))),
    PlantedBug("offsets-not-saved-at-close", "a clean close does not save the latest committed offsets", 13,
        Parts({Progress: _NotSavedAtClose}), machine="consumer", program=(SMALL, (*READ, Close(), Open()))),
    PlantedBug("failed-save-forgotten", "changes that a failed save did not write are never written", 13,
        Parts({ConsumerOffsets: _GivenUpOnFailure}), machine="consumer",
        program=(SMALL, (*READ, FailSync(), SAVE, Close(), Open()))),
    PlantedBug("progress-saved-once", "the service that saves progress runs only once", 16,
        Parts({PersistProgress: _OneRound}), machine="consumer", program=(SMALL, (SAVE,))),
)  # fmt: skip
