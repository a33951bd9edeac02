"""Write the log of a copy.

Kept records stand at their places, fillers in the holes, and an end mark in every closed file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tornpage.pipeline.repairing.fillers import Neighbour, blank, changed, filler_bytes
from tornpage.pipeline.repairing.salvage import Salvage
from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.record import TRAILER_BYTES

__all__ = ["set_aside", "write_log"]

_PIECE_BYTES = 4 << 20
_MARK = b"__CRC32#\x01"


def write_log(directory: Path, salvage: Salvage, tell: Callable[[str], object]) -> int:
    """Write the log files below `directory`; return how many. Raises OSError."""
    directory.mkdir()
    layout = salvage.layout
    runs = list(_runs(salvage))
    starts = [start for start, _, _ in runs]
    bases = [base for base in layout.bases if base < salvage.end] or [layout.bases[0]]
    for base in bases:
        end = base + layout.file_bytes
        tell(f"copy {base:020}")
        with (directory / f"{base:020}").open("x+b") as file:
            for start, size, source in runs[np.searchsorted(starts, base) : np.searchsorted(starts, end)]:
                stored = salvage.files[source]
                _copy(stored.path, start - stored.offset, size, file, start - base)
            file.truncate(layout.file_bytes)
    _correct(directory, salvage)
    _fill(directory, salvage)
    used = _used(salvage)
    for base in bases[:-1]:
        at = used.get(base, base)
        with (directory / f"{base:020}").open("r+b") as file:
            file.seek(at - base)
            file.write(blank(base + layout.file_bytes - at))
    return len(bases)


def set_aside(directory: Path, salvage: Salvage) -> int:
    """Keep the bytes of the image that no record of the copy holds; return the stretches.

    Stretches of zeros are left out.
    """
    made = 0
    bases = sorted((stored.offset, stored.path) for stored in salvage.files if stored.path.parent.name == "commitlog")
    for offset, path in bases:
        size, file_end = path.stat().st_size, offset + salvage.layout.file_bytes
        stretches = [
            (max(hole.start, offset), min(hole.end, offset + min(size, salvage.layout.file_bytes)))
            for hole in salvage.layout.holes
            if offset <= hole.start < offset + salvage.layout.file_bytes
        ]
        if offset > salvage.layout.bases[-1]:
            stretches = [(offset, offset + min(size, salvage.layout.file_bytes))]
        for start, end in stretches:
            if start >= end:
                continue
            with FileSource(path, size_bytes_max=end - offset) as source:
                if source.next_nonzero(start - offset) >= end - offset:
                    continue
                if end == file_end and _is_blank(source.read(start - offset, 8)):
                    continue
            directory.mkdir(exist_ok=True)
            target = next(name for name in _names(directory, start) if not name.exists())
            with target.open("xb") as file:
                _copy(path, start - offset, end - start, file, 0)
                file.truncate(end - start)
            made += 1
    return made


def _names(directory: Path, offset: int) -> Iterator[Path]:
    number = 0
    while True:
        yield directory / f"{offset:020}.{number}"
        number += 1


def _is_blank(stored: bytes) -> bool:
    return len(stored) == 8 and stored[4:] == blank(0)[4:]


def _runs(salvage: Salvage) -> Iterator[tuple[int, int, int]]:
    """Yield runs of records that lie next to each other in one file.

    A run is (offset, bytes, number of the file).
    """
    records, source = salvage.records, salvage.source
    if not len(records):
        return
    end = records["offset"] + records["size"]
    begins = np.ones(len(records), bool)
    begins[1:] = (records["offset"][1:] != end[:-1]) | (source[1:] != source[:-1])
    begins[1:] |= (records["offset"][1:] - salvage.layout.bases[0]) % salvage.layout.file_bytes == 0
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(records)) - 1
    yield from zip(
        records["offset"][first].tolist(),
        (end[last] - records["offset"][first]).tolist(),
        source[first].tolist(),
        strict=True,
    )


def _copy(path: Path, start: int, size: int, target: BinaryIO, at: int) -> None:
    with FileSource(path, size_bytes_max=start + size) as source:
        position = start
        while position < source.end:
            position = source.next_nonzero(position)
            piece = source.read(position, min(_PIECE_BYTES, source.end - position))
            if not piece:
                break
            target.seek(at + position - start)
            target.write(piece)
            position += len(piece)


def _correct(directory: Path, salvage: Salvage) -> None:
    records = salvage.records
    places = {each.offset: each for each in salvage.corrections}
    without = set(salvage.numbering.without_place)
    for offset in sorted({*places, *without}):
        size = int(records["size"][np.searchsorted(records["offset"], offset)])
        base = salvage.layout.base_of(offset)
        with (directory / f"{base:020}").open("r+b") as file:
            file.seek(offset - base)
            raw = file.read(size)
            said = places.get(offset)
            if said is not None:
                raw = changed(
                    raw,
                    topic=said.after[0] if said.after[0] != said.before[0] else None,
                    queue_id=said.after[1] if said.after[1] != said.before[1] else None,
                    queue_offset=said.after[2],
                    no_transaction=said.no_transaction,
                )
            if offset in without:
                raw = changed(raw, rolled_back=True)
            file.seek(offset - base)
            file.write(raw)


def _fill(directory: Path, salvage: Salvage) -> None:
    for filler in salvage.fillers:
        base = salvage.layout.base_of(filler.offset)
        with (directory / f"{base:020}").open("r+b") as file:
            file.seek(filler.offset - base)
            file.write(filler_bytes(filler, _near(salvage, filler.offset)))


def _near(salvage: Salvage, offset: int) -> Neighbour:
    """Return what the record before an offset says, or else the first record."""
    records = salvage.records
    if not len(records):
        return Neighbour()
    at = max(int(np.searchsorted(records["offset"], offset)) - 1, 0)
    record, stored = records[at], salvage.files[int(salvage.source[at])]
    with FileSource(stored.path, size_bytes_max=int(record["offset"]) - stored.offset + int(record["size"])) as source:
        raw = source.read(int(record["offset"]) - stored.offset, int(record["size"]))
    (flags,) = struct.unpack_from(">i", raw, 36)
    host_at = 56 + (12 if flags & 0x10 else 0)
    host = bytes(8) if flags & 0x20 else raw[host_at + 8 : host_at + 16]
    return Neighbour(max(0, int(record["timestamp"])), host, raw[-TRAILER_BYTES:].startswith(_MARK))


def _used(salvage: Salvage) -> dict[int, int]:
    """Return, per file, where its last record or filler ends."""
    file_bytes, begin = salvage.layout.file_bytes, salvage.layout.bases[0]
    used: dict[int, int] = {}
    records = salvage.records
    if len(records):
        base = records["offset"] - (records["offset"] - begin) % file_bytes
        last = np.append(np.flatnonzero(np.diff(base)), len(base) - 1)
        used = dict(zip(base[last].tolist(), (records["offset"] + records["size"])[last].tolist(), strict=True))
    for filler in salvage.fillers:
        place = salvage.layout.base_of(filler.offset)
        used[place] = max(used.get(place, place), filler.offset + filler.size_bytes)
    return used
