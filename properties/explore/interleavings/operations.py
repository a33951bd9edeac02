"""The operation of part programs: a call of one part of the store."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["PART_OPERATIONS", "PartCall"]


@dataclass(frozen=True, slots=True)
class PartCall:
    """Describe one call of a part program: a method of its bench, and integers as arguments."""

    call: str = ""
    args: tuple[int, ...] = ()
    op: str = "part"


PART_OPERATIONS: Mapping[str, type[PartCall]] = {"part": PartCall}
"""The operations of part programs by name."""
