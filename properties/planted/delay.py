"""Define bugs of delayed delivery: choice, time and order of deliveries, and progress."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.delay.delay_offsets import DelayOffsets
from tornpage.impl.delay.schedule import RETRY_MS, DeliverDelayedMessages
from tornpage.impl.delay.schedule_async import DeliverDelayedMessagesAsync
from tornpage.impl.groups.progress import Progress
from tornpage.impl.groups.progress_owner import QueueRange
from tornpage.impl.message.delay_levels import HALF_TOPIC
from tornpage.impl.message.dispatching import QueueRun
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.message.properties_text import format_pairs, parse_pairs
from tornpage.impl.parts import Parts
from tornpage.impl.put.delayed_copy import copy_of, refusal_of_copy
from tornpage.impl.read.queued_records import ReadableQueue
from tornpage.model.operations import (
    ChangeRole,
    Clean,
    ClockStep,
    Close,
    Crash,
    DelayOffsetsAre,
    FailAppend,
    FailSync,
    Put,
    Step,
    SwitchFlag,
)
from tornpage.properties.planted.programs import FLUSH, FULL, REPUT, SMALL
from tornpage.properties.planted.record import Origin, PlantedBug
from tornpage.properties.program.case import Settings

__all__ = ["BUGS"]

_STAND_IN = "stand-in"

_NO_END = 1 << 62
_STACK = 200


# ---- delivery --------------------------------------------------------------------------------------------------------


class _EndlessRetry(DeliverDelayedMessages):
    """Retry a copy that can never be stored, and block its level meanwhile (RMQ-B22)."""

    def _skip(self, queue: ReadableQueue, number: int, offset: int, why: str) -> bool:
        if why.startswith("its copy"):
            return False
        return super()._skip(queue, number, offset, why)


def _copy_not_checked(*_: object, **__: object) -> PutStatus | None:
    """Accept a delayed message without checking that its copy can be stored (RMQ-B22)."""
    return None


class _EndNotCorrected(DelayOffsets):
    """Keep delivery progress that is past the end of its queue (RMQ-B57)."""

    def correct(self, range_of: QueueRange) -> None:
        super().correct(lambda topic, queue_id: (range_of(topic, queue_id)[0], _NO_END))


class _CorrectionDropped(DelayOffsets):
    """Load delivery progress again when the service starts and drop the correction (RMQ-B58)."""

    def correct(self, range_of: QueueRange) -> None:
        super().correct(range_of)
        self._table = dict(self._saved)


class _FailedIsSkipped(DeliverDelayedMessages):
    """Skip a message whose copy was refused for a passing reason (RMQ-B61)."""

    def _is_done(self, queue: ReadableQueue, number: int, offset: int) -> bool:
        super()._is_done(queue, number, offset)
        return True


class _NotSavedAtClose(Progress):
    """Leave delivery progress unsaved at close (RMQ-B62).

    Only the timer saves it, and the close has stopped the timer.
    """

    def save_all(self) -> None:
        self._owners = [owner for owner in self._owners if owner.name != "delay-offsets"]
        super().save_all()


class _StaleSlaveTable(Progress):
    """Keep the progress that a slave read at its start, ignoring its master (RMQ-B64)."""

    def __init__(self, config: MessageStoreConfig, *, config_file: Callable[[str], Any], **others: Any) -> None:
        super().__init__(config, config_file=config_file, **others)
        self._stale: DelayOffsets | None = None
        self._file = config_file("delayOffset.json")
        if config.broker_role is BrokerRole.SLAVE:
            self._stale = DelayOffsets(self._file, interval_ms=0, make_copies_durable=lambda: True)

    def open(self, range_of: QueueRange) -> Any:
        if self._stale is not None:
            self._stale.load()
        return super().open(range_of)

    def save_all(self) -> None:
        super().save_all()
        if self._stale is not None:
            self._file.save({"offsetTable": self._stale.by_level()})


def _half_message_delivered(stored: Message) -> Message | str:
    """Deliver a delayed message of the half topic back to the half topic (RMQ-B65)."""
    pairs = parse_pairs(str(stored.properties))
    if pairs.get("REAL_TOPIC") != HALF_TOPIC:
        return copy_of(stored)
    copy = copy_of(replace(stored, properties=format_pairs({**pairs, "REAL_TOPIC": _STAND_IN})))
    if isinstance(copy, str):
        return copy
    return replace(copy, topic=HALF_TOPIC, properties=str(copy.properties).replace(_STAND_IN, HALF_TOPIC))


class _RoundProgress(DeliverDelayedMessages):
    """Record only the first message of a round as progress (4.9.3).

    A restart delivers the others again.
    """

    _began_at = -1

    def _deliver(self, queue: ReadableQueue, level: int, clock_ms: int) -> int | None:
        self._began_at = self._first_number(queue, level)
        return super()._deliver(queue, level, clock_ms)

    def _advance(self, level: int, number: int) -> None:
        super()._advance(level, self._began_at + 1)


class _DueOnClockBack(DeliverDelayedMessages):
    """Treat a message as due when its due time exceeds the delay of its level (4.9.3)."""

    def _due_ms(self, queue: ReadableQueue, number: int, offset: int, code: int) -> int:
        due_ms, now_ms = super()._due_ms(queue, number, offset, code), self._clock()
        level = min(queue.queue_id + 1, self._levels.highest)
        return now_ms if due_ms > now_ms + self._levels.delay_ms(level) else due_ms


class _AddressAsTime(DeliverDelayedMessages):
    """Take the extension address in a unit for the due time of its message."""

    def _due_ms(self, queue: ReadableQueue, number: int, offset: int, code: int) -> int:
        return code


class _SavedFirst(DelayOffsets):
    """Save the progress before its copies are durable (hole A5)."""

    def save(self) -> None:
        table = self.by_level()
        if table != self._saved:
            self._file.save({"offsetTable": table})
        super().save()


class _SavedAnyway(DelayOffsets):
    """Save the progress even if its copies could not be made durable."""

    def save(self) -> None:
        make_durable = self._make_copies_durable
        self._make_copies_durable = lambda: make_durable() or True
        super().save()


def _delay_stays(stored: Message) -> Message | str:
    """Leave the delay level in the copy (4.9.3).

    A reader that honours it delays the copy again.
    """
    copy = copy_of(stored)
    if isinstance(copy, str):
        return copy
    level = parse_pairs(str(stored.properties))["DELAY"]
    return replace(copy, properties=format_pairs({"DELAY": level, **parse_pairs(str(copy.properties))}))


class _LevelsHeldUp(DeliverDelayedMessages):
    """Hold up all later levels while a copy of one level is refused."""

    _is_held_up = False

    def step(self, now_ms: int) -> int | None:
        self._is_held_up = False
        return super().step(now_ms)

    def _round_of(self, queue_id: int, clock_ms: int) -> int | None:
        return 100 if self._is_held_up else super()._round_of(queue_id, clock_ms)

    def _is_done(self, queue: ReadableQueue, number: int, offset: int) -> bool:
        done = super()._is_done(queue, number, offset)
        self._is_held_up |= not done
        return done


class _NoWakeUp(DeliverDelayedMessages):
    """Never wake the service from the dispatcher. A new message waits for the next round."""

    def note_runs(self, runs: Sequence[QueueRun]) -> None:
        wake, self.wake = self.wake, None
        super().note_runs(runs)
        self.wake = wake


class _SleepsUntilDue(DeliverDelayedMessages):
    """Sleep until the next message is due, and miss a clock that is set forward meanwhile."""

    def _deliver(self, queue: ReadableQueue, level: int, clock_ms: int) -> int | None:
        wait_ms = super()._deliver(queue, level, clock_ms)
        unit = queue.unit(self._first_number(queue, level))
        if wait_ms is None or unit is None or wait_ms < 1_000:
            return wait_ms
        return max(wait_ms, self._due_ms(queue, 0, unit.offset, unit.tags_code) - clock_ms)


class _ExpiredAwaited(DeliverDelayedMessages):
    """Wait for messages at the head of a level that have expired."""

    def _first_number(self, queue: ReadableQueue, level: int) -> int:
        number = self._offsets.next_number(level)
        return 0 if number is None else number


# ---- asynchronous delivery -------------------------------------------------------------------------------------------


class _CallbackRetry(DeliverDelayedMessagesAsync):
    """Put a refused copy again inside the callback of its answer, until the stack overflows."""

    def _refusal_of(self, copy: Message) -> PutStatus | None:
        for _ in range(_STACK):
            refused = super()._refusal_of(copy)
            if refused is None or refused is PutStatus.MESSAGE_ILLEGAL:
                return refused
        raise RecursionError


class _BusyPolling(DeliverDelayedMessagesAsync):
    """Poll the first unanswered copy of a level without a pause."""

    def _deliver(self, queue: ReadableQueue, level: int, clock_ms: int) -> int | None:
        pause_ms = super()._deliver(queue, level, clock_ms)
        return 0 if self._lines[level] else pause_ms


class _ProgressAtPut(DeliverDelayedMessagesAsync):
    """Advance the progress of a level as soon as a copy is put, before it is answered."""

    def _advance(self, level: int, number: int) -> None:
        super()._advance(level, number)
        self._offsets.advance(level, number)


class _AnswerIgnored(DeliverDelayedMessagesAsync):
    """Ignore the wake-up of an answer."""

    def _answered(self, _: object) -> None:
        """Do nothing."""


class _NeverFull(DeliverDelayedMessagesAsync):
    """Put copies without a limit on the unanswered ones."""

    def _is_full(self, level: int) -> bool:
        return False


class _RefusedOvertaken(DeliverDelayedMessagesAsync):
    """Put a refused copy again in the next round, after the copies that follow it (4.9.3)."""

    _refused: tuple[Message, ...] = ()

    def step(self, now_ms: int) -> int | None:
        again, self._refused = self._refused, ()
        for copy in again:
            self._refusal_of(copy)
        return super().step(now_ms)

    def _refusal_of(self, copy: Message) -> PutStatus | None:
        refused = super()._refusal_of(copy)
        if refused is None or refused is PutStatus.MESSAGE_ILLEGAL:
            return refused
        self._refused += (copy,)
        return None


class _AnswersDuringCloseIgnored(DeliverDelayedMessagesAsync):
    """Ignore answers that arrive during a close."""

    _is_in_a_round = False

    def step(self, now_ms: int) -> int | None:
        self._is_in_a_round = True
        try:
            return super().step(now_ms)
        finally:
            self._is_in_a_round = False

    def finish(self) -> None:
        if self._is_in_a_round:
            super().finish()


class _NoBackoff(DeliverDelayedMessagesAsync):
    """Retry a refused copy ten times a second without backing off."""

    def _pause_ms(self, level: int) -> int:
        return RETRY_MS


# ---- the bugs, each with its minimal reproducer ----------------------------------------------------------------------

SAVE_DELAYS = Step(service="progress", after_ms=10_000)
FIRST_LEVEL = Put(properties="DELAY\x011")
SECOND_LEVEL = Put(properties="DELAY\x012")
ROUND_SOON = Step(service="schedule", after_ms=1_000)
ROUND_LATER = Step(service="schedule", after_ms=2_000)
LONG = Put(topic="t" * 127, properties="DELAY\x011")
HALF = Put(topic="RMQ_SYS_TRANS_HALF_TOPIC", properties="DELAY\x011")
AWAITED = Settings(sync_flush=True, pending_copies=2)
ALONE = Settings(sync_flush=True, pending_copies=1)
NARROW_RECORDS = Settings(record_bytes_max=320)

BUGS = (
    PlantedBug("RMQ-B22", "a delayed message whose copy is too large blocks its delay level forever", 12,
        Parts({DeliverDelayedMessages: _EndlessRetry}),
        origin=Origin("RMQ-B22", "Message that fits once no longer fits when re-stored", "4.9.4", "yes"),
        machine="delay", program=(replace(NARROW_RECORDS, java_delays=True), (LONG, REPUT, ROUND_SOON))),
    PlantedBug("RMQ-B57", "delivery progress past the end of its queue is not corrected", 12,
        Parts({DelayOffsets: _EndNotCorrected}),
        origin=Origin("RMQ-B57", "Delay offset beyond the queue end is never corrected", "4.9.2", "no"),
        machine="delay", program=(Settings(), (FIRST_LEVEL, REPUT, DelayOffsetsAre(by=2)))),
    PlantedBug("RMQ-B58",
        "delivery progress is corrected at load, then the service reads the uncorrected file again", 12,
        Parts({DelayOffsets: _CorrectionDropped}),
        origin=Origin("RMQ-B58", "Delay offsets corrected on load but not on start", "4.9.4", "yes"), machine="delay",
        program=(Settings(), (FIRST_LEVEL, REPUT, DelayOffsetsAre(by=2)))),
    PlantedBug("RMQ-B61", "a delayed message is skipped for good after its copy is refused once", 12,
        Parts({DeliverDelayedMessages: _FailedIsSkipped}),
        origin=Origin("RMQ-B61", "Failed delivery skips the message", "5.3.3", "no"), machine="delay",
        program=(Settings(), (FIRST_LEVEL, REPUT, FailAppend(), ROUND_SOON))),
    PlantedBug("RMQ-B62", "a clean close does not save delivery progress", 12, Parts({Progress: _NotSavedAtClose}),
        origin=Origin("RMQ-B62", "Delivery progress not saved on shutdown", "4.9.3", "no"), machine="delay",
        program=(Settings(), (FIRST_LEVEL, REPUT, ROUND_SOON, Close()))),
    PlantedBug("RMQ-B64", "a slave promoted to master delivers from its own stale progress", 13,
        Parts({Progress: _StaleSlaveTable}),
        origin=Origin("RMQ-B64", "Delay offsets not reloaded when a node becomes master", "4.9.0", "no"),
        machine="delay",
        program=(Settings(), (FIRST_LEVEL, REPUT, ChangeRole("SLAVE"), DelayOffsetsAre(), ChangeRole()))),
    PlantedBug("half-message-delivered", "a delayed half message is delivered outside its transaction", 12,
        Parts({copy_of: _half_message_delivered}), machine="delay",
        program=(Settings(java_delays=True), (HALF, REPUT, ROUND_SOON))),
    PlantedBug("copy-not-asked-for", "a put accepts a delayed message whose copy cannot be stored", 8,
        Parts({refusal_of_copy: _copy_not_checked}), machine="delay", program=(NARROW_RECORDS, (LONG,))),
    PlantedBug("progress-of-the-round",
        "delivery progress is saved once per round, so a restart delivers messages twice", 12,
        Parts({DeliverDelayedMessages: _RoundProgress}), holes=("F2",), machine="delay",
        program=(Settings(), (FIRST_LEVEL, FIRST_LEVEL, REPUT, ROUND_SOON))),
    PlantedBug("due-when-the-clock-goes-back", "setting the clock back makes delayed messages due at once", 12,
        Parts({DeliverDelayedMessages: _DueOnClockBack}), machine="delay",
        program=(Settings(), (FIRST_LEVEL, REPUT, ClockStep(by_ms=-1), Step(service="schedule")))),
    PlantedBug("address-is-no-time",
        "delivery takes an extension address for the due time, so delayed messages are due at once", 12,
        Parts({DeliverDelayedMessages: _AddressAsTime}), machine="delay",
        program=(Settings(queue_ext=True), (FIRST_LEVEL, REPUT, Step(service="schedule")))),
    PlantedBug("saved-before-its-copies", "delivery progress is saved before the delivered copies are durable", 12,
        Parts({DelayOffsets: _SavedFirst}), kind="reorder flushes", holes=("A5",), machine="delay",
        program=(Settings(), (FIRST_LEVEL, FLUSH, REPUT, ROUND_SOON, SAVE_DELAYS, Crash(back=14)))),
    PlantedBug("saved-after-a-failed-sync",
        "delivery progress is saved after the sync of the delivered copies failed", 13,
        Parts({DelayOffsets: _SavedAnyway}), machine="delay",
        program=(Settings(), (FIRST_LEVEL, REPUT, ROUND_SOON, FailSync(), SAVE_DELAYS, Crash()))),
    PlantedBug("delay-stays",
        "a delivered copy keeps its delay property, so it can be delayed again", 12, Parts({copy_of: _delay_stays}),
        machine="delay", program=(Settings(), (FIRST_LEVEL, REPUT, ROUND_SOON))),
    PlantedBug("one-level-holds-all", "a refused copy on one delay level holds up all later levels", 12,
        Parts({DeliverDelayedMessages: _LevelsHeldUp}), machine="delay",
        program=(Settings(), (FIRST_LEVEL, SECOND_LEVEL, REPUT, FailAppend(), ROUND_LATER))),
    PlantedBug("delivery-not-woken", "a newly dispatched message does not wake delivery", 16,
        Parts({DeliverDelayedMessages: _NoWakeUp}), machine="delay",
        program=(Settings(), (ROUND_SOON, FIRST_LEVEL, REPUT))),
    PlantedBug("delivery-sleeps-until-due", "setting the clock forward does not wake delivery", 16,
        Parts({DeliverDelayedMessages: _SleepsUntilDue}), machine="delay",
        program=(Settings(), (SECOND_LEVEL, REPUT, Step(service="schedule")))),
    PlantedBug("waits-for-the-expired", "a delay level waits for messages that have already expired", 12,
        Parts({DeliverDelayedMessages: _ExpiredAwaited}), machine="delay",
        program=(SMALL, (FIRST_LEVEL, FULL, FULL, FIRST_LEVEL, REPUT, FLUSH, Clean(percent=88), ROUND_SOON))),
    PlantedBug("RMQ-B59",
        "a refused copy is put again inside the callback of its answer, recursing without end", 16,
        Parts({DeliverDelayedMessagesAsync: _CallbackRetry}), machine="delay",
        program=(AWAITED, (FIRST_LEVEL, REPUT, SwitchFlag(), ROUND_SOON))),
    PlantedBug("RMQ-B60", "delivery polls for an outstanding answer without a pause (busy loop)", 16,
        Parts({DeliverDelayedMessagesAsync: _BusyPolling}), machine="delay",
        program=(AWAITED, (FIRST_LEVEL, REPUT, ROUND_SOON))),
    PlantedBug("unanswered-is-delivered", "delivery progress passes copies that are not yet acknowledged", 12,
        Parts({DeliverDelayedMessagesAsync: _ProgressAtPut}), machine="delay",
        program=(AWAITED, (FIRST_LEVEL, REPUT, ROUND_SOON))),
    PlantedBug("answer-wakes-nobody", "an acknowledged copy does not wake delivery", 16,
        Parts({DeliverDelayedMessagesAsync: _AnswerIgnored}), machine="delay",
        program=(AWAITED, (FIRST_LEVEL, REPUT, ROUND_SOON, Step()))),
    PlantedBug("line-without-end", "the number of unacknowledged copies of a delay level is not limited", 12,
        Parts({DeliverDelayedMessagesAsync: _NeverFull}), machine="delay",
        program=(ALONE, (FIRST_LEVEL, FIRST_LEVEL, REPUT, ROUND_SOON))),
    PlantedBug("refused-is-overtaken", "a refused copy is stored after later messages of its level", 12,
        Parts({DeliverDelayedMessagesAsync: _RefusedOvertaken}), machine="delay",
        program=(AWAITED, (FIRST_LEVEL, REPUT, FailAppend(), ROUND_SOON))),
    PlantedBug("close-hears-no-answer", "a clean close does not save the last acknowledged copies as delivered", 12,
        Parts({DeliverDelayedMessagesAsync: _AnswersDuringCloseIgnored}), machine="delay",
        program=(AWAITED, (FIRST_LEVEL, REPUT, ROUND_SOON, Close()))),
    PlantedBug("refused-ten-times-a-second", "a refused copy is retried ten times a second without backing off", 16,
        Parts({DeliverDelayedMessagesAsync: _NoBackoff}), machine="delay",
        program=(AWAITED, (FIRST_LEVEL, REPUT, SwitchFlag(), ROUND_SOON, Step(service="schedule", after_ms=100)))),
)  # fmt: skip
