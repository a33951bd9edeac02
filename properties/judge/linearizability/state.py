"""The state of a store as its concurrent callers can know it: the model's log, and how much of it is shown to whom.

1. `log` has what was appended. Without a pool readers see all of it. With one they see up to some place between `least`
   and `most`, which moves only while a commit is under way; what somebody saw is never taken back.
2. Each queue shows the records in front of a place of its own: a batch goes into one queue after the other. That place
   only rises, up to what readers see. What a deletion takes away it takes from the numbers first, then queue by queue.
3. The first number of a queue lies between the one it had and that of its first record that is left.

What is not known is kept as a range, and narrowed by what readers are told: so no answer has to be guessed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tornpage.model.dispatch import Queue, places
from tornpage.model.state import CommitLog, Layout, Record

__all__ = ["Shown", "StoreState"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a queue shows: records in front of `end_offset`, numbers from `least` on, topics that were `deleted`."""

    end_offset: int = 0
    least: int = 0
    deleted: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class StoreState:
    """`rolling` is the call whose put has closed a log file and not appended yet; `commits` are those under way, each
    with what has to be shown when it is over. All offsets are physical. `progress` is what each group wants next of a
    queue; in topics that `begin_anew` right now, commits count for nothing.
    """

    log: CommitLog
    least: int = 0
    most: int = 0
    flushed: int = 0
    commits: tuple[tuple[int, int], ...] = ()
    rolling: int = -1
    shown: tuple[tuple[Queue, Shown], ...] = ()
    progress: tuple[tuple[tuple[str, Queue], int], ...] = ()
    begin_anew: tuple[str, ...] = ()
    takes_puts: bool = True
    is_open: bool = True

    # ---- what readers see ----------------------------------------------------------------------------------------

    def bounds(self, layout: Layout) -> tuple[int, int]:
        """Return up to where readers surely see the log, and up to where they may."""
        if not layout.has_pool:
            return self.log.end_offset, self.log.end_offset
        return self.least, self.log.end_offset if self.commits else self.most

    def seen(self, at_least: int, at_most: int, layout: Layout) -> "StoreState | None":
        """Return the state once a reader knows where readers see to; None when that cannot be."""
        least, most = self.bounds(layout)
        if max(least, at_least) > min(most, at_most):
            return None
        if not layout.has_pool:
            return self
        return replace(self, least=max(least, at_least), most=self.most if self.commits else min(most, at_most))

    # ---- consumers -----------------------------------------------------------------------------------------------

    def committed(self, group: str, queue: Queue) -> int | None:
        """Return what a group wants next."""
        return dict(self.progress).get((group, queue))

    def with_committed(self, group: str, queue: Queue, offset: int) -> "StoreState":
        """Return the state once a group wants another message next."""
        return replace(self, progress=tuple(sorted({**dict(self.progress), (group, queue): offset}.items())))

    # ---- what queues show ----------------------------------------------------------------------------------------

    def shown_of(self, queue: Queue) -> Shown:
        """Return what a queue shows."""
        return dict(self.shown).get(queue, Shown())

    def with_shown(self, queue: Queue, shown: Shown) -> "StoreState":
        """Return the state with another view of a queue."""
        return replace(self, shown=tuple(sorted({**dict(self.shown), queue: shown}.items())))

    def units(self, queue: Queue, shown: Shown, end_offset: int, layout: Layout) -> list[tuple[int, Record]]:
        """Return number and record of all that a queue would show in front of a place, gone ones too."""
        from_offset = dict(shown.deleted).get(queue[0], 0)
        return [
            (number, record)
            for record in self.log.records
            if from_offset <= record.offset and record.end_offset <= end_offset
            for place, number in places(record, layout)
            if place == queue
        ]

    def queues(self, layout: Layout) -> Iterator[Queue]:
        """Yield every queue of a record, some more than once."""
        for record in self.log.records:
            for queue, _ in places(record, layout):
                yield queue
