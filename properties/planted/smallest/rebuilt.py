"""Of what a start makes again, or believes: queues, index, their checkpoint and their floor."""

from model.operations import Clean, Close, Crash, Flush, HarmDerived, Operation, Put, Step
from properties.planted.smallest.program import FIRST_LOG_FILE, Program, losing, page_of
from properties.program.case import Settings

__all__ = ["PROGRAMS"]

SMALL = Settings(file_bytes=1024)
NARROW_QUEUES = Settings(file_bytes=1024, queue_units=1)
PUT, REPUT, FULL = Put(), Step(service="reput"), Put(body_bytes=800)
KEYED = Put(properties="KEYS\x01k")
SECOND_OF_THE_LOG = page_of("/store/commitlog/00000000000000001024")
SECOND_OF_THE_QUEUE = page_of("/store/consumequeue/T/0/00000000000000000020")
LOG_LOST = losing(page_of(FIRST_LOG_FILE))
EXPIRED: tuple[Operation, ...] = (FULL, FULL, REPUT, Flush(), Clean(percent=88))
"""The first of two messages of a queue is gone: once that is lost it is made anew with pre-fill in front."""
BEHIND_PRE_FILL = 20
BEFORE_THE_ANSWER = losing(page_of(FIRST_LOG_FILE), back=2)

PROGRAMS: dict[str, Program] = {
    "derived-floor-believed": (SMALL, (PUT, HarmDerived())),
    "zero-unit-counts": (NARROW_QUEUES, (FULL, FULL, REPUT, losing(SECOND_OF_THE_QUEUE, SECOND_OF_THE_LOG))),
    "three-files-compared": (NARROW_QUEUES, (*(PUT,) * 5, HarmDerived(harm="torn"))),
    "lost-queue-from-the-last-file": (SMALL, (PUT, FULL, Crash(others="kept"))),
    "begins-behind-the-end": (SMALL, (PUT, REPUT, LOG_LOST, PUT)),
    "checkpoint-by-the-index": (
        Settings(file_bytes=1024, index_entries=2),
        (PUT, KEYED, KEYED, REPUT, losing("size /store/consumequeue/T/0/00000000000000000000")),
    ),
    "checkpoint-before-flush": (
        SMALL, (PUT, Put(queue_id=1), Close(), losing("size /store/consumequeue/T/0/00000000000000000000", back=18)),
    ),
    "stray-file-blocks": (SMALL, (PUT, HarmDerived(harm="stray"))),
    "prefill-is-the-furthest": (
        SMALL,
        (*EXPIRED, HarmDerived(), HarmDerived(harm="zeroed", amount=BEHIND_PRE_FILL)),
    ),
    "prefill-is-seen": (SMALL, (*EXPIRED, HarmDerived())),
    "index-ahead-stays": (SMALL, (KEYED, REPUT, LOG_LOST)),
    "index-kept-for-an-empty-log": (SMALL, (KEYED, REPUT, BEFORE_THE_ANSWER)),
    "index-header-believed": (SMALL, (KEYED, REPUT, BEFORE_THE_ANSWER)),
    "queued-is-indexed": (SMALL, (PUT, KEYED, KEYED, Crash(others="kept"), Crash(back=6, others="kept"))),
}  # fmt: skip
