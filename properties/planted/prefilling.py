"""Bugs around pre-fill, which stands for numbers that no message has (holes of 4.9.3)."""

from impl.consume_queue import ConsumeQueue
from impl.dispatching import QueueRun
from impl.parts import Parts

__all__ = ["BUGS"]


class _PrefillIsTheFurthest(ConsumeQueue):
    """A queue of which only pre-fill is left passes all records in front of where that seems to end (hole C5)."""

    _furthest = 0

    def load(self) -> None:
        super().load()
        if not self.is_empty and self.max_offset > self.first_number:
            last = self._stored(self.max_offset - 1)
            self._furthest = last.end_offset if last.is_prefill else 0

    def reconcile(self, run: QueueRun) -> None:
        if run.end_offset > self._furthest:
            super().reconcile(run)

    def append(self, run: QueueRun) -> None:
        if run.end_offset > self._furthest:
            super().append(run)


class _PrefillIsSeen(ConsumeQueue):
    """After a restart pre-fill counts as messages (hole C6)."""

    def _first_survivor(self, number: int, log_min: int) -> int:
        first = super()._first_survivor(number, log_min)
        while first > self.first_number and self._stored(first - 1).is_prefill:
            first -= 1
        return first


BUGS = (
    ("prefill-is-the-furthest", "a queue of which only pre-fill is left passes all records below 2 GiB", 4,
     Parts({ConsumeQueue: _PrefillIsTheFurthest})),
    ("prefill-is-seen", "after a restart pre-fill counts as messages", 17, Parts({ConsumeQueue: _PrefillIsSeen})),
)  # fmt: skip
