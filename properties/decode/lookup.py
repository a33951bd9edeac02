"""Read single records of a log by their physical offset.

Guarantees: a look-up reads at most a few small pieces and the record itself. Files are opened read-only, and at most
`FILES_MAX` of them stay open. A file that is missing or cannot be read makes a record unreachable and never raises.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from types import TracebackType
from typing import Self

from tornpage.properties.decode.files import FileSource
from tornpage.properties.decode.record import Bad, Blank, Record
from tornpage.properties.decode.store import RECORD_BYTES_MAX, LogFile, StoreView
from tornpage.properties.decode.walk import decode_at

__all__ = ["FILES_MAX", "RecordReader"]

FILES_MAX = 8
_PIECE_BYTES = 64 * 1024


class RecordReader:
    """Random access to the records of a view. Use as a context manager."""

    def __init__(self, view: StoreView, *, record_bytes_max: int = RECORD_BYTES_MAX) -> None:
        self._view = view
        self._bases = [file.base_offset for file in view.files]
        self._record_bytes_max = record_bytes_max
        self._open: OrderedDict[int, FileSource] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._open:
            self._open.popitem()[1].__exit__(None, None, None)

    def file_of(self, offset: int) -> LogFile | None:
        """Return the log file with the place `offset`."""
        number = bisect_right(self._bases, offset) - 1
        if number < 0 or offset >= self._bases[number] + self._view.file_bytes:
            return None
        return self._view.files[number]

    def at(self, offset: int) -> Record | Blank | Bad | None:
        """Return the item at `offset`; None if no readable file has that place."""
        file = self.file_of(offset)
        if file is None:
            return None
        try:
            source = self._source(file)
            position = offset - file.base_offset
            return decode_at(source, position, file.base_offset, self._view.file_bytes, self._record_bytes_max)
        except OSError:
            return None

    def raw(self, offset: int, size_bytes: int) -> bytes:
        """Return the bytes at `offset`: fewer at the end of the file, none if they are unreadable."""
        file = self.file_of(offset)
        if file is None:
            return b""
        try:
            return self._source(file).read(offset - file.base_offset, size_bytes)
        except OSError:
            return b""

    def _source(self, file: LogFile) -> FileSource:
        source = self._open.pop(file.base_offset, None)
        if source is None:
            if len(self._open) >= FILES_MAX:
                self._open.popitem(last=False)[1].__exit__(None, None, None)
            source = FileSource(file.path, size_bytes_max=self._view.file_bytes, piece_bytes=_PIECE_BYTES)
        self._open[file.base_offset] = source
        return source
