"""Walk the extension of a consume queue: its units and the end mark of each file.

Units have different lengths and follow each other directly. The last four bytes of a file are kept free. If a unit does
not fit before them, the two bytes `FF FF` mark the end of the file.

Guarantees: those of `properties.decode.consumequeue`. A place without a valid unit ends its file.

Source: RocketMQ's `ConsumeQueueExt`.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tornpage.properties.decode.consumequeue import ExtUnit, read_ext
from tornpage.properties.decode.files import FileSource

__all__ = ["ExtPlace", "list_extension", "walk_extension"]

_PIECE_BYTES = 1 << 20
_END_MARK = b"\xff\xff"


@dataclass(frozen=True, slots=True)
class ExtPlace:
    """One place of an extension file: a unit, the end mark, or other bytes.

    `unit` is None in the last two cases.

    `address` is what a consume queue unit stores to point here.
    """

    kind: Literal["unit", "end", "bad"]
    place: int
    file: Path
    unit: ExtUnit | None

    @property
    def address(self) -> int:
        """Return the place in the form in which consume queue units state it."""
        return self.place - 2**63


def list_extension(directory: Path) -> list[Path]:
    """Return the extension files of one queue in order, none if it has no extension.

    Raises OSError.
    """
    if not directory.is_dir():
        return []
    found = [path for path in directory.iterdir() if len(path.name) == 20 and path.name.isdecimal()]
    return sorted(path for path in found if path.name.isascii() and stat.S_ISREG(path.stat().st_mode))


def walk_extension(path: Path) -> Iterator[ExtPlace]:
    """Yield the places of one extension file. Raises OSError if it cannot be read."""
    base = int(path.name)
    with FileSource(path, size_bytes_max=2**63 - 1, piece_bytes=_PIECE_BYTES) as source:
        position = 0
        while position < source.end:
            start = source.read(position, 2)
            if start == b"\0\0" or len(start) < 2:
                return
            if start == _END_MARK:
                yield ExtPlace("end", base + position, path, None)
                return
            unit = read_ext(source, position)
            if unit is None:
                yield ExtPlace("bad", base + position, path, None)
                return
            yield ExtPlace("unit", base + position, path, unit)
            position += len(unit.raw)
