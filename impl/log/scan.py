"""One walk over the mapped log: the end of its valid prefix, and the reason."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.message.codec import MESSAGE_MAGIC, RecordCheck

__all__ = ["LogScan", "LogWalker", "RecordChecker", "end_of_records", "islands", "scan_log", "stated_base", "walk_log"]

RecordChecker = Callable[..., RecordCheck]
"""Called as `check(view, position, limit=, offset=)`; see impl.message.codec.check_record."""

LogWalker = Callable[..., tuple[int, str | None]]
"""Called as `walk(view, position, file_bytes=, base_offset=, check=)`; see `walk_log`."""

_MAGIC_BYTES = MESSAGE_MAGIC.to_bytes(4, "big", signed=True)
_PHYSICAL_OFFSET_AT = 28
_CANDIDATES_MAX = 256


@dataclass(frozen=True, slots=True)
class LogScan:
    """The end of the valid prefix.

    It lies in file `file_index`, at physical offset `end_offset`, because of `reason`. `reason` is None if the last
    file ends with its blank. `blank_positions` maps the base offset of each scanned file to the position of its blank.
    """

    end_offset: int
    file_index: int
    reason: str | None
    blank_positions: Mapping[int, int]


def walk_log(
    view: memoryview, position: int, *, file_bytes: int, base_offset: int, check: RecordChecker
) -> tuple[int, str | None]:
    """Return the end of the valid records of one file from `position` on, and the reason.

    The reason is None at a blank. `base_offset` is the physical offset of position 0. If `check` is
    `impl.message.codec.check_record`, a compiled twin may replace this function.
    """
    while True:
        size, reason = check(view, position, limit=file_bytes, offset=base_offset + position)
        if not size:
            return position, reason
        position += size


def scan_log(
    mapped: Sequence[MappedFile], walk: LogWalker, check: RecordChecker, *, file_bytes: int, from_offset: int = 0
) -> LogScan:
    """Walk records and blanks from the begin, or from a record at `from_offset`.

    Cost: the walked bytes are read once.
    """
    blanks: dict[int, int] = {}
    for index, file in enumerate(mapped):
        base = file.base_offset
        if file.end_offset <= from_offset:
            continue
        start = max(0, from_offset - base)
        position, reason = walk(file.view, start, file_bytes=file_bytes, base_offset=base, check=check)
        if reason is not None:
            return LogScan(base + position, index, reason, blanks)
        blanks[base] = position
    return LogScan(mapped[-1].end_offset if mapped else 0, len(mapped) - 1, None, blanks)


def islands(file: MappedFile, position: int, check: RecordChecker, *, file_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield (position, size) of every valid record of the file from `position` on.

    Other bytes are skipped.
    """
    data = bytes(file.view)
    while True:
        size, reason = check(file.view, position, limit=file_bytes, offset=file.base_offset + position)
        if size:
            yield position, size
            position += size
            continue
        if reason is None:
            return  # a blank: bytes after it are old
        found = data.find(_MAGIC_BYTES, position + 5)
        if found < 0:
            return
        position = found - 4


def stated_base(file: MappedFile, check: RecordChecker, *, file_bytes: int) -> int | None:
    """Return the offset at which a file begins by its first valid record.

    Return None if that is the offset of its name, or if the two do not differ by whole files. The first 256 candidates
    are tried. Cost: one record for a file with its own records.
    """
    if check(file.view, 0, limit=file_bytes, offset=file.base_offset)[1] != "bad_position":
        return None
    data = bytes(file.view)
    found = data.find(_MAGIC_BYTES, 4)
    for _ in range(_CANDIDATES_MAX):
        if found < 0:
            return None
        position = found - 4
        stated = data[position + _PHYSICAL_OFFSET_AT : position + _PHYSICAL_OFFSET_AT + 8]
        base = int.from_bytes(stated, "big", signed=True) - position
        is_moved = len(stated) == 8 and base >= 0 and base != file.base_offset and not base % file_bytes
        if is_moved and check(file.view, position, limit=file_bytes, offset=base + position)[0]:
            return base
        found = data.find(_MAGIC_BYTES, found + 1)
    return None


def end_of_records(
    mapped: Sequence[MappedFile], scan: LogScan, walk: LogWalker, check: RecordChecker, *, file_bytes: int
) -> int:
    """Return the physical offset after the last valid record, in the prefix or past it.

    A blank after that record belongs to it. Without a record this is the begin of the log.

    Cost: the files from the end of the prefix on are read from last to first, down to the first file with a record.
    """
    for file in reversed(mapped[scan.file_index :] if scan.reason is not None else []):
        end = _end_in_file(file, max(0, scan.end_offset - file.base_offset), walk, check, file_bytes=file_bytes)
        if end:
            return file.base_offset + end
    for before, file in pairwise(mapped):
        if scan.end_offset == file.base_offset:
            return before.end_offset
    return scan.end_offset


def _end_in_file(
    file: MappedFile, position: int, walk: LogWalker, check: RecordChecker, *, file_bytes: int
) -> int | None:
    """Return the position after the last valid record from `position` on, None without one."""
    end, data = None, b""
    while file.first_nonzero(position) is not None:
        after, reason = walk(file.view, position, file_bytes=file_bytes, base_offset=file.base_offset, check=check)
        if reason is None:
            return file.size_bytes  # a blank: bytes after it are old
        if after > position:
            end = after
        data = data or bytes(file.view)
        found = data.find(_MAGIC_BYTES, after + 5)
        if found < 0:
            return end
        position = found - 4
    return end
