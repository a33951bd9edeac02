"""What a store remembers of progress: somebody who owns one state file below `config/`."""

from collections.abc import Callable
from typing import Protocol

from tornpage.impl.log.loading import Finding

__all__ = ["ProgressOwner", "QueueRange"]

QueueRange = Callable[[str, int], tuple[int, int]]
"""Minimum and maximum of a queue, from topic and queue id; 0 and 0 of one that nobody knows."""


class ProgressOwner(Protocol):
    """Loaded when a store opens, corrected once the queues are recovered, and saved from then on."""

    @property
    def name(self) -> str:
        """What log lines call it."""

    @property
    def interval_ms(self) -> int:
        """How long a change may wait for its save; 0 for one that is saved in the verb that makes it."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was wrong with the file, and what was corrected."""

    def load(self) -> None:
        """Read the file. Raises OSError."""

    def correct(self, range_of: QueueRange) -> None:
        """Bring back in memory what lies beyond a queue as it was recovered."""

    def save(self) -> None:
        """Save what has changed since the last save or load, durably; nothing if nothing has. Raises OSError."""

    def make_durable(self) -> None:
        """Have what was loaded durable, before something is built on it. Raises OSError."""
