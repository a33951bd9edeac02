"""Of retention: clean-ups, deleted topics, buffers that readers keep."""

from dataclasses import replace

from model.operations import Clean, Crash, DeleteTopics, DiskUsed, Flush, Get, HoldBuffer, Put, ReleaseBuffer, Step
from properties.planted.smallest.program import Program
from properties.program.case import Settings

__all__ = ["PROGRAMS"]

REPUT, FLUSH = Step(service="reput"), Flush()
FULL, KEYED = Put(body_bytes=800), Put(properties="KEYS\x01k")
KEYED_FULL = replace(KEYED, body_bytes=800)
ASKED_FOR = Clean(manual=True)
DAYS = Clean(after_hours=72, manual=True)
NEARLY, TOO_FULL = Clean(percent=80), Clean(percent=86)
SMALL = Settings(file_bytes=1024)
POWER_LOSS, KILL = Crash(), Crash(kill=True)

PROGRAMS: dict[str, Program] = {
    "RMQ-B04": (SMALL, (FULL, FULL, FLUSH, TOO_FULL)),
    "neighbour-found": (SMALL, (FULL, FULL, REPUT, FLUSH, TOO_FULL, FULL, Get(record=1))),
    "RMQ-B39": (Settings(), (Put(), REPUT, DeleteTopics(), KILL)),
    "RMQ-B41": (SMALL, (FULL, FULL, REPUT, FLUSH, HoldBuffer(), TOO_FULL, ReleaseBuffer(), TOO_FULL)),
    "RMQ-B50": (
        replace(SMALL, index_entries=2), (KEYED_FULL, KEYED_FULL, REPUT, FLUSH, replace(TOO_FULL, query=0)),
    ),
    "RMQ-B53": (SMALL, (FULL, Clean(after_hours=72), FULL, REPUT, FLUSH, ASKED_FOR)),
    "RMQ-B54": (Settings(), (DiskUsed(percent=95), Put())),
    "RMQ-B55": (Settings(), (Put(topic="RMQ_SYS_TRANS_OP_HALF_TOPIC"), DeleteTopics())),
    "RMQ-B56": (SMALL, (FULL, FULL, REPUT, FLUSH, *(ASKED_FOR,), *(Clean(),) * 18, Clean(after_hours=73))),
    "last-file-deleted": (SMALL, (FULL, FULL, REPUT, FLUSH, TOO_FULL)),
    "unlinks-not-in-order": (
        replace(SMALL, log_paths=2), (FULL, FULL, FULL, FULL, REPUT, FLUSH, TOO_FULL, POWER_LOSS),
    ),
    "deleted-topic-not-durable": (Settings(), (Put(), REPUT, FLUSH, DeleteTopics(), POWER_LOSS)),
    "deletion-forgotten": (Settings(), (Put(), FLUSH, DeleteTopics(), Clean(), KILL)),
    "deletion-outlives-the-log": (Settings(), (Put(), DeleteTopics(), POWER_LOSS, Put(), REPUT)),
    "deleted-numbers-go-on": (Settings(), (Put(), DeleteTopics(), Put())),
    "queues-do-not-follow": (SMALL, (FULL, FULL, REPUT, FLUSH, TOO_FULL)),
    "numbers-not-durable": (SMALL, (FULL, Put(topic="U", body_bytes=800), REPUT, FLUSH, TOO_FULL, POWER_LOSS)),
    "age-on-a-full-disk": (SMALL, (FULL, FULL, REPUT, FLUSH, TOO_FULL)),
    "buffer-taken-back": (SMALL, (FULL, FULL, REPUT, FLUSH, HoldBuffer(), TOO_FULL)),
}  # fmt: skip
