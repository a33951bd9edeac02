"""Define building blocks of minimal reproducers: settings, operations and power losses."""

from tornpage.model.operations import CommitOffset, Crash, Flush, Operation, Put, Step
from tornpage.properties.program.case import Settings

__all__ = [
    "ACROSS_TWO_SECTORS",
    "COMMIT",
    "FIRST_LOG_FILE",
    "FLUSH",
    "FLUSH_QUEUES",
    "FULL",
    "JOINED",
    "KEYED",
    "KILL",
    "LOG_LOST",
    "NAMES_U",
    "POOL",
    "POWER_LOSS",
    "PUT",
    "REPUT",
    "SAVE",
    "SMALL",
    "SYNC",
    "TAGGED",
    "TORN",
    "TWO_PAGES",
    "Program",
    "losing",
    "page_of",
]

Program = tuple[Settings, tuple[Operation, ...]]
"""Settings without a bug, and the operations on the store."""

FIRST_LOG_FILE = "/store/commitlog/00000000000000000000"


def losing(*writes: str, back: int = 0) -> Crash:
    """Return a power loss that loses only these in-flight writes.

    It happens `back` crash points before the answer.
    """
    return Crash(back=back, survived=dict.fromkeys(writes, 0), others="kept")


def page_of(path: str, number: int = 0) -> str:
    """Return the in-flight write that is a page of a file."""
    return f"page {path} {number}"


SMALL = Settings(file_bytes=1024)
TWO_PAGES = Settings(file_bytes=8192)
SYNC = Settings(file_bytes=1024, sync_flush=True)
POOL = Settings(file_bytes=1024, pool_buffers=2)
PUT = Put()
FLUSH = Flush()
REPUT = Step(service="reput")
FULL = Put(body_bytes=800)
"""A file of 1,024 bytes has no room for a second record of this size."""
TORN = Crash(survived={page_of(FIRST_LOG_FILE): (0, 1, 1)}, others="kept")
"""The first sector of a log file survives, the second does not."""
ACROSS_TWO_SECTORS = Put(body_bytes=500)
FLUSH_QUEUES = Step(service="flush-queues", after_ms=60_000)
TAGGED = Put(properties="TAGS\x01TagA")
JOINED = Put(properties="KEYS\x01kWAIT\x01true")
KEYED = Put(properties="KEYS\x01k")
NAMES_U = Put(properties="INNER_MULTI_DISPATCH\x01U")
KILL = Crash(kill=True)
POWER_LOSS = Crash()
LOG_LOST = losing(page_of(FIRST_LOG_FILE))
COMMIT = CommitOffset()
SAVE = Step(service="progress", after_ms=5_000)
