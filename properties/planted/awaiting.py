"""Bugs of asynchronous delivery: what becomes of copies whose answers are open, or are refusals (RMQ-B59, B60)."""

from impl.message import Message, PutStatus
from impl.parts import Parts
from impl.queued_records import ReadableQueue
from impl.schedule import RETRY_MS
from impl.schedule_async import DeliverDelayedMessagesAsync

__all__ = ["BUGS"]

_STACK = 200


class _RetriesInItsCallback(DeliverDelayedMessagesAsync):
    """The answer of a copy that is refused puts it again, and so does the answer to that, until the stack is full."""

    def _refusal_of(self, copy: Message) -> PutStatus | None:
        for _ in range(_STACK):
            refused = super()._refusal_of(copy)
            if refused is None or refused is PutStatus.MESSAGE_ILLEGAL:
                return refused
        raise RecursionError


class _AsksWithoutAPause(DeliverDelayedMessagesAsync):
    """As long as the first copy of a line is not answered, it is asked again."""

    def _deliver(self, queue: ReadableQueue, level: int, clock_ms: int) -> int | None:
        pause_ms = super()._deliver(queue, level, clock_ms)
        return 0 if self._lines[level] else pause_ms


class _PutIsEnough(DeliverDelayedMessagesAsync):
    """A level goes on behind a copy as soon as it is put."""

    def _advance(self, level: int, number: int) -> None:
        super()._advance(level, number)
        self._offsets.advance(level, number)


class _AnswerIsNotHeard(DeliverDelayedMessagesAsync):
    """An answer wakes nobody."""

    def _answered(self, _: object) -> None:
        """Pass."""


class _NeverFull(DeliverDelayedMessagesAsync):
    """A level puts on, however many of its copies are not answered."""

    def _is_full(self, level: int) -> bool:
        return False


class _RefusedComesLater(DeliverDelayedMessagesAsync):
    """A copy that is refused is put again with the next round, and those behind it at once, as in 4.9.3."""

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


class _CloseHearsNothing(DeliverDelayedMessagesAsync):
    """What a close is answered for the copies that wait is not noted."""

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


class _NeverMorePatient(DeliverDelayedMessagesAsync):
    """A copy that is refused is put again ten times a second, however long that goes on."""

    def _pause_ms(self, level: int) -> int:
        return RETRY_MS


BUGS = (
    ("RMQ-B59", "a delayed message that is refused is put again in the callback of its answer, without an end", 16,
     Parts({DeliverDelayedMessagesAsync: _RetriesInItsCallback})),
    ("RMQ-B60", "delivery asks for an answer that is open without a pause", 16,
     Parts({DeliverDelayedMessagesAsync: _AsksWithoutAPause})),
    ("unanswered-is-delivered", "progress of delivery is behind copies that are not answered", 12,
     Parts({DeliverDelayedMessagesAsync: _PutIsEnough})),
    ("answer-wakes-nobody", "the answer of a copy is noticed when something else happens", 16,
     Parts({DeliverDelayedMessagesAsync: _AnswerIsNotHeard})),
    ("line-without-end", "any number of copies of a level waits for an answer", 12,
     Parts({DeliverDelayedMessagesAsync: _NeverFull})),
    ("refused-is-overtaken", "a delayed message whose copy is refused comes behind later ones", 12,
     Parts({DeliverDelayedMessagesAsync: _RefusedComesLater})),
    ("close-hears-no-answer", "a clean close does not save what was answered last", 12,
     Parts({DeliverDelayedMessagesAsync: _CloseHearsNothing})),
    ("refused-ten-times-a-second", "a copy that is refused is put again without patience", 16,
     Parts({DeliverDelayedMessagesAsync: _NeverMorePatient})),
)  # fmt: skip
