"""Bugs in what a store remembers of progress: how the files are replaced, what a crash leaves, who is led past what."""

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
    """The file is removed before the new one has its name, and nothing is synced, as in 4.9.3 (RMQ-B63)."""

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
    """The first save after a start from the backup makes the file that said nothing the backup (RMQ-B63)."""

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
    """The new file has its name before its content is on disk."""

    def _write(self, path: str, content: bytes) -> None:
        if self._files.stat(path) is not None:
            self._files.unlink(path)
        file = self._files.create(path)
        self._files.pwrite(file, content, 0)
        self._files.close(file)


class _NameNotSynced(ConfigFile):
    """A save returns before the new file is sure to have its name."""

    def save(self, document: object) -> None:
        files, self._files = self._files, _WithoutDirectories(self._files)
        try:
            super().save(document)
        finally:
            self._files = files


class _SavedInPlace(ConfigFile):
    """A save keeps the last version as backup, durably, and then writes over the file."""

    def save(self, document: object) -> None:
        new = written(document).encode()
        if self._last is not None:
            self._write(f"{self.path}.bak", self._last)
            self._files.sync_directory(directory_of(self.path))
        self._write(self.path, new)
        self._files.sync_directory(directory_of(self.path))
        self._last, self._in_backup = new, self._last


class _WithoutDirectories:
    """A disk whose directories are never synced."""

    def __init__(self, files: Any) -> None:
        self._files = files

    def sync_directory(self, path: str) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


class _CorrectedInMemory(Progress):
    """Offsets beyond a queue are brought back, and that is saved with the next commits."""

    def open(self, range_of: Any) -> Any:
        for owner in self._owners:
            owner.load()
            owner.correct(range_of)
        return ()


class _NotSavedAtClose(Progress):
    """A close saves nothing (RMQ-B62, for consumers)."""

    def save_all(self) -> None:
        pass


class _NotCorrected(ConsumerOffsets):
    """Offsets beyond a queue that a crash has cut stay where they are."""

    def correct(self, range_of: Any) -> None:
        pass


class _AnyOffsetCounts(ConsumerOffsets):
    """A commit beyond the end of its queue counts as it is."""

    def commit(self, group: str, topic: str, queue_id: int, offset: int, *, range_of: Any) -> int:
        return super().commit(group, topic, queue_id, offset, range_of=lambda *_: (0, 1 << 62))


class _NeverBack(ConsumerOffsets):
    """A group that goes back is not heard."""

    def commit(self, group: str, topic: str, queue_id: int, offset: int, *, range_of: Any) -> int:
        known = self.query(group, topic, queue_id) or 0
        return super().commit(group, topic, queue_id, max(offset, known), range_of=range_of)


class _KeptOfDeleted(ConsumerOffsets):
    """The offsets of a deleted topic stay, and its numbers begin at 0 again."""

    @contextmanager
    def restart_numbers(self, is_selected: Callable[[str, int], bool]) -> Iterator[Callable[[], None]]:
        yield lambda: None


class _ForgottenInMemory(ConsumerOffsets):
    """The offsets of a deleted topic are forgotten, and on disk some seconds later."""

    @contextmanager
    def restart_numbers(self, is_selected: Callable[[str, int], bool]) -> Iterator[Callable[[], None]]:
        with self._guard:
            self._forget(is_selected)
        yield lambda: None


class _DeletedByAFilter(ConsumerOffsets):
    """Who asks for the least offset without some groups deletes what they have committed, as in 4.9.3."""

    def least(self, topic: str, without: Any, *, range_of: Any) -> dict[int, int]:
        self.remove_if(lambda key, _: key[1] in without)
        return super().least(topic, without, range_of=range_of)


class _GivenUpOnFailure(ConsumerOffsets):
    """A save that the disk refused counts as done."""

    def save(self) -> None:
        try:
            super().save()
        except OSError:
            self._saved_changes = self._changes


class _OneRound(PersistProgress):
    """The service saves once and never comes round again."""

    def step(self, now_ms: int) -> int | None:
        super().step(now_ms)
        return None


# ---- the bugs, each with its minimal reproducer ---------------------------------------------------------------------

READ = (PUT, REPUT, COMMIT)

