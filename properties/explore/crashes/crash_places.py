"""Where crashes fall in one life of a history, and in which lives they count."""

from functools import cached_property

from model.state import CommitLog
from properties.disk.disk import DiskState
from properties.disk.images import Fact, facts_of
from properties.disk.sampling import armed_faults
from properties.lockstep.trial_state import Window

__all__ = ["Place", "counts"]

COUNTED_FILES_MIN = 2
COUNTED_RECORDS_MIN = 10


def counts(log: CommitLog, *, file_bytes: int) -> bool:
    """Whether a crash of this log is a state that counts; what is in a buffer of the pool is on no disk."""
    committed = sum(record.end_offset <= log.committed_offset for record in log.retained)
    in_files = log.committed_offset - log.min_offset
    return in_files > file_bytes * (COUNTED_FILES_MIN - 1) and committed >= COUNTED_RECORDS_MIN


class Place:
    """One event of a life, at which several crashes fall: what is the same for all of them is worked out once.

    `window` is the verb under way, `number` its place in the life, `back` how many events before its answer this one
    lies; `position` is where the journal ends that led to `state`.
    """

    def __init__(self, state: DiskState, number: int, window: Window, event: int, position: int) -> None:
        self.state = state
        self.number = number
        self.window = window
        self.event = event
        self.position = position

    @property
    def back(self) -> int:
        """How many events before the answer; 0 is at rest."""
        return self.window.last - self.event

    @cached_property
    def facts(self) -> list[Fact]:
        """What may or may not have reached the disk."""
        return facts_of(self.state)

    @cached_property
    def armed(self) -> frozenset[str]:
        """The fault classes that these facts make possible."""
        return frozenset(armed_faults(self.facts))
