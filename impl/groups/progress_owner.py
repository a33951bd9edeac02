"""The interface of an owner of one state file below `config/`."""

from collections.abc import Callable
from typing import Protocol

from tornpage.impl.log.loading import Finding

__all__ = ["ProgressOwner", "QueueRange"]

QueueRange = Callable[[str, int], tuple[int, int]]
"""Returns minimum and maximum of a queue, from topic and queue id; 0 and 0 for an unknown one."""


class ProgressOwner(Protocol):
    """The owner of one state file.

    A store loads it at open, corrects it after the queues are recovered, and saves it from then on.
    """

    @property
    def name(self) -> str:
        """The name used in log lines."""

    @property
    def interval_ms(self) -> int:
        """The longest time in milliseconds from a change to its save.

        It is 0 if the changing method saves it.
        """

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The defects of the file, and the corrections."""

    def load(self) -> None:
        """Read the file. Raises OSError."""

    def correct(self, range_of: QueueRange) -> None:
        """Correct in memory what lies outside the recovered queues."""

    def save(self) -> None:
        """Save changes since the last save or load durably; do nothing without changes.

        Raises OSError.
        """

    def make_durable(self) -> None:
        """Make the loaded file durable before new state depends on it. Raises OSError."""