BUGS = (
    PlantedBug("RMQ-B63", "progress files are removed before the new one has its name, and nothing is synced", 13,
        Parts({ConfigFile: _DeleteThenRename}),
        origin=Origin("RMQ-B63", "Configuration files are replaced non-atomically", "after 5.3.3", "yes"),
        holes=("A7",), machine="consumer", program=(SMALL, (PUT, REPUT, FLUSH, COMMIT, SAVE, POWER_LOSS))),
    PlantedBug("backup-overwritten",
        "the first save after a start from the backup overwrites the backup with nothing", 13,
        Parts({ConfigFile: _BackupOverwritten}), machine="consumer",
        program=(SMALL, (PUT, REPUT, FLUSH, COMMIT, SAVE, CommitOffset(behind=1), SAVE, HarmProgress(harm="empty"),
            COMMIT, SAVE, Crash(back=2)))),
    PlantedBug("progress-not-synced", "a progress file has its name before its content is on disk", 13,
        Parts({ConfigFile: _ContentNotSynced}), machine="consumer",
        program=(SMALL, (PUT, REPUT, FLUSH, COMMIT, SAVE, POWER_LOSS))),
    PlantedBug("progress-name-not-synced", "a progress file is saved, and its name is not on disk", 13,
        Parts({ConfigFile: _NameNotSynced}), kind="skip a directory sync", machine="consumer",
        program=(SMALL, (PUT, REPUT, FLUSH, COMMIT, SAVE, POWER_LOSS))),
    PlantedBug("progress-saved-in-place", "a save writes over the file, behind a backup that is whole", 13,
        Parts({ConfigFile: _SavedInPlace}), machine="consumer",
        program=(SMALL, (PUT, REPUT, FLUSH, COMMIT, SAVE, CommitOffset(behind=1), SAVE, Crash(back=5, others="kept")))),
    PlantedBug("correction-not-durable", "an offset beyond its queue is brought back in memory alone", 17,
        Parts({Progress: _CorrectedInMemory}), machine="consumer", program=(SMALL, (*READ, SAVE, POWER_LOSS))),
    PlantedBug("correction-left-out", "an offset beyond its queue stays there", 17,
        Parts({ConsumerOffsets: _NotCorrected}), holes=("A6",), machine="consumer",
        program=(SMALL, (*READ, SAVE, POWER_LOSS))),
    PlantedBug("offset-beyond-the-end", "a commit beyond the end of a queue counts", 17,
        Parts({ConsumerOffsets: _AnyOffsetCounts}), machine="consumer",
        program=(SMALL, (PUT, REPUT, CommitOffset(behind=-1)))),
    PlantedBug("offset-never-back", "a group cannot go back", 17, Parts({ConsumerOffsets: _NeverBack}),
        machine="consumer", program=(SMALL, (*READ, CommitOffset(behind=1)))),
    PlantedBug("deleted-offsets-kept", "a deleted topic keeps the offsets of its consumers", 17,
        Parts({ConsumerOffsets: _KeptOfDeleted}), machine="consumer",
        program=(SMALL, (*READ, DeleteTopics(), PUT, REPUT, QueryOffsets()))),
    PlantedBug("deleted-offsets-not-durable", "the offsets of a deleted topic are gone from memory alone", 13,
        Parts({ConsumerOffsets: _ForgottenInMemory}), machine="consumer",
        program=(SMALL, (*READ, SAVE, FLUSH, DeleteTopics(), POWER_LOSS))),
    PlantedBug("filter-deletes-offsets", "a group that is left out of a query loses what it has committed", 17,
        Parts({ConsumerOffsets: _DeletedByAFilter}), machine="consumer", program=(SMALL, (*READ, QueryOffsets()))),
    PlantedBug("offsets-not-saved-at-close", "a clean close forgets what was committed last", 13,
        Parts({Progress: _NotSavedAtClose}), machine="consumer", program=(SMALL, (*READ, Close(), Open()))),
    PlantedBug("failed-save-forgotten", "what a failed save has not written is not written later", 13,
        Parts({ConsumerOffsets: _GivenUpOnFailure}), machine="consumer",
        program=(SMALL, (*READ, FailSync(), SAVE, Close(), Open()))),
    PlantedBug("progress-saved-once", "the service that saves progress does not come round again", 16,
        Parts({PersistProgress: _OneRound}), machine="consumer", program=(SMALL, (SAVE,))),
)  # fmt: skip
