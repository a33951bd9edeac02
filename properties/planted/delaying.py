"""Bugs of delayed delivery: what is delivered, when, what is passed by, and what of it is remembered (RMQ-B22, B57 to
B65)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from impl.config import MessageStoreConfig
from impl.delay import HALF_TOPIC
from impl.delay_offsets import DelayOffsets
from impl.delayed_copy import copy_of, refusal_of_copy
from impl.dispatching import QueueRun
from impl.message import Message, PutStatus
from impl.parts import Parts
from impl.policy import BrokerRole
from impl.progress import Progress
from impl.progress_owner import QueueRange
from impl.properties_text import format_pairs, parse_pairs
from impl.queued_records import ReadableQueue
from impl.schedule import DeliverDelayedMessages

__all__ = ["BUGS"]

_STAND_IN = "stand-in"
_NO_END = 1 << 62


class _TriedForEver(DeliverDelayedMessages):
    """A copy that is refused for what it is is tried again, and the level waits for it (RMQ-B22)."""

    def _pass_by(self, queue: ReadableQueue, number: int, offset: int, why: str) -> bool:
        if why.startswith("its copy"):
            return False
        return super()._pass_by(queue, number, offset, why)


def _copy_not_asked_for(*_: object, **__: object) -> PutStatus | None:
    """Take a delayed message in whether or not its copy can be stored (RMQ-B22)."""
    return None


class _EndNotCorrected(DelayOffsets):
    """A number beyond the end of its queue stays there (RMQ-B57)."""

    def correct(self, range_of: QueueRange) -> None:
        super().correct(lambda topic, queue_id: (range_of(topic, queue_id)[0], _NO_END))


class _CorrectedInVain(DelayOffsets):
    """The start of the service reads the file once more, and goes by that (RMQ-B58)."""

    def correct(self, range_of: QueueRange) -> None:
        super().correct(range_of)
        self._table = dict(self._saved)


class _FailedIsSkipped(DeliverDelayedMessages):
    """A message whose copy is refused for now is passed (RMQ-B61)."""

    def _is_done(self, queue: ReadableQueue, number: int, offset: int) -> bool:
        super()._is_done(queue, number, offset)
        return True


class _NotSavedAtClose(Progress):
    """A close leaves the saving of delivery to the timer that it has just stopped (RMQ-B62)."""

    def save_all(self) -> None:
        self._owners = [owner for owner in self._owners if owner.name != "delay-offsets"]
        super().save_all()


class _SlaveKeepsItsTable(Progress):
    """What a slave was told at its start is what it goes on with, whatever its master has sent since (RMQ-B64)."""

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
    """Deliver a message of the half topic that waits in the schedule topic there (RMQ-B65)."""
    pairs = parse_pairs(str(stored.properties))
    if pairs.get("REAL_TOPIC") != HALF_TOPIC:
        return copy_of(stored)
    copy = copy_of(replace(stored, properties=format_pairs({**pairs, "REAL_TOPIC": _STAND_IN})))
    if isinstance(copy, str):
        return copy
    return replace(copy, topic=HALF_TOPIC, properties=str(copy.properties).replace(_STAND_IN, HALF_TOPIC))


class _BeginOfTheRound(DeliverDelayedMessages):
    """The progress of a round is that of its first message, as in 4.9.3: after a restart the others come again."""

    _began_at = -1

    def _deliver(self, queue: ReadableQueue, level: int, clock_ms: int) -> int | None:
        self._began_at = self._first_number(queue, level)
        return super()._deliver(queue, level, clock_ms)

    def _advance(self, level: int, number: int) -> None:
        super()._advance(level, self._began_at + 1)


class _DueWhenTheClockGoesBack(DeliverDelayedMessages):
    """What is due later than its level delays from now is due at once, as in 4.9.3."""

    def _due_ms(self, queue: ReadableQueue, number: int, offset: int, code: int) -> int:
        due_ms, now_ms = super()._due_ms(queue, number, offset, code), self._clock()
        level = min(queue.queue_id + 1, self._levels.highest)
        return now_ms if due_ms > now_ms + self._levels.delay_ms(level) else due_ms


class _AddressIsNoTime(DeliverDelayedMessages):
    """Where a unit has an address of the extension, that is taken for the time at which its message is due."""

    def _due_ms(self, queue: ReadableQueue, number: int, offset: int, code: int) -> int:
        return code


class _SavedFirst(DelayOffsets):
    """The progress is saved, and then its copies are made durable (hole A5)."""

    def save(self) -> None:
        table = self.by_level()
        if table != self._saved:
            self._file.save({"offsetTable": table})
        super().save()


class _SavedAnyway(DelayOffsets):
    """The progress is saved whether or not its copies are durable."""

    def save(self) -> None:
        make_durable = self._make_copies_durable
        self._make_copies_durable = lambda: make_durable() or True
        super().save()


def _delay_stays(stored: Message) -> Message | str:
    """Leave the delay level in the copy, as in 4.9.3; a reader that goes by it delays the copy again."""
    copy = copy_of(stored)
    if isinstance(copy, str):
        return copy
    level = parse_pairs(str(stored.properties))["DELAY"]
    return replace(copy, properties=format_pairs({"DELAY": level, **parse_pairs(str(copy.properties))}))


class _OneHoldsAll(DeliverDelayedMessages):
    """A level whose copy is refused holds up those behind it."""

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


class _NobodyWakes(DeliverDelayedMessages):
    """The dispatcher wakes nobody: what comes while nothing waits is delivered with the next message."""

    def note_runs(self, runs: Sequence[QueueRun]) -> None:
        wake, self.wake = self.wake, None
        super().note_runs(runs)
        self.wake = wake


class _SleepsUntilDue(DeliverDelayedMessages):
    """The service sleeps until the next message is due, by the clock it has just read: nobody sets it forward."""

    def _deliver(self, queue: ReadableQueue, level: int, clock_ms: int) -> int | None:
        wait_ms = super()._deliver(queue, level, clock_ms)
        unit = queue.unit(self._first_number(queue, level))
        if wait_ms is None or unit is None or wait_ms < 1_000:
            return wait_ms
        return max(wait_ms, self._due_ms(queue, 0, unit.offset, unit.tags_code) - clock_ms)


class _WaitsForTheExpired(DeliverDelayedMessages):
    """A level waits for the messages in front of it that have expired."""

    def _first_number(self, queue: ReadableQueue, level: int) -> int:
        number = self._offsets.next_number(level)
        return 0 if number is None else number


BUGS = (
    ("RMQ-B22", "a delayed message whose copy does not fit blocks its level for ever", 12,
     Parts({DeliverDelayedMessages: _TriedForEver})),
    ("RMQ-B57", "progress of delivery beyond the end of a queue stays there", 12,
     Parts({DelayOffsets: _EndNotCorrected})),
    ("RMQ-B58", "progress of delivery is corrected when it is loaded, and read again when it counts", 12,
     Parts({DelayOffsets: _CorrectedInVain})),
    ("RMQ-B61", "a delayed message whose copy is refused once is never delivered", 12,
     Parts({DeliverDelayedMessages: _FailedIsSkipped})),
    ("RMQ-B62", "a clean close does not save what was delivered", 12, Parts({Progress: _NotSavedAtClose})),
    ("RMQ-B64", "a slave that becomes a master goes on with its own progress of delivery", 13,
     Parts({Progress: _SlaveKeepsItsTable})),
    ("half-message-delivered", "a delayed half message is delivered outside of its transaction", 12,
     Parts({copy_of: _half_message_delivered})),
    ("copy-not-asked-for", "a delayed message is taken in although its copy cannot be stored", 8,
     Parts({refusal_of_copy: _copy_not_asked_for})),
    ("progress-of-the-round", "progress of delivery is that of a round, not of a message", 12,
     Parts({DeliverDelayedMessages: _BeginOfTheRound})),
    ("due-when-the-clock-goes-back", "a clock that is set back makes delayed messages due", 12,
     Parts({DeliverDelayedMessages: _DueWhenTheClockGoesBack})),
    ("address-is-no-time", "with an extension delayed messages are due at once", 12,
     Parts({DeliverDelayedMessages: _AddressIsNoTime})),
    ("saved-before-its-copies", "progress of delivery is on disk before the copies are", 12,
     Parts({DelayOffsets: _SavedFirst})),
    ("saved-after-a-failed-sync", "progress of delivery is saved although its copies are not durable", 13,
     Parts({DelayOffsets: _SavedAnyway})),
    ("delay-stays", "a delivered message says that it is delayed", 12, Parts({copy_of: _delay_stays})),
    ("one-level-holds-all", "a delay level that is refused holds up the others", 12,
     Parts({DeliverDelayedMessages: _OneHoldsAll})),
    ("delivery-not-woken", "nobody wakes delivery for a message that is due earlier", 16,
     Parts({DeliverDelayedMessages: _NobodyWakes})),
    ("delivery-sleeps-until-due", "a clock that is set forward does not wake delivery", 16,
     Parts({DeliverDelayedMessages: _SleepsUntilDue})),
    ("waits-for-the-expired", "a delay level waits for messages that have expired", 12,
     Parts({DeliverDelayedMessages: _WaitsForTheExpired})),
)  # fmt: skip
