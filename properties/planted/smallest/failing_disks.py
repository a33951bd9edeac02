"""Of disks that fail: none of these programs breaks a promise when its fault is left out."""

from dataclasses import replace

from model.operations import (
    AimFault,
    Clean,
    Close,
    CommitOffset,
    Crash,
    DeleteTopics,
    Flush,
    HarmDerived,
    Open,
    Operation,
    Put,
    Step,
)
from properties.planted.smallest.program import Program
from properties.program.case import Settings

__all__ = ["PROGRAMS"]

PUT, REPUT, FLUSH, COMMIT = Put(), Step(service="reput"), Flush(), CommitOffset()
SAVE = Step(service="progress", after_ms=5_000)
FLUSH_QUEUES = Step(service="flush-queues", after_ms=60_000)
SMALL, THREE_PAGES = Settings(file_bytes=1024), Settings(file_bytes=16_384)
BIG = Put(body_bytes=3_000)
DELAYED = Put(body_bytes=500, properties="DELAY\x011")
THREE_FILES: tuple[Operation, ...] = (Put(queue_id=1, body_bytes=700), *[Put(body_bytes=700)] * 2, FLUSH, REPUT)
EXPIRED = Clean(after_hours=73, manual=True)
SECOND_STAYS = AimFault("unlink-error", "kind=marker or kind=queue and nth=2")
QUEUE_STAYS = AimFault("unlink-error", "kind=queue and nth=1")
INDEX_STAYS = AimFault("unlink-error", "kind=index and nth=1")
LOST = AimFault("sync-lost", "kind=log and nth=1")

PROGRAMS: dict[str, Program] = {
    "second-sync-trusted": (SMALL, (PUT, LOST, FLUSH, Crash())),
    "page-cache-believed": (SMALL, (PUT, LOST, FLUSH, Open())),
    "erasure-believed": (
        THREE_PAGES,
        (BIG, FLUSH, BIG, BIG, BIG, LOST, Crash(survived={"page /store/commitlog/00000000000000000000 2": 1})),
    ),
    "counts-what-is-gone": (replace(SMALL, queue_ext=True, queue_units=1), (SECOND_STAYS, PUT, PUT, Open())),
    "unread-is-empty": (
        SMALL,
        (PUT, REPUT, FLUSH, COMMIT, SAVE, AimFault("read-error", "path=consumerOffset.json and op=open"), Open()),
    ),
    "half-written-progress": (SMALL, (PUT, REPUT, COMMIT, AimFault("short-write", "kind=progress"), Close(), Open())),
    "not-renamed": (SMALL, (PUT, REPUT, COMMIT, AimFault("rename-error", "kind=progress"), Close(), Open())),
    "marker-stays": (SMALL, (PUT, AimFault("unlink-error", "kind=marker"), Close())),
    "who-stays-is-passed-over": (SMALL, (*THREE_FILES, AimFault("unlink-error", "nth=1"), EXPIRED)),
    "queues-flushed-if-possible": (SMALL, (*THREE_FILES, AimFault("sync-error", "kind=queue"), EXPIRED, Crash())),
    "deleted-queue-known-again": (SMALL, (PUT, REPUT, QUEUE_STAYS, DeleteTopics())),
    "deleted-queue-left-behind": (SMALL, (PUT, REPUT, FLUSH_QUEUES, QUEUE_STAYS, DeleteTopics(), Close())),
    "refused-deletion-stays": (SMALL, (PUT, AimFault("directory-sync-error", "path=config"), DeleteTopics(), Open())),
    "deleted-if-possible": (SMALL, (PUT, FLUSH, AimFault("rename-error", "kind=topics"), DeleteTopics(), Crash())),
    "untrue-floor-kept": (SMALL, (PUT, HarmDerived(harm="zeroed"), AimFault("sync-lost"), Open(), Close())),
    "half-made-index-file-stays": (
        SMALL,
        (Put(properties="KEYS\x01k"), AimFault("short-write", "kind=index and nth=1"), INDEX_STAYS, REPUT, Close()),
    ),
    "refused-copy-put-again": (
        SMALL,
        (DELAYED, REPUT, AimFault("no-space", "op=create and nth=1"), Step(service="schedule", after_ms=1_000)),
    ),
}
