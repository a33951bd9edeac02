"""Of the log: what is acknowledged, made, loaded, read, recovered and believed."""

from model.operations import (
    Close,
    Crash,
    Damage,
    FailSync,
    FailWrite,
    Flush,
    Get,
    HoldBuffer,
    Member,
    Open,
    OpenTwice,
    Put,
    PutBatch,
    Step,
)
from properties.planted.smallest.program import FIRST_LOG_FILE, Program, losing, page_of
from properties.program.case import Settings

__all__ = ["PROGRAMS"]

SMALL, TWO_PAGES = Settings(file_bytes=1024), Settings(file_bytes=8192)
SYNC, POOL = Settings(file_bytes=1024, sync_flush=True), Settings(file_bytes=1024, pool_buffers=2)
TWO_PATHS = Settings(file_bytes=1024, log_paths=2)
PUT, FLUSH, REPUT = Put(), Flush(), Step(service="reput")
FULL = Put(body_bytes=800)
"""No second record fits into a file of 1,024 bytes."""
FLOOR = "/store/config/durableFloor"
TORN = Crash(survived={page_of(FIRST_LOG_FILE): (0, 1, 1)}, others="kept")
"""The first sector of a log file survives, the second does not."""
TORN_INSIDE = Crash(survived={page_of(FIRST_LOG_FILE): (0, 1, 0b1001)}, others="kept")
"""The first sector survives, and the fourth, in which a record of 1,712 bytes ends."""
ACROSS_TWO_SECTORS = Put(body_bytes=500)

PROGRAMS: dict[str, Program] = {
    "early-acknowledgement": (SYNC, (PUT,)),
    "lying-flush": (SMALL, (PUT, Close())),
    "dropped-first-page": (SYNC, (PUT, losing(page_of(FIRST_LOG_FILE), page_of(FLOOR)))),
    "whole-pages-only": (SMALL, (PUT, Close())),
    "sync-error-ignored": (SMALL, (PUT, FailSync(), FLUSH)),
    "last-file-only": (SMALL, (FULL, PUT, Close())),
    "floor-before-flush": (SYNC, (PUT, losing(page_of(FIRST_LOG_FILE), back=2))),
    "floor-ahead": (SMALL, (Open(),)),
    "size-not-synced": (SMALL, (FULL, PUT, losing(f"size {FIRST_LOG_FILE}"))),
    "directory-not-synced": (SMALL, (PUT, FLUSH, losing(f"create {FIRST_LOG_FILE}", page_of(FLOOR)))),
    "marker-not-synced": (
        SMALL, (ACROSS_TWO_SECTORS, Crash(survived={**TORN.survived, "create /store/abort": 0}, others="kept")),
    ),
    "RMQ-B08": (SMALL, (PUT, Crash(back=5, others="kept"))),
    "RMQ-B09": (SMALL, (PUT, Damage(kind="truncate", amount=1))),
    "RMQ-B10": (TWO_PATHS, (FULL, FULL, FULL, Crash(others="kept"))),
    "RMQ-B79": (TWO_PATHS, (PUT,)),
    "no-crc": (Settings(file_bytes=2048), (Put(body_bytes=1_600), TORN_INSIDE)),
    "position-not-checked": (SMALL, (Put(body_kind="record"), Damage())),
    "RMQ-B14": (Settings(), (Put(body_bytes=8, body_kind="sums to zero"), Get())),
    "no-erase-after-cut": (
        TWO_PAGES, (PutBatch(members=(Member(body_bytes=2_000),) * 3), losing(page_of(FIRST_LOG_FILE, 1))),
    ),
    "erase-not-synced": (SMALL, (PUT, Crash(kill=True))),
    "RMQ-B26": (SMALL, (FULL, FLUSH, FULL, Crash())),
    "RMQ-B27": (SMALL, (FULL, FLUSH, FULL, FULL, Crash())),
    "RMQ-B13": (POOL, (Put(topic="Coda"), FailWrite(), PUT, Open())),
    "gap-accepted": (SMALL, (FULL, FULL, FULL, losing("create /store/commitlog/00000000000000001024"))),
    "unlink-not-synced": (SMALL, (ACROSS_TWO_SECTORS, TORN)),
    "scan-starts-by-time": (
        SMALL,
        (
            PUT, FLUSH, REPUT, Step(service="flush-queues"), Put(body_bytes=800, advance_ms=-100_000), FULL, FULL, FULL,
            losing(page_of("/store/commitlog/00000000000000003072")),
        ),
    ),
    "checkpoint-believed": (SMALL, (FULL, PUT, Damage())),
    "RMQ-B78": (SMALL, (PUT, OpenTwice())),
    "larger-than-a-file": (SMALL, (Put(body_bytes=1_000),)),
    "never-taken-back": (SMALL, (PUT, HoldBuffer(), Open())),
    "floor-in-two-writes": (SMALL, (PUT, FLUSH, Crash(back=2, others="kept"))),
    "floor-not-synced": (SMALL, (PUT, Crash(kill=True))),
    "derived-floor-renamed-first": (
        SMALL, (PUT, FLUSH, REPUT, Step(service="flush-queues", after_ms=60_000), Crash(back=2)),
    ),
    "checkpoint-of-its-times": (SMALL, (Close(), Crash())),
}  # fmt: skip
