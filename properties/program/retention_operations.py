"""What a clean-up, the readers that stand in its way, and who deletes topics do, as values."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Clean", "DeleteTopics", "HoldBuffer", "ReleaseBuffer"]


@dataclass(frozen=True, slots=True)
class Clean:
    """Time passes, then the clean-up makes a whole run; hours are of the clock, whose zone is UTC.

    With `manual` somebody asks for it before. `percent` is how full the disk is from then on; 0 leaves it as it is. The
    run comes in the middle of a query for key `query` of those there are (counted modulo), -1 being none.
    """

    after_hours: int = 0
    manual: bool = False
    percent: int = 0
    query: int = -1
    op: Literal["clean"] = "clean"


@dataclass(frozen=True, slots=True)
class HoldBuffer:
    """A reader takes a buffer of record `record` of those there are (counted modulo), and keeps it."""

    record: int = 0
    op: Literal["hold_buffer"] = "hold_buffer"


@dataclass(frozen=True, slots=True)
class ReleaseBuffer:
    """The reader that has kept his buffer longest gives it back."""

    op: Literal["release_buffer"] = "release_buffer"


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """All topics go but those in use."""

    in_use: tuple[str, ...] = ()
    op: Literal["delete_topics"] = "delete_topics"
