"""Walk a log file from any place in it, without reading the part before.

The item that holds a place begins somewhere before it. It is found by walking from a little earlier: a walk that begins
inside an item finds the next record that was written for exactly its place, and from there on it sees what a walk of
the whole file sees. Where a MiB before the place shows no such record, the longest record's length before it is tried,
then the file from its start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tornpage.properties.decode.record import Bad, Blank, Record
from tornpage.properties.decode.walk import Item, Source, Unreadable, Zeros, walk_source

__all__ = ["items_from"]

_NEAR_BYTES = 1024 * 1024


def items_from(
    source: Source, position: int, base_offset: int, file_bytes: int, record_bytes_max: int
) -> Iterator[Item]:
    """Yield the items of one file, as `walk_source` does; the first is that which holds `position`.

    A `Bad` comes with the `Unreadable` that it belongs to. Where only zeros follow, the first item may be the rest of
    them. Cost: some MiB before the position, unless nothing valid lies there.
    """

    def items(start: int) -> Iterator[Item]:
        return walk_source(
            source,
            base_offset=base_offset,
            file_bytes=file_bytes,
            position=start,
            record_bytes_max=record_bytes_max,
        )

    start = 0
    if position > 0:
        start = _start_of_item(source, items, position, base_offset, record_bytes_max)
    held: list[Item] = []
    for item in items(start):
        held.append(item)
        if isinstance(item, Bad):
            continue  # goes with the Unreadable behind it
        if not isinstance(item, Record | Unreadable) or item.offset + item.size_bytes > base_offset + position:
            yield from held
        held.clear()


def _start_of_item(
    source: Source, items: Callable[[int], Iterator[Item]], position: int, base_offset: int, record_bytes_max: int
) -> int:
    """Return where the item that holds `position` begins, or an earlier place of an item."""
    here = next(items(position), None)
    if isinstance(here, Record):
        return position
    if position <= _NEAR_BYTES:
        return 0
    for window in (_NEAR_BYTES, record_bytes_max):
        if position <= window:
            break
        start = position - window
        trusted = False
        for item in items(start):
            if isinstance(item, Bad):
                continue
            at = item.offset - base_offset
            trusted |= isinstance(item, Record) or (trusted and isinstance(item, Blank))
            if isinstance(item, Blank | Zeros) or at + item.size_bytes > position:
                if trusted:
                    return at
                break
    return position if isinstance(here, Zeros) else 0
