"""How far a group is behind the end of its queues."""

from dataclasses import dataclass

__all__ = ["QueueLag"]


@dataclass(frozen=True, slots=True)
class QueueLag:
    """The place of a group in one queue.

    `diff` is the number of messages that are not finished (`diffTotal`), `cached` how many of them the client holds.
    """

    max_offset: int
    progress: int
    cached: int = 0

    @property
    def diff(self) -> int:
        """The maximum minus the progress."""
        return max(0, self.max_offset - self.progress)
