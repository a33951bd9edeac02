"""Of progress files: consumer offsets, their saves, their backups."""

from model.operations import (
    Close,
    CommitOffset,
    Crash,
    DeleteTopics,
    FailSync,
    Flush,
    HarmProgress,
    Open,
    Operation,
    Put,
    QueryOffsets,
    Step,
)
from properties.planted.smallest.program import Program
from properties.program.case import Settings

__all__ = ["PROGRAMS"]

PUT, REPUT, FLUSH, COMMIT = Put(), Step(service="reput"), Flush(), CommitOffset()
SAVE = Step(service="progress", after_ms=5_000)
READ = (PUT, REPUT, COMMIT)
POWER_LOSS = Crash()

_OPERATIONS: dict[str, tuple[Operation, ...]] = {
    "RMQ-B63": (PUT, REPUT, FLUSH, COMMIT, SAVE, POWER_LOSS),
    "backup-overwritten": (
        PUT, REPUT, FLUSH, COMMIT, SAVE, CommitOffset(behind=1), SAVE, HarmProgress(harm="empty"), COMMIT, SAVE,
        Crash(back=2),
    ),
    "progress-not-synced": (PUT, REPUT, FLUSH, COMMIT, SAVE, POWER_LOSS),
    "progress-name-not-synced": (PUT, REPUT, FLUSH, COMMIT, SAVE, POWER_LOSS),
    "progress-saved-in-place": (
        PUT, REPUT, FLUSH, COMMIT, SAVE, CommitOffset(behind=1), SAVE, Crash(back=5, others="kept"),
    ),
    "correction-not-durable": (*READ, SAVE, POWER_LOSS),
    "correction-left-out": (*READ, SAVE, POWER_LOSS),
    "offset-beyond-the-end": (PUT, REPUT, CommitOffset(behind=-1)),
    "offset-never-back": (*READ, CommitOffset(behind=1)),
    "deleted-offsets-kept": (*READ, DeleteTopics(), PUT, REPUT, QueryOffsets()),
    "deleted-offsets-not-durable": (*READ, SAVE, FLUSH, DeleteTopics(), POWER_LOSS),
    "filter-deletes-offsets": (*READ, QueryOffsets()),
    "offsets-not-saved-at-close": (*READ, Close(), Open()),
    "failed-save-forgotten": (*READ, FailSync(), SAVE, Close(), Open()),
    "progress-saved-once": (SAVE,),
}  # fmt: skip

PROGRAMS: dict[str, Program] = {bug: (Settings(file_bytes=1024), done) for bug, done in _OPERATIONS.items()}
