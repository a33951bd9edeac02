"""Read consume queue files as rows of `UNITS`, and outline the rest.

The columns are in `pipeline.rows.columns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tornpage.pipeline.rows.columns import UNITS, QueueNumbers
from tornpage.pipeline.rows.outline import QueuePartition, QueueRow, kind_of, text_of
from tornpage.properties.decode.consumequeue import EXT_ADDRESS_MAX, PREFILL_BYTES, UNIT_BYTES, ExtReader
from tornpage.properties.decode.files import FileSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_queue"]

_UNIT = np.dtype([("offset", ">i8"), ("size", ">i4"), ("code", ">i8")])
_PIECE_BYTES = (4 << 20) // UNIT_BYTES * UNIT_BYTES

assert _UNIT.itemsize == UNIT_BYTES


def read_queue(part: QueuePartition, numbers: QueueNumbers) -> Iterator[NDArray[Any] | QueueRow]:
    """Yield the units of one queue file in pieces, then its outline."""
    key = (part.topic, part.queue_id)
    stretches = _Stretches()
    units, first_current, last_used, outlived = 0, None, None, None
    changed, failure = False, None
    try:
        with FileSource(part.path, size_bytes_max=part.size_bytes) as source, ExtReader(part.ext_directory) as ext:
            for number, piece in _pieces(source, part.base_offset // UNIT_BYTES):
                kinds = _kinds(piece)
                stretches.take(number, piece, kinds)
                used = np.flatnonzero(kinds == 0)
                rows = np.zeros(len(used), UNITS)
                rows["offset"], rows["size"] = piece["offset"][used], piece["size"][used]
                rows["queue"], rows["queue_offset"] = numbers.of(key), number + used
                _tell_codes(rows, piece["code"][used].astype("i8"), ext)
                units += len(used)
                current = used[(rows["size"] > 0) & (rows["offset"] >= max(part.log_min, 0))]
                if first_current is None and len(current):
                    first_current = number + int(current[0])
                if first_current is None and len(used):
                    outlived = number + int(used[-1]) + 1
                if len(filled := np.flatnonzero(kinds != 1)):
                    last_used = number + int(filled[-1])
                yield rows
            changed = source.has_changed()
    except OSError as error:
        failure = error
    for kind, start, items, offset in stretches.finish():
        yield QueueRow(part.store, part.label, kind, *key, start, offset, items)
    yield QueueRow(
        part.store,
        part.label,
        "end",
        *key,
        items=units,
        first_current=first_current,
        last_used=last_used,
        outlived=outlived,
        changed=changed,
        error=text_of(failure),
        error_kind=kind_of(failure),
    )


def _pieces(source: FileSource, number: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield (number of the first unit, units) of a file.

    A cut last unit is left out. Holes are skipped.
    """
    position, end = 0, source.end - source.end % UNIT_BYTES
    while position < end:
        size = min(_PIECE_BYTES, end - position)
        piece = source.read(position, size)
        piece = piece[: len(piece) - len(piece) % UNIT_BYTES]
        if not piece:  # the file shrank meanwhile
            return
        yield number + position // UNIT_BYTES, np.frombuffer(piece, _UNIT)
        position += len(piece)


def _kinds(piece: NDArray[Any]) -> NDArray[Any]:
    """Return 0 for a unit in use, 1 for an empty one, 2 for pre-fill."""
    nowhere = (piece["offset"] == 0) & (piece["code"] == 0)
    return np.where(nowhere & (piece["size"] == 0), 1, np.where(nowhere & (piece["size"] == PREFILL_BYTES), 2, 0))


def _tell_codes(rows: NDArray[Any], codes: NDArray[Any], ext: ExtReader) -> None:
    """Fill in tags codes, from the extension where units have an address."""
    rows["tags_code"], rows["has_code"] = codes, True
    for at in np.flatnonzero(codes <= EXT_ADDRESS_MAX):
        found = ext.look_up(int(codes[at]))
        rows["address"][at], rows["has_code"][at] = codes[at], found is not None
        rows["tags_code"][at] = 0 if found is None else found.tags_code


class _Stretches:
    """Sums up empty and pre-fill units over the pieces of a file."""

    def __init__(self) -> None:
        self._found: list[tuple[str, int, int, int | None]] = []

    def take(self, number: int, piece: NDArray[Any], kinds: NDArray[Any]) -> None:
        """Take the next piece, whose first unit has this number."""
        starts = np.flatnonzero(np.diff(kinds, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(kinds)], strict=True):
            kind = int(kinds[start])
            last = self._found[-1] if self._found else None
            if last is not None and last[0] == "empty" and last[3] is None and kind != 1:
                self._found[-1] = (*last[:3], int(piece["offset"][start]))
            if not kind:
                continue
            name = "empty" if kind == 1 else "prefill"
            if last is not None and last[0] == name and last[1] + last[2] == number + start:
                self._found[-1] = (name, last[1], last[2] + end - start, last[3])
            else:
                self._found.append((name, number + start, end - start, None))

    def finish(self) -> list[tuple[str, int, int, int | None]]:
        """Return (kind, number of the first unit, count, offset) of each stretch.

        The offset is that of the unit after an empty stretch.
        """
        return self._found
