"""Of dispatch, queues and their extension."""

from model.operations import Close, Crash, Damage, Flush, GetMessage, HarmDerived, Put, RefuseFile, Step
from properties.planted.smallest.program import Program
from properties.program.case import Settings

__all__ = ["PROGRAMS"]

REPUT = Step(service="reput")
COMMIT = Step(service="commit", after_ms=200)
FLUSH_QUEUES = Step(service="flush-queues", after_ms=60_000)
TAGGED, KEYED = Put(properties="TAGS\x01TagA"), Put(properties="KEYS\x01k")
NEGATIVE = Put(properties="TAGS\x01TagZZZ")
DELAYED = Put(properties="DELAY\x011")
NAMING = Put(properties="INNER_MULTI_DISPATCH\x01U")
KILL, POWER_LOSS = Crash(kill=True), Crash()
PASSES_NO_FILTER = "TAGS\x01TagB"
"""In topic U: its bit map is empty (properties/program/bit_maps.py)."""
STORE_TIME_AT = 10

PROGRAMS: dict[str, Program] = {
    "RMQ-B11": (Settings(), (Put(), Damage(kind="flip", amount=1))),
    "RMQ-B02": (Settings(), (Put(), REPUT, FLUSH_QUEUES, POWER_LOSS)),
    "RMQ-B03": (Settings(), (Put(), KILL)),
    "RMQ-B32": (Settings(), (Put(), REPUT, KEYED, RefuseFile(), REPUT, REPUT)),
    "RMQ-B33": (Settings(), (Put(), HarmDerived(file="queue", harm="zeroed"))),
    "RMQ-B34": (Settings(queue_units=1), (Put(), Put(), HarmDerived(file="queue", harm="lost"))),
    "torn-unit-stays": (Settings(), (TAGGED, HarmDerived(file="queue", harm="zeroed", amount=12))),
    "zero-is-new": (Settings(), (Put(), REPUT, KILL)),
    "refused-unit-forgotten": (Settings(), (Put(), RefuseFile(), REPUT)),
    "stale-units-behind": (Settings(), (Put(), Flush(), Put(), REPUT, FLUSH_QUEUES, POWER_LOSS)),
    "one-queue-file-a-round": (
        Settings(queue_units=1), (Put(), Put(), Put(), Flush(), REPUT, FLUSH_QUEUES, POWER_LOSS),
    ),
    "queue-names-not-synced": (Settings(), (Put(), Put(), Flush(), REPUT, FLUSH_QUEUES, POWER_LOSS)),
    "RMQ-B01": (Settings(), (Put(), Close())),
    "RMQ-B12": (Settings(), (Put(), RefuseFile(), REPUT, REPUT)),
    "RMQ-B15": (Settings(pool_buffers=1), (Put(), REPUT, COMMIT)),
    "RMQ-B73": (Settings(trailer=False, multi_dispatch=True), (Put(), REPUT)),
    "furthest-queue-first": (
        Settings(), (Put(topic="U"), Put(), HarmDerived(file="queue", harm="lost", number=1)),
    ),
    "delays-known-too-late": (Settings(), (DELAYED, KILL)),
    "named-queue-forgotten": (Settings(multi_dispatch=True), (NAMING, REPUT)),
    "RMQ-B42": (Settings(), (NEGATIVE, REPUT, GetMessage(tags="TagA"))),
    "extension-believed": (Settings(queue_ext=True), (Put(), HarmDerived(file="extension", harm="lost"))),
    "one-store-time": (Settings(queue_ext=True), (Put(), Put(), KILL)),
    "bit-map-of-another": (
        Settings(queue_ext=True, bit_maps=True), (Put(topic="U"), Put(topic="U", properties=PASSES_NO_FILTER), KILL),
    ),
    "known-by-its-tag": (
        Settings(queue_ext=True), (Put(), HarmDerived(file="extension", harm="zeroed", amount=STORE_TIME_AT + 6)),
    ),
}  # fmt: skip
