"""Pieces of the log: what one sync or one commit would cover."""

from typing import NamedTuple

__all__ = ["Dirty", "End"]


class Dirty(NamedTuple):
    """What one sync would make durable: a piece of one file."""

    file_index: int
    file_is_full: bool
    from_offset: int
    to_offset: int
    rows_end: int
    """First row after the piece."""
    device_bytes: int
    """Its whole pages, or the whole file if its warm-up left it dirty."""
    reserved_only: bool
    """Whether the disk has never written these blocks."""


class End(NamedTuple):
    """How far writing has come in a file."""

    file_is_full: bool
    rows_end: int
    to_offset: int
    data_position: int
    """End of the bytes really written; the blank of a full file writes only its head."""
