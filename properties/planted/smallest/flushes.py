"""Of flushes: when they come, what they count, buffers of the pool, and files that are made ahead."""

from dataclasses import replace

from model.operations import Close, DiskUsed, FailSync, FailWrite, Flush, Put, Step
from properties.planted.smallest.program import Program
from properties.program.case import Settings

__all__ = ["PROGRAMS"]

SMALL, SYNC = Settings(file_bytes=1024), Settings(file_bytes=1024, sync_flush=True)
POOL, AHEAD = Settings(file_bytes=1024, pool_buffers=2), Settings(file_bytes=1024, files_ahead=1)
TWO_PAGES = Settings(file_bytes=8192)
PUT, FULL, FLUSH, CLOSE = Put(), Put(body_bytes=800), Flush(), Close()
BY_TIMER, COMMIT, ALLOCATE = Step(service="flush"), Step(service="commit"), Step(service="allocate")
WAITS = Put(later=True)

PROGRAMS: dict[str, Program] = {
    "RMQ-B06": (SMALL, (Put(properties="WAIT\x01false"), CLOSE)),
    "checkpoint-ahead": (SMALL, (BY_TIMER, PUT, BY_TIMER, Step(service="flush-queues"))),
    "RMQ-B30": (SYNC, (Step(),)),
    "forgotten-at-shutdown": (SYNC, (WAITS, CLOSE)),
    "two-files-a-flush": (TWO_PAGES, (PUT, Put(body_bytes=8_000), PUT, BY_TIMER)),
    "full-files-wait": (SMALL, (BY_TIMER, FULL, FULL, BY_TIMER)),
    "never-thorough": (SMALL, (PUT, BY_TIMER)),
    "no-time-out": (SYNC, (WAITS, Step(service="time-outs", after_ms=5_000))),
    "RMQ-B28": (SYNC, (PUT,)),
    "short-commit-ignored": (POOL, (FailWrite(), PUT, FLUSH)),
    "whole-buffer-written": (
        POOL,
        (
            PUT, Put(body_bytes=621), Put(body_bytes=79), FLUSH,
            Put(body_bytes=683, properties="INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b"), Put(body_bytes=87), FLUSH,
        ),
    ),
    "buffer-kept": (replace(POOL, pool_buffers=1), (FailSync(), PUT, PUT)),
    "readers-see-buffers": (POOL, (PUT,)),
    "flush-of-buffers": (POOL, (PUT, COMMIT, PUT, CLOSE)),
    "one-flag-for-all-files": (AHEAD, (FailSync(), PUT, PUT)),
    "allocation-ends": (AHEAD, (PUT, DiskUsed(percent=100), ALLOCATE)),
    "last-file-first": (AHEAD, (PUT,)),
    "prepared-left-behind": (AHEAD, (PUT, ALLOCATE, CLOSE)),
}  # fmt: skip
