"""Of puts: single ones, batches, and what they are dispatched to."""

from dataclasses import replace

from model.operations import Crash, FailAppend, FailSync, Member, Open, Put, PutBatch
from properties.planted.smallest.program import Program
from properties.program.case import Settings

__all__ = ["PROGRAMS"]

SMALL, SYNC = Settings(file_bytes=1024), Settings(file_bytes=1024, sync_flush=True)
NARROW = Settings(file_bytes=1024, record_bytes_max=1_000)
NAMES = Settings(file_bytes=1024, multi_dispatch=True)
NO_LIGHT_QUEUES = Settings(file_bytes=1024, multi_dispatch=True, light_queues=True, light_queues_max=0)
ONE_LIGHT_QUEUE = replace(NO_LIGHT_QUEUES, light_queues_max=1)
PUT, LATER, DELAYED = Put(), Put(advance_ms=2_000), Put(properties="DELAY\x0199")
IN_BATCH = "CLUSTER\x01C"
LONGEST = 32_767
"""Bytes of properties."""

PROGRAMS: dict[str, Program] = {
    "RMQ-B16": (SMALL, (FailAppend(), PUT, LATER)),
    "RMQ-B18": (NARROW, (Put(body_bytes=950), PUT)),
    "RMQ-B23": (SYNC, (PUT, FailSync(), PUT)),
    "topic-in-characters": (SMALL, (Put(topic="\u8ba2" * 43),)),
    "RMQ-B19": (SMALL, (PutBatch(members=(Member(properties="m\x01" + "v" * (LONGEST - 2)),)),)),
    "RMQ-B20": (SMALL, (PutBatch(members=(Member(properties="TAGS\x01TagB"),), properties=IN_BATCH),)),
    "RMQ-B21": (SMALL, (PutBatch(members=(Member(),), properties="UNIQ_KEY\x01batch"),)),
    "RMQ-B65": (SMALL, (Put(topic="RMQ_SYS_TRANS_HALF_TOPIC", properties="DELAY\x012"),)),
    "RMQ-B74": (NAMES, (DELAYED, Put(topic="%LMQ%a", properties="INNER_MULTI_DISPATCH\x01U,T"), Crash(others="kept"))),
    "RMQ-B75": (NAMES, (Put(topic="SCHEDULE_TOPIC_XXXX", properties="INNER_MULTI_DISPATCH\x01U,T"),)),
    "RMQ-B77": (NO_LIGHT_QUEUES, (Put(properties="INNER_MULTI_DISPATCH\x01%LMQ%a"),)),
    "own-light-queue-not-counted": (
        ONE_LIGHT_QUEUE,
        (
            Put(topic="%LMQ%a", properties="INNER_MULTI_DISPATCH\x01%LMQ%a"),
            Open(),
            Put(properties="INNER_MULTI_DISPATCH\x01%LMQ%c"),
        ),
    ),
}
