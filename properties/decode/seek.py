"""Walk a log file from any place in it, without reading all of the part before.

The item at a place begins somewhere before it and is found by a walk from an earlier place. A walk that begins inside
an item finds the next record that was written for exactly its place. From there on it yields the items of a walk of the
whole file. If one MiB before the place has no such record, the walk begins one maximum record length before it, and
then at the start of the file.
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
    """Yield the items of one file, as `walk_source` does; the first one covers `position`.

    A `Bad` comes with its `Unreadable`. If only zeros follow, the first item may be the rest of them. Cost: some MiB
    before the position, or more if there is no valid record near it.
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
            continue  # is yielded with the Unreadable after it
        if not isinstance(item, Record | Unreadable) or item.offset + item.size_bytes > base_offset + position:
            yield from held
        held.clear()


def _start_of_item(
    source: Source, items: Callable[[int], Iterator[Item]], position: int, base_offset: int, record_bytes_max: int
) -> int:
    """Return the begin of the item that covers `position`, or of an earlier item."""
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
