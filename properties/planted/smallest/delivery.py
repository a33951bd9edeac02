"""Of delayed delivery: levels, copies, progress, and delivery that waits for its answers."""

from dataclasses import replace

from model.operations import (
    ChangeRole,
    Clean,
    ClockStep,
    Close,
    Crash,
    DelayOffsetsAre,
    FailAppend,
    FailSync,
    Flush,
    Put,
    Step,
    SwitchFlag,
)
from properties.planted.smallest.program import Program
from properties.program.case import Settings

__all__ = ["PROGRAMS"]

REPUT, FLUSH, SAVE = Step(service="reput"), Flush(), Step(service="progress", after_ms=10_000)
FIRST, SECOND = Put(properties="DELAY\x011"), Put(properties="DELAY\x012")
SOON, LATER = Step(service="schedule", after_ms=1_000), Step(service="schedule", after_ms=2_000)
LONG = Put(topic="t" * 127, properties="DELAY\x011")
HALF = Put(topic="RMQ_SYS_TRANS_HALF_TOPIC", properties="DELAY\x011")
FULL = Put(body_bytes=800)
AWAITED, ALONE = Settings(sync_flush=True, pending_copies=2), Settings(sync_flush=True, pending_copies=1)
NARROW, SMALL = Settings(record_bytes_max=320), Settings(file_bytes=1024)

PROGRAMS: dict[str, Program] = {
    "RMQ-B22": (replace(NARROW, java_delays=True), (LONG, REPUT, SOON)),
    "RMQ-B57": (Settings(), (FIRST, REPUT, DelayOffsetsAre(by=2))),
    "RMQ-B58": (Settings(), (FIRST, REPUT, DelayOffsetsAre(by=2))),
    "RMQ-B61": (Settings(), (FIRST, REPUT, FailAppend(), SOON)),
    "RMQ-B62": (Settings(), (FIRST, REPUT, SOON, Close())),
    "RMQ-B64": (Settings(), (FIRST, REPUT, ChangeRole("SLAVE"), DelayOffsetsAre(), ChangeRole())),
    "half-message-delivered": (Settings(java_delays=True), (HALF, REPUT, SOON)),
    "copy-not-asked-for": (NARROW, (LONG,)),
    "progress-of-the-round": (Settings(), (FIRST, FIRST, REPUT, SOON)),
    "due-when-the-clock-goes-back": (Settings(), (FIRST, REPUT, ClockStep(by_ms=-1), Step(service="schedule"))),
    "address-is-no-time": (Settings(queue_ext=True), (FIRST, REPUT, Step(service="schedule"))),
    "saved-before-its-copies": (Settings(), (FIRST, FLUSH, REPUT, SOON, SAVE, Crash(back=14))),
    "saved-after-a-failed-sync": (Settings(), (FIRST, REPUT, SOON, FailSync(), SAVE, Crash())),
    "delay-stays": (Settings(), (FIRST, REPUT, SOON)),
    "one-level-holds-all": (Settings(), (FIRST, SECOND, REPUT, FailAppend(), LATER)),
    "delivery-not-woken": (Settings(), (SOON, FIRST, REPUT)),
    "delivery-sleeps-until-due": (Settings(), (SECOND, REPUT, Step(service="schedule"))),
    "waits-for-the-expired": (SMALL, (FIRST, FULL, FULL, FIRST, REPUT, FLUSH, Clean(percent=88), SOON)),
    "RMQ-B59": (AWAITED, (FIRST, REPUT, SwitchFlag(), SOON)),
    "RMQ-B60": (AWAITED, (FIRST, REPUT, SOON)),
    "unanswered-is-delivered": (AWAITED, (FIRST, REPUT, SOON)),
    "answer-wakes-nobody": (AWAITED, (FIRST, REPUT, SOON, Step())),
    "line-without-end": (ALONE, (FIRST, FIRST, REPUT, SOON)),
    "refused-is-overtaken": (AWAITED, (FIRST, REPUT, FailAppend(), SOON)),
    "close-hears-no-answer": (AWAITED, (FIRST, REPUT, SOON, Close())),
    "refused-ten-times-a-second": (
        AWAITED,
        (FIRST, REPUT, SwitchFlag(), SOON, Step(service="schedule", after_ms=100)),
    ),
}
